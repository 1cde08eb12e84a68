package configmonitor

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/magalix/v1"
	"github.com/mysql-operator/mysql-operator/test/reasons"
)

// watching returns a monitor of the ConfigMap "settings" that is at rest.
func watching() v1.ConfigMonitor {
	monitor := v1.ConfigMonitor{ObjectMeta: metav1.ObjectMeta{Name: "m", Namespace: "shop", Generation: 3}}
	monitor.Spec.ConfigMap = "settings"
	monitor.Status = statusAdopted(monitor, config{name: "settings", found: true, hash: oldHash, version: "1"}, noon.Add(-time.Hour))
	return monitor
}

func changed() config {
	return config{name: "settings", found: true, hash: newHash, version: "2"}
}

// conditions returns a status's conditions as short texts, by type.
func conditions(status v1.ConfigMonitorStatus) map[string]string {
	said := map[string]string{}
	for _, condition := range status.Conditions {
		said[condition.Type] = string(condition.Status) + " " + condition.Reason + ": " + condition.Message
	}
	return said
}

func told(events []reconcile.Event) []string {
	lines := []string{}
	for _, event := range events {
		lines = append(lines, event.Type+" "+event.Reason+": "+event.Note)
	}
	return lines
}

// TestTheStoryOfARestart follows a status from one pass to the next.
func TestTheStoryOfARestart(t *testing.T) {
	t.Parallel()
	monitor := watching()
	same(t, told(eventsFor(v1.ConfigMonitorStatus{}, monitor.Status)), []string{`Normal Watching: watches ConfigMap "settings"`})

	planned := []v1.RestartedWorkload{entry(kindDeployment, "web", v1.ActionPending), entry(kindPod, "alone", v1.ActionLeftAlone)}
	planned[1].Message = "it has no owner"
	status := statusPlanned(monitor, changed(), planned, noon)
	same(t, status.ObservedHash, oldHash)
	same(t, isUnderWay(status.LastRestart), true)
	same(t, conditions(status), map[string]string{
		"Ready":       `False Restarting: the data of ConfigMap "settings" changed: 1 of 2 workloads to restart, now Deployment web: Pending`,
		"Reconciling": `True Restarting: the data of ConfigMap "settings" changed: 1 of 2 workloads to restart, now Deployment web: Pending`,
	})
	same(t, told(eventsFor(monitor.Status, status)), []string{
		`Normal Restarting: the data of ConfigMap "settings" changed: 1 of 2 workloads to restart, now Deployment web: Pending`,
	})

	monitor.Status = status
	rolling := []v1.RestartedWorkload{withAction(planned[0], v1.ActionRolling, "1 of 3 Pods replaced", noon), planned[1]}
	status = statusRestarting(monitor, rolling, noon.Add(time.Second))
	same(t, status.ObservedHash, oldHash)
	same(t, conditions(status)["Ready"], `False Restarting: the data of ConfigMap "settings" changed: 1 of 2 workloads to restart, now Deployment web: Rolling, 1 of 3 Pods replaced`)
	same(t, told(eventsFor(monitor.Status, status)), []string{})

	monitor.Status = status
	done := []v1.RestartedWorkload{withAction(planned[0], v1.ActionRolled, "", noon.Add(time.Minute)), planned[1]}
	status = statusRestarting(monitor, done, noon.Add(time.Minute))
	same(t, status.ObservedHash, newHash)
	same(t, status.LastRestart.CompletionTime.Time.Equal(noon.Add(time.Minute)), true)
	same(t, conditions(status), map[string]string{
		"Ready": `True PodsLeftAlone: watches ConfigMap "settings"; the last restart left alone: Pod alone (it has no owner)`,
	})
	same(t, told(eventsFor(monitor.Status, status)), []string{
		`Normal Restarted: the data of ConfigMap "settings" changed; restarted: Deployment web`,
		`Warning PodsLeftAlone: the data of ConfigMap "settings" changed; left alone: Pod alone (it has no owner)`,
	})

	monitor.Status = status
	after := statusAtRest(monitor, noon.Add(time.Hour))
	same(t, after, status)
	same(t, told(eventsFor(status, after)), []string{})
}

