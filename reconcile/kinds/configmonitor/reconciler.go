package configmonitor

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/magalix/v1"
)

const (
	// restartInterval is the time between passes during a restart; stalledInterval is that of a restart which waits for a user.
	restartInterval = 2 * time.Second
	stalledInterval = 15 * time.Second
	// readSpacing is the average time between two reads of workloads. Each read is one request, and a restart may have a thousand workloads.
	readSpacing = 40 * time.Millisecond
)

type reconciler struct {
	reader   *reconcile.Reader
	resource apischema.GroupVersionResource
	now      func() time.Time
}

// Reconcile makes one pass over one monitor. The cache suffices to see that there is nothing to do. To plan or continue a restart,
// Reconcile reads the ConfigMap from the API server.
func (r *reconciler) Reconcile(ctx context.Context, client *reconcile.Client, object *unstructured.Unstructured) (reconcile.Outcome, error) {
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
	return r.runStep(ctx, client, monitor, found, next)
}

func (r *reconciler) runStep(ctx context.Context, client *reconcile.Client, monitor v1.ConfigMonitor, found config, next step) (reconcile.Outcome, error) {
	switch next {
	case stepAdopt:
		return r.report(monitor, statusAdopted(monitor, found, r.now()), nil)
	case stepRest:
		return r.report(monitor, statusAtRest(monitor, r.now()), nil)
	case stepBegin:
		return r.begin(ctx, monitor, found)
	case stepContinue:
		return r.continueRestart(ctx, client, monitor)
	case stepWait:
	}
	return r.reportProblem(monitor, previousStatus(monitor), notFound(monitor), 0)
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
		return r.reportProblem(monitor, previousStatus(monitor), tooManyPods(len(workloads)), stalledInterval)
	}
	return r.report(monitor, statusPlanned(monitor, found, workloads, r.now()), nil)
}

// continueRestart takes the next step of the restart in progress.
func (r *reconciler) continueRestart(ctx context.Context, client *reconcile.Client, monitor v1.ConfigMonitor) (reconcile.Outcome, error) {
	seen, err := r.observe(ctx, monitor)
	if err != nil {
		return r.failed(monitor, err)
	}
	workloads := advance(monitor.Status.LastRestart.Workloads, seen)
	err = act(ctx, client, monitor, workloads, seen)
	// The status records what was done, also after a failure.
	status := statusRestarting(monitor, workloads, seen.now)
	if entry, is := stuck(workloads, seen); is && err == nil {
		return r.reportProblem(monitor, status, stuckAt(entry), stalledInterval)
	}
	return r.report(monitor, status, err)
}

// report ends a pass. An error that a user can fix becomes the problem; any other error leaves the conditions as they are.
func (r *reconciler) report(monitor v1.ConfigMonitor, status v1.ConfigMonitorStatus, err error) (reconcile.Outcome, error) {
	if found := problemOf(err); found != nil {
		return r.reportProblem(monitor, status, *found, stalledInterval)
	}
	outcome := reconcile.Outcome{Status: status, Events: eventsFor(monitor.Status, status)}
	if isUnderWay(status.LastRestart) {
		outcome.RequeueAfter = max(restartInterval, readsDuration(status.LastRestart))
	}
	return outcome, err
}

// readsDuration returns the time that the reads of one pass must be spread over. It grows with the number of workloads that are not done.
func readsDuration(restart *v1.Restart) time.Duration {
	if restart == nil {
		return 0
	}
	looks := 0
	for _, entry := range restart.Workloads {
		if entry.Kind != kindPod && !isDone(entry) {
			looks++
		}
	}
	return time.Duration(looks) * readSpacing
}

// failed ends a pass that could not read what it needs.
func (r *reconciler) failed(monitor v1.ConfigMonitor, err error) (reconcile.Outcome, error) {
	if found := problemOf(err); found != nil {
		return r.reportProblem(monitor, previousStatus(monitor), *found, stalledInterval)
	}
	return reconcile.Outcome{}, err
}

// reportProblem ends a pass that found a problem.
func (r *reconciler) reportProblem(monitor v1.ConfigMonitor, status v1.ConfigMonitorStatus, found report.Problem, again time.Duration) (reconcile.Outcome, error) {
	conditionsOf(&status, r.now()).Problem(found)
	if again > 0 {
		again = max(again, readsDuration(status.LastRestart))
	}
	return reconcile.Outcome{Status: status, Events: eventsFor(monitor.Status, status), RequeueAfter: again}, nil
}
