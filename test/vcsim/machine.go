//go:build !without_vcenter

package vcsim

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

// Move moves a machine into another folder.
func (v *VCenter) Move(name, folder string) {
	v.t.Helper()
	into, err := v.finder().Folder(v.t.Context(), "/DC0/vm/"+folder)
	if err != nil {
		v.t.Fatal(err)
	}
	v.done(into.MoveInto(v.t.Context(), []types.ManagedObjectReference{v.find(name).Reference()}))
}

// Lose gives a machine another connection state. Where that leaves the vCenter without the machine's configuration, it has none from then
// on.
func (v *VCenter) Lose(name string, state types.VirtualMachineConnectionState, configuration bool) {
	v.t.Helper()
	registered, is := v.inside.Map.Get(v.find(name).Reference()).(*simulator.VirtualMachine)
	if !is {
		v.t.Fatal(name + " is not the simulator's")
	}
	v.inside.WithLock(registered, func() {
		registered.Runtime.ConnectionState = state
		if !configuration {
			registered.Config = nil
		}
	})
}
