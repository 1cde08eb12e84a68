package vmgroup

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-logr/logr"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	"github.com/mysql-operator/mysql-operator/schema/vmgroup/v1alpha1"
)

// sendOrdersFor is how long after its start a pass may send orders. A pass has a minute, and one order may take 25 seconds. The next pass
// continues, and the status reports this one.
const sendOrdersFor = 30 * time.Second

// passContext is a pass in progress.
type passContext struct {
	group v1alpha1.VmGroup
	at    vcenter.Group
	begun time.Time
}

// act sends the orders, one after another. If an order no longer matches the vCenter, the next pass decides again. An error about one
// machine does not stop the other orders, and act returns the first such error. An error about the vCenter ends the pass.
func (r *reconciler) act(ctx context.Context, one passContext, steps []step) ([]reconcile.Event, error) {
	log, done := logr.FromContextOrDiscard(ctx), []step{}
	var first error
	for _, next := range steps {
		if r.now().Sub(one.begun) >= sendOrdersFor {
			break
		}
		err := r.settings.VCenter.Do(ctx, orderOf(one, next))
		var told *vcenter.Error
		switch {
		case err == nil:
			log.Info("ordered", "op", string(next.verb), "machine", next.machine)
			done = append(done, next)
		case !errors.As(err, &told) || isUnanswered(report.Problem{Reason: string(told.Reason)}):
			return eventsForOrders(done), err
		case told.Reason == vcenter.Moved:
			log.V(1).Info("not done", "op", string(next.verb), "machine", next.machine, "because", told.Message)
		case first == nil:
			first = err
		}
		if next.verb == vcenter.Shutdown && (err == nil || told.Reason == vcenter.Failed || told.Reason == vcenter.Forbidden) {
			// If the guest refuses, its time starts too, and the operator powers it off after that.
			r.noteStopping(keyOf(one.group), next.id)
		}
	}
	return eventsForOrders(done), first
}

// takesDown reports whether steps stop or delete something: for those, the operator first checks that the spec is current.
func takesDown(steps []step) bool {
	return slices.ContainsFunc(steps, func(next step) bool {
		switch next.verb {
		case vcenter.Shutdown, vcenter.Stop, vcenter.Resize, vcenter.Destroy, vcenter.DeleteFolder:
			return true
		case vcenter.CreateFolder, vcenter.Clone, vcenter.Start, vcenter.Grow:
		}
		return false
	})
}

func orderOf(one passContext, next step) vcenter.Order {
	return vcenter.Order{
		Group: one.at, Verb: next.verb, Machine: next.machine, ID: next.id, Replaces: next.replaces,
		CPU: one.group.Spec.CPU, MemoryMiB: memoryMiB(one.group),
	}
}

// eventsForOrders returns the events for the orders sent: one for each verb.
func eventsForOrders(done []step) []reconcile.Event {
	events := []reconcile.Event{}
	for len(done) > 0 {
		verb, machines := done[0].verb, []string{}
		done = slices.DeleteFunc(slices.Clone(done), func(one step) bool {
			if one.verb == verb {
				machines = append(machines, one.machine)
			}
			return one.verb == verb
		})
		events = append(events, reconcile.Event{Type: reconcile.Normal, Reason: string(verb), Note: describeOrder(verb, machines)})
	}
	return events
}
