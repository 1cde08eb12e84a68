package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/schema"
	mysqlv1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// damage is what a user does to a child; %s is the cluster's name.
type damage struct{ what, name, changes string }

// foreignMarks are a label and an annotation of another client, which must stay.
const foreignMarks = `"labels":{"team":"other"%s},"annotations":{"note":"by hand"}`

func damages() map[string]damage {
	marks := `"metadata":{` + fmt.Sprintf(foreignMarks, "") + `}`
	unlabelled := `"metadata":{` + fmt.Sprintf(foreignMarks, `,"app.kubernetes.io/managed-by":null`) + `}`
	return map[string]damage{
		"scaled-out":   {"statefulsets", "%s", `{"spec":{"replicas":4},` + marks + `}`},
		"scaled-in":    {"statefulsets", "%s", `{"spec":{"replicas":0},` + marks + `}`},
		"other-image":  {"statefulsets", "%s", `{"spec":{"template":{"spec":{"priorityClassName":"","terminationGracePeriodSeconds":1}}},` + marks + `}`},
		"unlabelled":   {"statefulsets", "%s", `{` + unlabelled + `}`},
		"other-route":  {"services", "%s", `{"spec":{"selector":{"statefulset.kubernetes.io/pod-name":"elsewhere"}},` + marks + `}`},
		"wider-route":  {"services", "%s-read", `{"spec":{"selector":{"statefulset.kubernetes.io/pod-name":null}},` + unlabelled + `}`},
		"not-ready":    {"services", "%s-pods", `{"spec":{"publishNotReadyAddresses":false},` + marks + `}`},
		"other-config": {"configmaps", "%s-config", `{"data":{"my.cnf":"[mysqld]\nsuper_read_only=OFF\n"},` + marks + `}`},
		"more-config":  {"configmaps", "%s-config", `{"data":{"my.cnf":null},` + unlabelled + `}`},
		"other-trust":  {"configmaps", "%s-ca-cert", `{"data":{"ca.crt":"a CA of mine"},` + marks + `}`},
		"token":        {"serviceaccounts", "%s", `{"automountServiceAccountToken":true,` + marks + `}`},
		"disowned":     {"services", "%s-read", `{"metadata":{"ownerReferences":null,` + strings.TrimPrefix(marks, `"metadata":{`) + `}`},
		"no-budget":    {"poddisruptionbudgets", "%s", `{"spec":{"maxUnavailable":"100%"},` + marks + `}`},
	}
}

// TestMySQLClusterHealsItsChildren edits a field of each child as a user would, and then deletes the child.
func TestMySQLClusterHealsItsChildren(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(t, nil)
	stories := map[string]func(*testing.T){}
	for cluster, done := range damages() {
		stories[cluster] = func(t *testing.T) { s.heals(t, cluster, done) }
	}
	sideBySide(t, 3, stories)
}

func (s *site) heals(t *testing.T, cluster string, done damage) {
	t.Helper()
	name := fmt.Sprintf(done.name, cluster)
	s.apply(t, cluster, "secret: root")
	first := s.settled(t, cluster)
	want := content(s.get(t, done.what, name))
	healed := func(marked bool) {
		soon(t, func(ctx context.Context) string {
			found, err := s.of(done.what).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			if marked && (found.GetLabels()["team"] != "other" || found.GetAnnotations()["note"] != "by hand") {
				t.Errorf("the label and the annotation of another client are gone: %v %v", found.GetLabels(), found.GetAnnotations())
			}
			return cmp.Diff(want, withoutMarks(content(found)))
		})
	}

	s.patch(t, done.what, name, done.changes)
	healed(true)
	s.settled(t, cluster)

	t.Log("deleted, it is made again")
	before := s.get(t, done.what, name).GetUID()
	s.remove(t, done.what, name)
	soon(t, func(ctx context.Context) string {
		found, err := s.of(done.what).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if found.GetUID() == before {
			return "it is still the one of before"
		}
		return ""
	})
	last := s.settled(t, cluster)
	if last.Status.Epoch != first.Status.Epoch || last.Status.Primary != first.Status.Primary {
		t.Errorf("the primary was %s in epoch %d and is %s in epoch %d", first.Status.Primary, first.Status.Epoch, last.Status.Primary, last.Status.Epoch)
	}
}

