package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/mysql-operator/mysql-operator/deploy"
)

const (
	// rightsPause is how long to wait before looking again whether the rights were granted.
	rightsPause = 3 * time.Second
	// rightsPatience is how long the operator waits for rights before it gives up and is started anew.
	rightsPatience = 15 * time.Minute
)

// awaitRights returns when the operator may do all it has to. While something is missing it says what, and how to grant it, whenever that
// changes.
func (o operator) awaitRights(ctx context.Context, permitted *gate) error {
	needed, err := rights(o.kinds, o.options.crds)
	if err != nil {
		return err
	}
	account := deploy.Account{Namespace: o.cluster.namespace, Name: deploy.Name}
	needs := deploy.Needs(account, o.options.namespaces, needed)
	ctx, cancel := context.WithTimeoutCause(ctx, rightsPatience, fmt.Errorf("not granted within %s", rightsPatience))
	defer cancel()
	told := ""
	for {
		shortage, err := deploy.FindShortage(ctx, o.cluster.rest, needs)
		if err != nil {
			return err
		}
		if shortage.None() {
			return nil
		}
		missing := strings.Join(shortage.Lines(), "; ")
		permitted.say("the operator lacks " + missing)
		if missing != told {
			if err := o.tellShortage(shortage, account, needed); err != nil {
				return err
			}
			told = missing
		}
		if err := pause(ctx, rightsPause); err != nil {
			return fmt.Errorf("wait for rights: %w: %s", err, missing)
		}
	}
}

// tellShortage writes, for a person, what is missing and the command that grants it.
func (o operator) tellShortage(shortage deploy.Shortage, account deploy.Account, needed deploy.Rights) error {
	if actual, isAccount := deploy.AccountOf(shortage.User); isAccount {
		account = actual
	}
	grant, err := deploy.Render(deploy.RBAC(account, o.options.namespaces, needed))
	if err != nil {
		return err
	}
	o.log.Info("waiting for rights", "reason", "RightsMissing", "user", shortage.User, "missing", shortage.Lines())
	_, err = fmt.Fprint(o.p.err, shortage.Message(grant))
	return err
}

func pause(ctx context.Context, length time.Duration) error {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