func TestNothingToRestartIsARestartToo(t *testing.T) {
	t.Parallel()
	monitor := watching()
	status := statusPlanned(monitor, changed(), nil, noon)
	same(t, status.ObservedHash, newHash)
	same(t, conditions(status), map[string]string{"Ready": `True Watching: watches ConfigMap "settings"`})
	same(t, told(eventsFor(monitor.Status, status)), []string{`Normal NothingToRestart: the data of ConfigMap "settings" changed; nothing was restarted`})
}

func TestAnotherConfigMapEndsARestart(t *testing.T) {
	t.Parallel()
	monitor := watching()
	monitor.Status = statusPlanned(monitor, changed(), []v1.RestartedWorkload{entry(kindDeployment, "api", v1.ActionRolled), entry(kindDeployment, "web", v1.ActionRolling)}, noon)
	monitor.Spec.ConfigMap = "other"
	status := statusAdopted(monitor, config{name: "other", found: true, hash: "of other", version: "9"}, noon)
	same(t, summary(status.LastRestart.Workloads), []string{"Deployment api: Rolled", "Deployment web: Abandoned"})
	same(t, []string{status.ObservedConfigMap, status.ObservedHash}, []string{"other", "of other"})
	same(t, told(eventsFor(monitor.Status, status)), []string{`Normal Watching: watches ConfigMap "other"`})
}

func TestProblems(t *testing.T) {
	t.Parallel()
	monitor := watching()
	for story, test := range map[string]struct {
		found report.Problem
		want  string
	}{
		"no ConfigMap":    {notFound(monitor), `ConfigMapNotFound: spec.configMap: ConfigMap "settings" does not exist in namespace "shop"; the operator restarts nothing until it exists: create it, or name another ConfigMap`},
		"too much":        {tooManyPods(1001), `TooManyPods: spec.podSelector selects 1001 workloads, more than the 1000 that one restart can record: use more labels, or run the Pods by Deployments`},
		"it does not end": {stuckAt(entry(kindDeployment, "web", v1.ActionRolling)), `RestartStuck: the restart makes no progress: Deployment web: Rolling`},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			status := previousStatus(monitor)
			conditionsOf(&status, noon).Problem(test.found)
			same(t, conditions(status), map[string]string{"Ready": "False " + test.want, "Stalled": "True " + test.want})
			same(t, told(eventsFor(monitor.Status, status)), []string{"Warning " + test.want})

			again := monitor
			again.Status = status
			repeated := previousStatus(again)
			conditionsOf(&repeated, noon.Add(time.Hour)).Problem(test.found)
			same(t, repeated, status)

			same(t, conditions(statusAtRest(again, noon)), map[string]string{"Ready": `True Watching: watches ConfigMap "settings"`})
		})
	}
}

func TestLongListsAreCutShort(t *testing.T) {
	t.Parallel()
	restart := &v1.Restart{}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		restart.Workloads = append(restart.Workloads, entry(kindPod, name, v1.ActionReplaced))
	}
	same(t, restarted(restart), "Pod a, Pod b, Pod c, Pod d, Pod e, and 2 more")
}

// TestReasonsAreDocumented: the document explains every reason that users find in a status.
func TestReasonsAreDocumented(t *testing.T) {
	t.Parallel()
	reasons.CheckDocumented(t, "../../../docs/configmonitor.md", reasons.Constants(t, ".", "reason"))
	reasons.CheckDocumented(t, "../../../docs/configmonitor.md", map[string]string{"ReasonForbidden": report.ReasonForbidden, "ReasonRejected": report.ReasonRejected})
}