// withoutMarks leaves out what another client put on a child, and what the API server assigns to a child that is made again.
func withoutMarks(said map[string]any) map[string]any {
	if labels, ok := said["labels"].(map[string]string); ok {
		delete(labels, "team")
	}
	if annotations, ok := said["annotations"].(map[string]string); ok {
		delete(annotations, "note")
		if len(annotations) == 0 {
			said["annotations"] = map[string]string(nil)
		}
	}
	return said
}

// TestMySQLClusterHealsMembers deletes the Pods of a replica and of the primary.
func TestMySQLClusterHealsMembers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(t, nil)
	s.apply(t, "db", "secret: root")
	first := s.settled(t, "db")

	t.Log("a replica's Pod is deleted, then the primary's: both come back in their roles")
	for round, pod := range []string{"db-1", "db-0"} {
		s.remove(t, "pods", pod)
		soon(t, func(context.Context) string {
			if ever := s.node.podsEver("db"); len(ever[pod]) != 2 {
				return fmt.Sprintf("Pod %s was made %d times, want twice", pod, len(ever[pod]))
			}
			return ""
		})
		last := s.settled(t, "db")
		if last.Status.Epoch != first.Status.Epoch || last.Status.Primary != "db-0" {
			t.Errorf("round %d: the primary is %s in epoch %d", round, last.Status.Primary, last.Status.Epoch)
		}
	}
	for pod, role := range map[string]string{"db-0": "primary", "db-1": "replica"} {
		soon(t, func(ctx context.Context) string {
			found, err := s.of("pods").Get(ctx, pod, metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			if got := found.GetLabels()["cr.mysqloperator.grtl.github.com/role"]; got != role {
				return fmt.Sprintf("%s is labelled %q", pod, got)
			}
			return ""
		})
	}
}

// leased waits until the primary, which is the first member, has a lease, and knows that; or until it needs none, and the cluster is
// paused.
func (s *site) leased(t *testing.T, name string, want bool) {
	t.Helper()
	soon(t, func(ctx context.Context) string {
		found, err := s.cluster(ctx, name)
		if err != nil {
			return err.Error()
		}
		needs := 0
		s.onVolume(t, name+"-0", func(v *memberVolume) { needs = v.last.Lease })
		if (found.Status.LeaseMilliseconds > 0) != want || (needs > 0) != want || meta.IsStatusConditionTrue(found.Status.Conditions, "Reconciling") {
			return fmt.Sprintf("a lease of %d ms, the primary for %d replicas; %+v", found.Status.LeaseMilliseconds, needs, found.Status.Conditions)
		}
		return ""
	})
}

// TestMySQLClusterConfirmsAPrimaryFirst: a primary without replicas has seconds, and the others may hang. First the record makes its lease
// long.
func TestMySQLClusterConfirmsAPrimaryFirst(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(t, nil)
	s.apply(t, "db", "secret: root, replicas: 3")
	s.settled(t, "db")
	s.leased(t, "db", true)
	n := s.node.network
	n.mu.Lock()
	primary := ""
	for host := range n.running {
		if strings.HasPrefix(host, "db-0.") {
			primary = host
		}
	}
	n.lonely, n.asked = map[string]bool{primary: true}, nil
	n.mu.Unlock()
	soon(t, func(context.Context) string {
		n.mu.Lock()
		defer n.mu.Unlock()
		first := slices.Index(n.asked, "confirmed")
		if first < 0 {
			return "the primary has not been confirmed"
		}
		since := n.asked[max(0, slices.Index(n.asked, primary)):first] // the pass before may ask the others
		if slices.ContainsFunc(since, func(host string) bool { return host != primary }) {
			t.Errorf("others were asked before the primary was confirmed: %v", n.asked)
		}
		return ""
	})
}

// TestMySQLClusterPaused touches nothing while it is paused, except for the primary's lease, and puts everything right afterwards.
func TestMySQLClusterPaused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	o := s.operate(t, nil)
	s.apply(t, "db", "secret: root")
	s.settled(t, "db")
	want := content(s.get(t, "services", "db"))
	s.leased(t, "db", true)

	s.apply(t, "db", "secret: root, paused: true")
	paused := s.until(t, "db", "Paused")
	s.leased(t, "db", false)
	if paused.Status.Phase != "Paused" {
		t.Errorf("the phase is %s", paused.Status.Phase)
	}
	s.told(t, "db", [2]string{"Normal", "Paused"}, why(paused).Message)
	passes, writes := o.restful(t), len(o.wire.written())
	looked := func(change string) {
		soon(t, func(context.Context) string {
			if o.passes(t) <= passes {
				return "the operator has not looked at " + change + " yet"
			}
			return ""
		})
		passes = o.restful(t)
	}
	edited := s.patch(t, "services", "db", `{"spec":{"selector":{"statefulset.kubernetes.io/pod-name":"mine"}}}`)
	looked("the Service")
	s.remove(t, "configmaps", "db-config")
	looked("the ConfigMap")
	if all := o.wire.written(); len(all) != writes {
		t.Errorf("a paused cluster was written to: %v", all[writes:])
	}
	if now := s.get(t, "services", "db"); now.GetResourceVersion() != edited.GetResourceVersion() {
		t.Error("the operator touched the Service that a user edited")
	}

	s.apply(t, "db", "secret: root, paused: false")
	s.settled(t, "db")
	s.leased(t, "db", true)
	same(t, content(s.get(t, "services", "db")), want)
	s.get(t, "configmaps", "db-config")
	s.node.podsOnce(t, "db", 2)
}

