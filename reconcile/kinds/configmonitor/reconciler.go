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
	// stepEvery is how soon to look again at a restart under way; helpEvery at one that waits for somebody's help.
	stepEvery = 2 * time.Second
	helpEvery = 15 * time.Second
	// lookEvery is the time between two looks at workloads on the average. Each is one request, and a restart may be of a thousand.
	lookEvery = 40 * time.Millisecond
)

type reconciler struct {
	api      *reconcile.Client
	resource apischema.GroupVersionResource
	now      func() time.Time
}

// Reconcile makes one pass over one monitor. What the cache says is enough to see that there is nothing to do; a restart is planned and
// carried on by what the API server says.
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

// begin plans a restart. Nothing is done before the plan is written.
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

// carryOn brings the restart under way a step further.
func (r *reconciler) carryOn(ctx context.Context, monitor v1.ConfigMonitor) (reconcile.Outcome, error) {
	seen, err := r.observe(ctx, monitor)
	if err != nil {
		return r.failed(monitor, err)
	}
	workloads := advance(monitor.Status.LastRestart.Workloads, seen)
	err = r.act(ctx, monitor, workloads, seen)
	// Also after a failure: what was done is noted.
	status := continued(monitor, workloads, seen.now)
	if entry, is := stuck(workloads, seen); is && err == nil {
		return r.help(monitor, status, stuckAt(entry), helpEvery)
	}
	return r.report(monitor, status, err)
}

// report ends a pass. An error that a person can do something about becomes the problem; any other leaves the conditions as they are.
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

// looksTake is how long the looks of one pass have to last, as there are more of them the more workloads are not done.
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

// failed ends a pass that could not see what it has to.
func (r *reconciler) failed(monitor v1.ConfigMonitor, err error) (reconcile.Outcome, error) {
	if found := problemOf(err); found != nil {
		return r.help(monitor, carried(monitor), *found, helpEvery)
	}
	return reconcile.Outcome{}, err
}

// help ends a pass that came upon a problem.
func (r *reconciler) help(monitor v1.ConfigMonitor, status v1.ConfigMonitorStatus, found problem, again time.Duration) (reconcile.Outcome, error) {
	setProblem(&status, found, r.now())
	if again > 0 {
		again = max(again, looksTake(status.LastRestart))
	}
	return reconcile.Outcome{Status: status, Events: tell(monitor.Status, status), Again: again}, nil
}
