package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/mysql-operator/mysql-operator/reconcile"
	mysqlcluster "github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster"
	"github.com/mysql-operator/mysql-operator/schema"
	mysqlv1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
	"github.com/mysql-operator/mysql-operator/test/integration/internal/apiserver"
)

func mysqlClusters() schema.Kind { return schema.Kinds()[0] }

// site is a namespace in which MySQLClusters are served and their members simulated.
type site struct {
	*place
	node *node
}

// newSite makes a site on the control plane that the tests share; its Secret "root" holds a password.
func newSite(t *testing.T) *site {
	t.Helper()
	return newSiteOn(t, pool.Shared(t))
}

func newSiteOn(t *testing.T, server *apiserver.Server) *site {
	t.Helper()
	s := &site{place: newPlace(t, server, mysqlClusters())}
	s.node = startNode(t, s)
	s.settle(t, s.controller())
	s.grant(t, operatorRules())
	s.password(t, "root", "secret")
	return s
}

// controller is the kind as the site's operators have it.
func (s *site) controller() reconcile.Controller {
	return mysqlcluster.Controller(mysqlClusters(), mysqlcluster.Operator{Image: "operator:test", Home: s.home, Namespace: "operators"})
}

// operatorRules are what the manifests grant an operator in a namespace.
func operatorRules() []rbacv1.PolicyRule {
	return rulesOf(mysqlcluster.Controller(mysqlClusters(), mysqlcluster.Operator{}))
}

// password makes, or changes, a Secret with root's password.
func (s *site) password(t *testing.T, name, password string) {
	t.Helper()
	s.content(t, name, map[string]any{"stringData": map[string]any{"password": password}})
}

// content makes a Secret, or changes it, to hold this and nothing else.
func (s *site) content(t *testing.T, name string, fields map[string]any) {
	t.Helper()
	made := object(t, "{apiVersion: v1, kind: Secret, metadata: {name: "+name+"}}")
	maps.Copy(made.Object, fields)
	_ = s.of("secrets").Delete(t.Context(), name, metav1.DeleteOptions{})
	if _, err := s.of("secrets").Create(t.Context(), made, metav1.CreateOptions{FieldManager: "someone"}); err != nil {
		t.Fatal(err)
	}
}

// manifest is a MySQLCluster with these lines in its spec.
func manifest(t *testing.T, name, spec string) *unstructured.Unstructured {
	t.Helper()
	return object(t, fmt.Sprintf("apiVersion: cr.mysqloperator.grtl.github.com/v1\nkind: MySQLCluster\nmetadata: {name: %q}\nspec: {%s}\n", name, spec))
}

// apply makes a cluster, or changes its spec, as kubectl apply does.
func (s *site) apply(t *testing.T, name, spec string) {
	t.Helper()
	if err := s.tryApply(t, name, spec); err != nil {
		t.Fatal(err)
	}
}

func (s *site) tryApply(t *testing.T, name, spec string) error {
	t.Helper()
	_, err := s.of("mysqlclusters").Apply(t.Context(), name, manifest(t, name, spec), metav1.ApplyOptions{FieldManager: "user", Force: true})
	return err
}

// cluster reads a cluster; strictly, so that a status that the definition does not know is a failure.
func (s *site) cluster(ctx context.Context, name string) (mysqlv1.MySQLCluster, error) {
	var cluster mysqlv1.MySQLCluster
	found, err := s.of("mysqlclusters").Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return cluster, err
	}
	err = schema.DecodeStrict(found, &cluster)
	return cluster, err
}

// until waits until a cluster's Ready condition gives this reason for the spec as it is now.
func (s *site) until(t *testing.T, name, reason string) mysqlv1.MySQLCluster {
	t.Helper()
	var cluster mysqlv1.MySQLCluster
	soon(t, func(ctx context.Context) string {
		var err error
		if cluster, err = s.cluster(ctx, name); err != nil {
			return err.Error()
		}
		if was := why(cluster); was.Reason != reason || cluster.Status.ObservedGeneration != cluster.Generation {
			return fmt.Sprintf("cluster %s is %s at generation %d of %d: %s; wanted %s", name, was.Reason, cluster.Status.ObservedGeneration, cluster.Generation, was.Message, reason)
		}
		return ""
	})
	return cluster
}

// ready waits until a cluster is as it should be.
func (s *site) ready(t *testing.T, name string) mysqlv1.MySQLCluster {
	t.Helper()
	return s.until(t, name, "AllMembersReady")
}

