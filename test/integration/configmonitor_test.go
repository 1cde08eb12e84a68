package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	magalixv1 "github.com/mysql-operator/mysql-operator/schema/magalix/v1"
	"github.com/mysql-operator/mysql-operator/test/integration/internal/apiserver"
	"github.com/mysql-operator/mysql-operator/test/sample"
)

// replaced fails the test unless each of a workload's Pods was replaced once, and so many stayed ready all the time.
func (s *shop) replaced(name string, replicas, fewest int) {
	s.t.Helper()
	s.serving(name, replicas)
	ever, ready := s.kubelet.ever(name)
	if ever != 2*replicas {
		s.t.Errorf("%s has had %d Pods, want each of %d replaced once", name, ever, replicas)
	}
	if ready < fewest {
		s.t.Errorf("only %d Pods of %s were ready at one time, want at least %d", ready, name, fewest)
	}
}

// untouched fails the test if a workload has had more Pods than these.
func (s *shop) untouched(name string, before []string) {
	s.t.Helper()
	ever, _ := s.kubelet.ever(name)
	if now := s.uids(name); !slices.Equal(now, before) || ever != len(before) {
		s.t.Errorf("%s has the Pods %v, of %d that were ever there; want those of before, %v", name, now, ever, before)
	}
}

// actions are what was done at a monitor's last restart.
func actions(monitor magalixv1.ConfigMonitor) []string {
	done := []string{}
	for _, entry := range monitor.Status.LastRestart.Workloads {
		done = append(done, fmt.Sprintf("%s %s %s", entry.Kind, strings.TrimRight(entry.Name, "0123456789"), entry.Action))
	}
	return done
}

func TestConfigMonitorFollowsTheLab(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.settings("Welcome to Kubernetes!")
	s.run("Deployment", "frontend", 3)
	before := s.uids("frontend")
	operator := s.operate(0)
	s.watch("flakapp-config-monitor", "app: frontend")
	hash := s.monitor(t.Context(), "flakapp-config-monitor").Status.ObservedHash

	writes := operator.writes.count()
	s.patch(coreResource("configmaps"), "settings", `{"metadata":{"labels":{"seen":"yes"},"annotations":{"note":"metadata only"}}}`)
	s.kubelet.observe("frontend", 3)
	s.say("Welcome to Operators!")
	monitor := s.restarted("flakapp-config-monitor", hash, "Watching")
	s.replaced("frontend", 3, 3)
	same(t, actions(monitor), []string{"Deployment frontend Rolled"})
	same(t, monitor.Status.LastRestart.Reason, "DataChanged")
	note := s.told("flakapp-config-monitor", "Restarted")
	same(t, note, `the data of ConfigMap "settings" changed; restarted: Deployment frontend`)
	if sets := s.list(t.Context(), appsResource("replicasets")); len(sets) != 2 {
		t.Errorf("the Deployment was rolled %d times, want once: the change of metadata is none", len(sets)-1)
	}
	if slices.Equal(before, s.uids("frontend")) {
		t.Error("the Pods are the same as before")
	}
	t.Logf("one restart took %d writes", operator.writes.count()-writes)
}

func TestConfigMonitorRollsEveryKindOfOwner(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	node := object(t, "apiVersion: v1\nkind: Node\nmetadata: {name: "+s.namespace+", labels: {kubernetes.io/hostname: "+s.namespace+"}}\n")
	nodes := s.Dynamic.Resource(coreResource("nodes"))
	if _, err := nodes.Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nodes.Delete(context.WithoutCancel(t.Context()), node.GetName(), metav1.DeleteOptions{}) })
	s.settings("one")
	s.run("Deployment", "web", 2)
	s.run("StatefulSet", "db", 3)
	s.runOnNode("log", node.GetName())
	s.operate(0)
	s.watch("m", "app: frontend")
	hash := s.monitor(t.Context(), "m").Status.ObservedHash
	s.kubelet.observe("web", 2)
	s.kubelet.observe("db", 3)

	s.say("two")
	monitor := s.restarted("m", hash, "Watching")
	same(t, actions(monitor), []string{"DaemonSet log Rolled", "Deployment web Rolled", "StatefulSet db Rolled"})
	s.replaced("web", 2, 2)
	s.replaced("db", 3, 2)
	s.replaced("log", 1, 0)
}

