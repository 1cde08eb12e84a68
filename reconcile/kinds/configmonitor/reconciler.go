package configmonitor

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/magalix/v1"
)

const (
	// stepEvery is the time between passes during a restart; helpEvery is that of a restart which waits for a user.
	stepEvery = 2 * time.Second
	helpEvery = 15 * time.Second
	// lookEvery is the average time between two reads of workloads. Each read is one request, and a restart may have a thousand workloads.
	lookEvery = 40 * time.Millisecond
)

type reconciler struct {
	api      *reconcile.Client
	resource apischema.GroupVersionResource
	now      func() time.Time
}

// Reconcile makes one pass over one monitor. The cache suffices to see that there is nothing to do. To plan or continue a restart,
// Reconcile reads the ConfigMap from the API server.
func (r *reconciler) Reconcile(ctx context.Context, object *unstructured.Unstructured) (reconcile.Outcome, error) {
	var monitor v1.ConfigMonitor
	if err := schema.Decode(object, &monitor); err != nil {
		return reconcile.Outcome{}, err
	}
	if monitor.DeletionTimestamp != nil {
		return reconcile.Outcome{}, nil
	}
	found, err := r.cachedConfig(monitor)
	if err != nil {
		return reconcile.Outcome{}, err
	}
	next := nextStep(monitor.Status, found)
	if next == stepBegin || next == stepContinue {
		if found, err = r.liveConfig(ctx, monitor); err != nil {
			return r.failed(monitor, err)
		}
		next = nextStep(monitor.Status, found)
	}
	return r.take(ctx, monitor, found, next)
}

func (r *reconciler) take(ctx context.Context, monitor v1.ConfigMonitor, found config, next step) (reconcile.Outcome, error) {
	switch next {
	case stepAdopt:
		return r.report(monitor, adopted(monitor, found, r.now()), nil)
	case stepRest:
		return r.report(monitor, rested(monitor, r.now()), nil)
	case stepBegin:
		return r.begin(ctx, monitor, found)
	case stepContinue:
		return r.carryOn(ctx, monitor)
	case stepWait:
	}
	return r.help(monitor, carried(monitor), notFound(monitor), 0)
}

// begin plans a restart. The operator does nothing before the plan is written.
func (r *reconciler) begin(ctx context.Context, monitor v1.ConfigMonitor, found config) (reconcile.Outcome, error) {
	others, err := r.siblings(monitor, found)
	if err != nil {
		return reconcile.Outcome{}, err
	}
	running, err := r.runningPods(ctx, monitor)
	if err != nil {
		return r.failed(monitor, err)
	}
	workloads := plan(running, others, r.now())
	if len(workloads) > maxWorkloads {
		return r.help(monitor, carried(monitor), tooManyPods(len(workloads)), helpEvery)
	}
	return r.report(monitor, begun(monitor, found, workloads, r.now()), nil)
}

// carryOn takes the next step of the restart in progress.
func (r *reconciler) carryOn(ctx context.Context, monitor v1.ConfigMonitor) (reconcile.Outcome, error) {
	seen, err := r.observe(ctx, monitor)
	if err != nil {
		return r.failed(monitor, err)
	}
	workloads := advance(monitor.Status.LastRestart.Workloads, seen)
	err = r.act(ctx, monitor, workloads, seen)
	// The status records what was done, also after a failure.
	status := continued(monitor, workloads, seen.now)
	if entry, is := stuck(workloads, seen); is && err == nil {
		return r.help(monitor, status, stuckAt(entry), helpEvery)
	}
	return r.report(monitor, status, err)
}

// report ends a pass. An error that a user can fix becomes the problem; any other error leaves the conditions as they are.
func (r *reconciler) report(monitor v1.ConfigMonitor, status v1.ConfigMonitorStatus, err error) (reconcile.Outcome, error) {
	if found := problemOf(err); found != nil {
		return r.help(monitor, status, *found, helpEvery)
	}
	outcome := reconcile.Outcome{Status: status, Events: tell(monitor.Status, status)}
	if isUnderWay(status.LastRestart) {
		outcome.Again = max(stepEvery, looksTake(status.LastRestart))
	}
	return outcome, err
}

// looksTake returns the time that the reads of one pass must be spread over. It grows with the number of workloads that are not done.
func looksTake(restart *v1.Restart) time.Duration {
	if restart == nil {
		return 0
	}
	looks := 0
	for _, entry := range restart.Workloads {
		if entry.Kind != kindPod && !isDone(entry) {
			looks++
		}
	}
	return time.Duration(looks) * lookEvery
}

// failed ends a pass that could not read what it needs.
func (r *reconciler) failed(monitor v1.ConfigMonitor, err error) (reconcile.Outcome, error) {
	if found := problemOf(err); found != nil {
		return r.help(monitor, carried(monitor), *found, helpEvery)
	}
	return reconcile.Outcome{}, err
}

// help ends a pass that found a problem.
func (r *reconciler) help(monitor v1.ConfigMonitor, status v1.ConfigMonitorStatus, found problem, again time.Duration) (reconcile.Outcome, error) {
	setProblem(&status, found, r.now())
	if again > 0 {
		again = max(again, looksTake(status.LastRestart))
	}
	return reconcile.Outcome{Status: status, Events: tell(monitor.Status, status), Again: again}, nil
}