// settled waits until a cluster is as it should be and replicates all that it acknowledges.
func (s *site) settled(t *testing.T, name string) mysqlv1.MySQLCluster {
	t.Helper()
	var cluster mysqlv1.MySQLCluster
	soon(t, func(ctx context.Context) string {
		var err error
		if cluster, err = s.cluster(ctx, name); err != nil {
			return err.Error()
		}
		durable := meta.IsStatusConditionTrue(cluster.Status.Conditions, "Durable")
		isLeased := cluster.Status.LeaseMilliseconds > 0 || cluster.Status.RequiredAcks == 0
		if why(cluster).Reason != "AllMembersReady" || !durable || !isLeased || cluster.Status.ObservedGeneration != cluster.Generation {
			return fmt.Sprintf("cluster %s: %+v", name, cluster.Status)
		}
		return ""
	})
	return cluster
}

func why(cluster mysqlv1.MySQLCluster) metav1.Condition { return readyIn(cluster.Status.Conditions) }

// says fails the test unless a message holds all of these words.
func says(t *testing.T, message string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(message, word) {
			t.Errorf("%q does not say %q", message, word)
		}
	}
}

// stalled fails the test unless a cluster says everywhere that it needs help, with a message that holds these words.
func (s *site) stalled(t *testing.T, cluster mysqlv1.MySQLCluster, words ...string) {
	t.Helper()
	ready, stalled := why(cluster), meta.FindStatusCondition(cluster.Status.Conditions, mysqlv1.ConditionStalled)
	says(t, ready.Message, words...)
	if ready.Status != metav1.ConditionFalse || stalled == nil || stalled.Reason != ready.Reason || stalled.Message != ready.Message {
		t.Errorf("Ready is %+v and Stalled is %+v, want both to give the same reason", ready, stalled)
	}
	if meta.FindStatusCondition(cluster.Status.Conditions, mysqlv1.ConditionReconciling) != nil {
		t.Error("the cluster is Reconciling and Stalled at once")
	}
	// An event is written when the reason changes; the message may have changed since, such as to another Pod of the same refusal.
	s.told(t, cluster.Name, [2]string{"Warning", ready.Reason}, words...)
}

// told waits for an event about a cluster, such as {"Warning", "SecretNotFound"}, with a note that holds these words.
func (s *site) told(t *testing.T, cluster string, kind [2]string, words ...string) {
	t.Helper()
	soon(t, func(ctx context.Context) string {
		events, err := s.of("events").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		for _, event := range events.Items {
			about, _, _ := unstructured.NestedString(event.Object, "regarding", "name")
			note, _ := event.Object["note"].(string)
			isMissing := func(word string) bool { return !strings.Contains(note, word) }
			if about == cluster && event.Object["type"] == kind[0] && event.Object["reason"] == kind[1] && !slices.ContainsFunc(words, isMissing) {
				return ""
			}
		}
		return fmt.Sprintf("no event %v about %s that says %q", kind, cluster, words)
	})
}

// operate starts an operator for MySQLClusters.
func (s *site) operate(t *testing.T, configure func(*reconcile.Config)) *operating {
	t.Helper()
	return s.place.operate(t, configure, s.controller())
}

// patience bounds every wait of these tests. It is for a machine that does much else; what waits for a timer of minutes fails.
const patience = 90 * time.Second

// soon waits until what holds; what says in words what is missing while it does not hold.
func soon(t *testing.T, holds func(ctx context.Context) (missing string)) {
	t.Helper()
	soonWithin(t, patience, holds)
}

// soonWithin is soon with a limit of its own, for what others than the operator do.
func soonWithin(t *testing.T, limit time.Duration, holds func(ctx context.Context) (missing string)) {
	t.Helper()
	missing := "nothing was looked at"
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		now := holds(ctx)
		if ctx.Err() == nil { // else it speaks of the end of the patience only
			missing = now
		}
		return now == "", nil
	})
	if err != nil {
		t.Fatalf("waited %s in vain: %s", limit, missing)
	}
}

// sideBySide runs stories as subtests, at most width of them at once: they wait more than they compute, so more fit on a machine than
// it has processors, which is what t.Parallel goes by.
func sideBySide(t *testing.T, width int, stories map[string]func(t *testing.T)) {
	t.Helper()
	slots := make(chan struct{}, width)
	var running sync.WaitGroup
	for name, story := range stories {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			t.Run(name, story)
		})
	}
	running.Wait()
}
