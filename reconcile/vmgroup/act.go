package vmgroup

import (
	"context"
	"errors"
	"slices"

	"github.com/go-logr/logr"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/vmgroup/vcenter"
	"github.com/mysql-operator/mysql-operator/schema/vmgroup/v1alpha1"
)

// act gives the orders, one after the other. What does not fit what there is any more is decided anew by the next pass; any other error ends the pass.
func (r *reconciler) act(ctx context.Context, group v1alpha1.VmGroup, at vcenter.Group, steps []step) ([]reconcile.Event, error) {
	done := []step{}
	for _, one := range steps {
		err := r.settings.VCenter.Do(ctx, vcenter.Order{
			Group: at, Verb: one.verb, Machine: one.machine, ID: one.id,
			Template: group.Spec.Template, CPU: group.Spec.CPU, MemoryMiB: memoryMiB(group),
		})
		var told *vcenter.Error
		if errors.As(err, &told) && told.Reason == vcenter.Moved {
			logr.FromContextOrDiscard(ctx).V(1).Info("not done", "op", string(one.verb), "machine", one.machine, "because", told.Message)
			continue
		}
		if err != nil {
			return ordered(done), err
		}
		logr.FromContextOrDiscard(ctx).Info("ordered", "op", string(one.verb), "machine", one.machine)
		if one.verb == vcenter.Shutdown {
			r.noteStopping(keyOf(group), one.id)
		}
		done = append(done, one)
	}
	return ordered(done), nil
}

// ordered are the events about what was ordered: one for each verb.
func ordered(done []step) []reconcile.Event {
	events := []reconcile.Event{}
	for len(done) > 0 {
		verb, machines := done[0].verb, []string{}
		done = slices.DeleteFunc(slices.Clone(done), func(one step) bool {
			if one.verb == verb {
				machines = append(machines, one.machine)
			}
			return one.verb == verb
		})
		events = append(events, reconcile.Event{Type: reconcile.Normal, Reason: string(verb), Note: wordsFor(verb, machines)})
	}
	return events
}