func TestConfigMonitorReplacesPodsOneByOne(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.settings("one")
	s.run("ReplicaSet", "worker", 3)
	s.alone("lonely", "name: lonely, app: frontend")
	s.alone("half", "name: half, tier: web")
	s.create(budgets(), object(t, "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: worker}\nspec: {minAvailable: 3, selector: {matchLabels: {name: worker}}}\n"))
	lonely, half, workers := s.uids("lonely"), s.uids("half"), s.uids("worker")
	s.operate(0)
	s.watch("m", "app: frontend")
	s.watch("both-labels", "app: frontend, tier: web")
	hash := s.monitor(t.Context(), "m").Status.ObservedHash
	s.kubelet.observe("worker", 3)

	t.Log("a budget that allows no disruption is respected")
	s.say("two")
	s.until("m", "Restarting", func(monitor magalixv1.ConfigMonitor) bool {
		return strings.Contains(said(monitor), "PodDisruptionBudget")
	})
	s.untouched("worker", workers)

	t.Log("when it allows one, one after the other is replaced")
	s.patch(budgets(), "worker", `{"spec":{"minAvailable":2}}`)
	monitor := s.restarted("m", hash, "PodsLeftAlone")
	s.replaced("worker", 3, 2)
	same(t, len(monitor.Status.LastRestart.Workloads), 4)
	s.untouched("lonely", lonely)
	s.untouched("half", half)
	if note := s.told("m", "PodsLeftAlone"); !strings.Contains(note, "Pod lonely (no controller would create it again") {
		t.Errorf("the event tells of the Pod that was left alone: %q", note)
	}
	s.told("both-labels", "NothingToRestart")
}

func TestConfigMonitorNoticesWhatChangedWhileItWasDown(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.settings("one")
	s.run("Deployment", "web", 2)
	first := s.operate(0)
	s.watch("m", "app: frontend")
	hash := s.monitor(t.Context(), "m").Status.ObservedHash
	before := s.uids("web")

	t.Log("deleted and made again with the same data while the operator was down: no change")
	first.end(t)
	s.remove(coreResource("configmaps"), "settings")
	s.settings("one")
	second := s.operate(0)
	s.patch(configMonitors().GVR(), "m", `{"spec":{"podSelector":{"name":"web"}}}`)
	s.ready("m", "Watching")
	s.untouched("web", before)

	t.Log("changed while the operator was down")
	second.end(t)
	s.say("two")
	s.operate(0)
	s.restarted("m", hash, "Watching")
	s.replaced("web", 2, 0)
}

func TestConfigMonitorWithoutItsConfigMap(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.run("Deployment", "web", 2)
	before := s.uids("web")
	s.operate(0)
	s.create(configMonitors().GVR(), object(t, "apiVersion: magalix.com/v1\nkind: ConfigMonitor\nmetadata: {name: m}\nspec: {configMap: settings, podSelector: {app: frontend}}\n"))
	monitor := s.ready("m", "ConfigMapNotFound")
	if message := said(monitor); !strings.Contains(message, `ConfigMap "settings" does not exist in namespace "`+s.namespace+`"`) {
		t.Errorf("the condition says %q", message)
	}

	t.Log("a new ConfigMap restarts nothing")
	s.settings("one")
	hash := s.ready("m", "Watching").Status.ObservedHash
	s.untouched("web", before)

	t.Log("nor does one that is deleted and made again")
	s.remove(coreResource("configmaps"), "settings")
	s.ready("m", "ConfigMapNotFound")
	s.settings("one")
	s.ready("m", "Watching")
	s.untouched("web", before)

	t.Log("but one that comes back with other data does")
	s.remove(coreResource("configmaps"), "settings")
	s.ready("m", "ConfigMapNotFound")
	s.kubelet.observe("web", 2)
	s.settings("two")
	s.restarted("m", hash, "Watching")
	s.replaced("web", 2, 2)
}

func TestConfigMonitorsTogetherRestartOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.settings("one")
	s.run("Deployment", "web", 2)
	s.run("ReplicaSet", "worker", 2)
	s.operate(0)
	names := []string{"first", "second", "third"}
	for _, name := range names {
		s.watch(name, "app: frontend")
	}
	hash := s.monitor(t.Context(), "first").Status.ObservedHash
	s.say("two")
	for _, name := range names {
		s.restarted(name, hash, "Watching")
	}
	s.replaced("web", 2, 0)
	s.replaced("worker", 2, 0)
	if sets := s.list(t.Context(), appsResource("replicasets")); len(sets) != 3 {
		t.Errorf("the Deployment was rolled %d times, want once", len(sets)-2)
	}
}