// TestMySQLClusterChangedBack changes a cluster and changes it back before anything can come of it.
func TestMySQLClusterChangedBack(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(t, nil)
	s.apply(t, "db", "secret: root")
	s.settled(t, "db")
	want := content(s.get(t, "statefulsets", "db"))

	for range 5 {
		s.apply(t, "db", "secret: root, replicas: 3")
		s.apply(t, "db", "secret: root")
		s.apply(t, "db", "secret: root, durability: {whenReplicasLost: Block}")
	}
	s.apply(t, "db", "secret: root")
	last := s.settled(t, "db")
	soon(t, func(ctx context.Context) string {
		found, err := s.of("statefulsets").Get(ctx, "db", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		return cmp.Diff(want, content(found))
	})
	if last.Status.Epoch != 1 || last.Status.RequiredAcks != 1 || last.Status.ReadySummary != "2/2" {
		t.Errorf("the cluster is not what it was: %+v", last.Status)
	}
	for _, pod := range []string{"db-0", "db-1"} {
		if ever := s.node.podsEver("db")[pod]; len(ever) != 1 {
			t.Errorf("Pod %s was made %d times, want once", pod, len(ever))
		}
	}
}

// TestMySQLClusterWithADeafMember: while a replica's agent does not answer, the cluster continues, and its status reports the member.
func TestMySQLClusterWithADeafMember(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	o := s.operate(t, nil)
	s.apply(t, "db", "secret: root")
	s.settled(t, "db")

	s.node.cutOff("db-1", true)
	waits := s.until(t, "db", "MembersNotReady")
	says(t, why(waits).Message, "the primary takes writes; waiting for db-1")
	if waits.Status.Phase != "Degraded" || waits.Status.Primary != "db-0" || waits.Status.ReadySummary != "1/2" {
		t.Errorf("the status is %+v", waits.Status)
	}
	s.node.cutOff("db-1", false)
	s.settled(t, "db")
	s.node.podsOnce(t, "db", 2)
	if errors := o.log.all(); len(errors) > 0 {
		t.Errorf("a member that does not answer is an observation, no error: %v", errors)
	}
}

// TestMySQLClusterReadyMeansCarriedOut looks at every status that a cluster has while a change is carried out that restarts its members:
// whoever waits for Ready of the new generation must not be told of the old Pods.
func TestMySQLClusterReadyMeansCarriedOut(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(t, nil)
	s.apply(t, "db", "secret: root")
	first := s.settled(t, "db")
	watched, err := s.of("mysqlclusters").Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=db", ResourceVersion: first.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer watched.Stop()

	s.apply(t, "db", "secret: root, config: {max_connections: '5'}")
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		var cluster mysqlv1.MySQLCluster
		select {
		case <-timeout.C:
			t.Fatalf("the cluster was not Ready again after %s", patience)
		case event := <-watched.ResultChan():
			if err := schema.Decode(event.Object.(*unstructured.Unstructured), &cluster); err != nil { //nolint:forcetypeassert // a panic fails the test as well
				t.Fatal(err)
			}
		}
		if is := why(cluster); is.Status != metav1.ConditionTrue || cluster.Status.ObservedGeneration == first.Generation {
			continue
		}
		if !meta.IsStatusConditionTrue(cluster.Status.Conditions, "Durable") {
			t.Error("the cluster is Ready, and commits are not on enough members")
		}
		for _, pod := range []string{"db-0", "db-1"} {
			if ever := s.node.podsEver("db")[pod]; len(ever) != 2 {
				t.Errorf("the cluster is Ready for the changed spec, and Pod %s was made %d times, want twice", pod, len(ever))
			}
		}
		return
	}
}
