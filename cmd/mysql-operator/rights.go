package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/mysql-operator/mysql-operator/deploy"
)

const (
	// rightsPause is the time between two checks whether the permissions were granted.
	rightsPause = 3 * time.Second
	// rightsPatience is how long the operator waits for permissions before it exits and kubelet restarts it.
	rightsPatience = 15 * time.Minute
)

// grants returns what this operator needs while no definition is being updated.
func (o operator) grants() grants {
	return grants{crds: o.options.definitions.mode, secrets: o.options.secrets, namespaces: o.options.namespaces}
}

// awaitPermissions returns when the operator has all permissions that the grants give it. While permissions are missing, it reports them
// and how to grant them, each time the list changes.
func (o operator) awaitPermissions(ctx context.Context, permitted *gate, wanted grants) error {
	needed, err := permissions(o.kinds, wanted)
	if err != nil {
		return err
	}
	account := deploy.Account{Namespace: o.cluster.namespace, Name: deploy.Name}
	needs := deploy.Needs(account, o.options.namespaces, needed)
	ctx, cancel := context.WithTimeoutCause(ctx, rightsPatience, fmt.Errorf("not granted within %s", rightsPatience))
	defer cancel()
	told := ""
	for {
		missing, err := o.checkPermissions(ctx, needs, func(shortage deploy.MissingPermissions, missing string) error {
			permitted.say("the operator is missing these permissions: " + missing)
			if missing == told {
				return nil
			}
			told = missing
			return o.reportMissing(shortage, account, needed)
		})
		if err != nil || missing == "" {
			return err
		}
		if err := pause(ctx, rightsPause); err != nil {
			return fmt.Errorf("wait for permissions: %w: %s", err, missing)
		}
	}
}

// checkPermissions checks once which permissions are missing and passes them to tell. If the API server does not answer, the caller asks
// again later.
func (o operator) checkPermissions(ctx context.Context, needs map[deploy.Place][]rbacv1.PolicyRule, tell func(deploy.MissingPermissions, string) error) (missing string, err error) {
	shortage, err := deploy.FindMissingPermissions(ctx, o.cluster.rest, needs)
	if err != nil {
		o.log.Info("failed to check permissions, retrying", "reason", "APIServerUnavailable", "error", err.Error())
		return err.Error(), nil
	}
	if shortage.None() {
		return "", nil
	}
	missing = strings.Join(shortage.Lines(), "; ")
	return missing, tell(shortage, missing)
}

// reportMissing writes, for a user, which permissions are missing and the command that grants them.
func (o operator) reportMissing(shortage deploy.MissingPermissions, account deploy.Account, needed deploy.Permissions) error {
	if actual, isAccount := deploy.AccountOf(shortage.User); isAccount {
		account = actual
	}
	grant, err := deploy.Render(deploy.RBAC(account, o.options.namespaces, needed))
	if err != nil {
		return err
	}
	o.log.Info("waiting for permissions", "reason", "RightsMissing", "user", shortage.User, "missing", shortage.Lines())
	_, err = fmt.Fprint(o.p.Err, shortage.Message(grant))
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