func TestConfigMonitorAfterBadData(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.settings("good")
	s.run("ReplicaSet", "worker", 3)
	before := s.uids("worker")
	s.operate(0)
	s.watch("m", "app: frontend")
	hash := s.monitor(t.Context(), "m").Status.ObservedHash

	t.Log("Pods do not come up with the bad data: one is lost, the others stay")
	s.kubelet.setBroken(true)
	s.say("bad")
	s.until("m", "Restarting", func(monitor magalixv1.ConfigMonitor) bool {
		return strings.Contains(said(monitor), "waits until the Pods of ReplicaSet/worker that replace it are ready")
	})
	kept := 0
	for _, uid := range s.uids("worker") {
		if slices.Contains(before, uid) {
			kept++
		}
	}
	same(t, kept, 2)

	t.Log("back to the good data: that is a change, too, and ends well")
	s.say("good")
	s.until("m", "Restarting", func(monitor magalixv1.ConfigMonitor) bool { return monitor.Status.LastRestart.Hash == hash })
	s.kubelet.setBroken(false)
	monitor := s.until("m", "Watching", func(monitor magalixv1.ConfigMonitor) bool { return monitor.Status.LastRestart.CompletionTime != nil })
	same(t, monitor.Status.ObservedHash, hash)
	s.serving("worker", 3)
	for _, uid := range s.uids("worker") {
		if slices.Contains(before, uid) {
			t.Errorf("Pod %s was not replaced: which data it runs with is unknown", uid)
		}
	}
}

// TestConfigMonitorSurvivesEveryCrash lets the operator die after each of its writes in turn, right after the API server has carried it
// out and before the operator hears of that. Whoever takes over ends the restart: nothing is lost, nothing is done twice.
func TestConfigMonitorSurvivesEveryCrash(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 2)
	s := newShop(t)
	s.settings("0")
	s.run("Deployment", "web", 2)
	s.run("ReplicaSet", "worker", 2)
	first := s.operate(0)
	s.watch("m", "app: frontend")
	first.end(t)

	crashes := 0
	for after := 1; ; after++ {
		hash := s.monitor(t.Context(), "m").Status.ObservedHash
		web, _ := s.kubelet.ever("web")
		worker, _ := s.kubelet.ever("worker")
		s.say(fmt.Sprint(after))
		dying := s.operate(after)
		crashed := s.dies(dying, hash)
		dying.end(t)
		last := s.operate(0)
		s.restarted("m", hash, "Watching")
		last.end(t)

		s.serving("web", 2)
		s.serving("worker", 2)
		if ever, _ := s.kubelet.ever("web"); ever != web+2 {
			t.Errorf("after a crash at write %d the Deployment has made %d new Pods, want 2", after, ever-web)
		}
		if ever, _ := s.kubelet.ever("worker"); ever != worker+2 {
			t.Errorf("after a crash at write %d the ReplicaSet has made %d new Pods, want 2", after, ever-worker)
		}
		if !crashed {
			break
		}
		crashes++
	}
	if crashes < 5 {
		t.Errorf("the operator died %d times: a restart of two workloads takes more writes", crashes)
	}
	t.Logf("the operator died %d times, at every write of a restart", crashes)
}

// dies waits until an operator has died or the restart is complete, and says which.
func (s *shop) dies(operator *monitoring, hash string) (crashed bool) {
	s.t.Helper()
	apiserver.Eventually(s.t, func(ctx context.Context) string {
		crashed = operator.writes.count() == operator.writes.after
		if crashed || s.monitor(ctx, "m").Status.ObservedHash != hash {
			return ""
		}
		return fmt.Sprintf("the operator has written %d times, the restart is not complete", operator.writes.count())
	})
	return crashed
}

// alone makes a Pod that nothing controls.
func (s *shop) alone(name, labels string) {
	s.t.Helper()
	s.create(coreResource("pods"), object(s.t, fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s, labels: {%s}}\nspec: {containers: [{name: app, image: none}]}\n", name, labels)))
	s.serving(name, 1)
}

// runOnNode makes a DaemonSet for one node.
func (s *shop) runOnNode(name, node string) {
	s.t.Helper()
	made := object(s.t, fmt.Sprintf("apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: %[1]s}\nspec:"+podTemplate, name))
	affinity := map[string]any{"kubernetes.io/hostname": node}
	if err := unstructured.SetNestedMap(made.Object, affinity, "spec", "template", "spec", "nodeSelector"); err != nil {
		s.t.Fatal(err)
	}
	s.create(appsResource("daemonsets"), made)
	s.serving(name, 1)
}

func budgets() apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}
}
