//go:build !without_vcenter

package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/mysql-operator/mysql-operator/test/vcsim"
)

// vCenter is govmomi's simulator, in this process.
type vCenter struct {
	*vcsim.VCenter
	after []func()
}

// failure is the value that a simulator panics with when it cannot continue.
type failure struct{ error }

func startVCenter(ctx context.Context) (v *vCenter, err error) {
	v = &vCenter{}
	defer func() {
		if said := recover(); said != nil {
			failed, is := said.(failure)
			if !is {
				panic(said)
			}
			v.end()
			err = fmt.Errorf("start a vCenter: %w", failed)
		}
	}()
	v.VCenter = vcsim.New(standingIn{ctx: ctx, owner: v}) //nolint:contextcheck // it asks standingIn for it
	return v, nil
}

// end ends the simulator.
func (v *vCenter) end() {
	for _, do := range slices.Backward(v.after) {
		do()
	}
}

// standingIn is a vcsim.T where there is no test.
type standingIn struct {
	ctx   context.Context //nolint:containedctx // a test has its context, too
	owner *vCenter
}

func (s standingIn) Helper()                  {}
func (s standingIn) Context() context.Context { return s.ctx }
func (s standingIn) Cleanup(after func())     { s.owner.after = append(s.owner.after, after) }
func (s standingIn) Fatal(what ...any)        { panic(failure{fmt.Errorf("%s", fmt.Sprint(what...))}) }
