package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// shopOf is an API server with this many clusters of three in one namespace, and a reconciler whose caches hold all of it.
type shopOf struct {
	*reconciler
	lists map[string][]any // by the last part of the path
	// live are single objects that the API server has, by the last two parts of their path.
	live sync.Map
	// unread are the clusters that the engine has not read live yet, by name.
	unread sync.Map
	// secrets are those that the reconciler has created, by path.
	secrets sync.Map
	// applied are the paths of what was applied, patched counts the changes of Secrets. refused is a part of the paths of Secrets that
	// cannot be changed.
	applied sync.Map
	patched atomic.Int64
	refused atomic.Value
	// clients are those of the engine's first passes, by the names of the clusters, and passed is their number. The engine reads each cluster
	// live for its first pass. Later reads get the answer that the cluster is gone, unless it is in live.
	clients sync.Map
	passed  atomic.Int64
}

func newShop(tb testing.TB, clusters int) *shopOf {
	tb.Helper()
	s := &shopOf{lists: map[string][]any{}}
	for i := range clusters {
		s.add(aCluster(3, func(cluster *v1.MySQLCluster) {
			cluster.Name, cluster.UID = fmt.Sprintf("db%d", i), types.UID(fmt.Sprintf("uid%d", i))
		}))
	}
	server := httptest.NewServer(s)
	tb.Cleanup(server.Close)
	kind := schema.Kinds()[0]
	controller := Controller(kind, Operator{Image: "agent:1"})
	made := make(chan *reconciler, 1)
	build := controller.New
	controller.New = func(reader *reconcile.Reader) reconcile.Reconciler {
		if built, ok := build(reader).(*reconciler); ok {
			made <- built
		}
		return idle{s}
	}
	manager, err := reconcile.New(reconcile.Config{Rest: &rest.Config{Host: server.URL}}, []reconcile.Controller{controller})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(tb.Context())
	ended := make(chan error, 1)
	go func() { ended <- manager.Run(ctx) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			tb.Error(err)
		}
	})
	select {
	case s.reconciler = <-made:
	case err := <-ended:
		ended <- err
		tb.Fatalf("the engine ended: %v", err)
	case <-time.After(time.Minute):
		tb.Fatal("the caches are not filled after a minute")
	}
	for deadline := time.Now().Add(time.Minute); s.passed.Load() < int64(clusters); runtime.Gosched() {
		if time.Now().After(deadline) {
			tb.Fatalf("the engine has made %d first passes of %d after a minute", s.passed.Load(), clusters)
		}
	}
	return s
}

// idle does nothing in a pass but keep its client: the tests call the reconciler themselves.
type idle struct{ shop *shopOf }

func (i idle) Reconcile(_ context.Context, client *reconcile.Client, object *unstructured.Unstructured) (reconcile.Outcome, error) {
	if _, again := i.shop.clients.LoadOrStore(object.GetName(), client); !again {
		i.shop.passed.Add(1)
	}
	return reconcile.Outcome{}, nil
}

// add creates the objects of one cluster, as Kubernetes has them.
func (s *shopOf) add(cluster v1.MySQLCluster) {
	n, yes, scale := children.NamesOf(cluster), true, int32(3)
	owned := func(kind, name, owner string, uid types.UID) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: n.Namespace, Name: name, UID: types.UID(kind + name), ResourceVersion: "5", Labels: n.Labels(),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "x/v1", Kind: owner, Name: n.Cluster, UID: uid, Controller: &yes}},
		}
	}
	note := func(resource string, object any) { s.lists[resource] = append(s.lists[resource], object) }
	cluster.ResourceVersion = "5"
	cluster.APIVersion, cluster.Kind = "cr.mysqloperator.grtl.github.com/v1", "MySQLCluster"
	note("mysqlclusters", cluster)
	s.unread.Store(cluster.Name, cluster)
	set := appsv1.StatefulSet{ObjectMeta: owned("set", n.Cluster, "MySQLCluster", cluster.UID), Spec: appsv1.StatefulSetSpec{Replicas: &scale}}
	note("statefulsets", set)
	for ordinal := range int(scale) {
		pod := readyPod(n.Member(ordinal))
		pod.ObjectMeta = owned("pod", n.Member(ordinal), "StatefulSet", set.UID)
		note("pods", pod)
		claim := corev1.PersistentVolumeClaim{ObjectMeta: owned("claim", n.Claim(ordinal), "", "")}
		claim.OwnerReferences = nil
		note("persistentvolumeclaims", claim)
	}
}

// ServeHTTP answers lists, and holds watches open in which nothing happens.
func (s *shopOf) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	answer.Header().Set("Content-Type", "application/json")
	if request.URL.Query().Get("sendInitialEvents") != "" {
		answer.WriteHeader(http.StatusUnprocessableEntity) // client-go then lists
		_ = json.NewEncoder(answer).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
			Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity,
		})
		return
	}
	if request.URL.Query().Get("watch") != "" {
		<-request.Context().Done()
		return
	}
	parts := strings.Split(request.URL.Path, "/")
	object, found := s.live.Load(strings.Join(parts[len(parts)-2:], "/"))
	if strings.Contains(request.URL.Path, "/mysqlclusters/") && !found {
		if object, found = s.unread.LoadAndDelete(parts[len(parts)-1]); !found {
			http.NotFound(answer, request)
			return
		}
	}
	if strings.Contains(request.URL.Path, "/secrets") {
		s.answerSecret(answer, request)
		return
	}
	if request.Method == http.MethodPatch {
		s.answerApply(answer, request)
		return
	}
	if found {
		_ = json.NewEncoder(answer).Encode(object)
		return
	}
	if parts[len(parts)-3] == "shop" {
		notFound(answer)
		return
	}
	items := s.lists[request.URL.Path[strings.LastIndex(request.URL.Path, "/")+1:]]
	if items == nil {
		items = []any{}
	}
	version := map[string]any{"resourceVersion": "9"}
	_ = json.NewEncoder(answer).Encode(map[string]any{"apiVersion": "v1", "kind": "List", "metadata": version, "items": items})
}

// answerSecret keeps the Secrets that are created, and has no others.
func (s *shopOf) answerSecret(answer http.ResponseWriter, request *http.Request) {
	if request.Method == http.MethodPost {
		var made map[string]any
		_ = json.NewDecoder(request.Body).Decode(&made)
		name, _, _ := unstructured.NestedString(made, "metadata", "name")
		s.secrets.Store(request.URL.Path+"/"+name, made)
		_ = json.NewEncoder(answer).Encode(made)
		return
	}
	if made, found := s.secrets.Load(request.URL.Path); found {
		if request.Method == http.MethodPatch {
			made = s.changeSecret(answer, request, made)
		}
		if made == nil {
			return
		}
		_ = json.NewEncoder(answer).Encode(made)
		return
	}
	notFound(answer)
}

// changeSecret merges a change into a Secret; nil if the change is refused.
func (s *shopOf) changeSecret(answer http.ResponseWriter, request *http.Request, made any) any {
	if part, _ := s.refused.Load().(string); part != "" && strings.Contains(request.URL.Path, part) {
		answer.WriteHeader(http.StatusUnprocessableEntity)
		_ = json.NewEncoder(answer).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
			Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity, Message: "data: Forbidden: field is immutable when `immutable` is set",
		})
		return nil
	}
	changes, _ := io.ReadAll(request.Body)
	before, _ := json.Marshal(made)
	merged, _ := jsonpatch.MergePatch(before, changes)
	var after map[string]any
	_ = json.Unmarshal(merged, &after)
	s.secrets.Store(request.URL.Path, after)
	s.patched.Add(1)
	return after
}

// answerApply accepts every apply, unless it asks for another version than there is.
func (s *shopOf) answerApply(answer http.ResponseWriter, request *http.Request) {
	var made map[string]any
	_ = json.NewDecoder(request.Body).Decode(&made)
	parts := strings.Split(request.URL.Path, "/")
	_, exists := s.live.Load(strings.Join(parts[len(parts)-2:], "/"))
	if version, _, _ := unstructured.NestedString(made, "metadata", "resourceVersion"); version != "" && exists {
		fail(answer, http.StatusConflict, metav1.StatusReasonConflict)
		return
	}
	s.applied.Store(request.URL.Path, true)
	_ = unstructured.SetNestedField(made, "made", "metadata", "uid")
	_ = unstructured.SetNestedField(made, "10", "metadata", "resourceVersion")
	_ = json.NewEncoder(answer).Encode(made)
}

func notFound(answer http.ResponseWriter) {
	fail(answer, http.StatusNotFound, metav1.StatusReasonNotFound)
}

func fail(answer http.ResponseWriter, code int, reason metav1.StatusReason) {
	answer.WriteHeader(code)
	_ = json.NewEncoder(answer).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: reason, Code: int32(code),
	})
}

// client returns the client of a pass over one of the clusters.
func (s *shopOf) client(tb testing.TB, name string) *reconcile.Client {
	tb.Helper()
	kept, _ := s.clients.Load(name)
	client, ok := kept.(*reconcile.Client)
	if !ok {
		tb.Fatalf("there was no pass over cluster %s", name)
	}
	return client
}

// look observes the children of one cluster.
func (s *shopOf) look(tb testing.TB, client *reconcile.Client) {
	tb.Helper()
	var seen observed
	if err := s.observeChildren(tb.Context(), client, children.Names{Namespace: "shop", Cluster: client.Owner().GetName()}, &seen); err != nil {
		tb.Fatal(err)
	}
	if seen.set == nil || len(seen.pods) != 3 || len(seen.volumes) != 3 {
		tb.Fatalf("a set (%v), %d Pods and %d volumes were seen, want 3 of each", seen.set != nil, len(seen.pods), len(seen.volumes))
	}
}

// TestAPassSeesNoOtherClusters counts what observing one cluster allocates, which is the same on every machine. The count must not grow
// with the number of clusters in the namespace.
func TestAPassSeesNoOtherClusters(t *testing.T) { //nolint:paralleltest // it counts what all allocate
	cost := func(clusters int) float64 {
		s := newShop(t, clusters)
		client := s.client(t, "db7")
		least := math.Inf(1)
		for range 5 { // the caches may still process what they were filled with
			least = min(least, testing.AllocsPerRun(50, func() { s.look(t, client) }))
		}
		return least
	}
	few, many := cost(20), cost(1000)
	t.Logf("%.0f allocations among 20 clusters, %.0f among 1000", few, many)
	if many > few*1.2 {
		t.Errorf("observing one cluster allocates %.0f times among 1000 clusters and %.0f times among 20", many, few)
	}
}

// A new client for every pass would leave behind open connections to all members each time.
func TestAgentsAreAskedOverTheSameConnectionsWithoutTheUsersSecret(t *testing.T) {
	t.Parallel()
	s := newShop(t, 1)
	cluster := aCluster(3, func(cluster *v1.MySQLCluster) {
		cluster.Name, cluster.UID, cluster.Status.Primary = "db0", "uid0", "db0-0"
	})
	first, found, err := s.prerequisites(t.Context(), s.client(t, "db0"), cluster)
	if err != nil || found == nil || found.Reason != reasonSecretNotFound {
		t.Fatalf("found %v (%v), want that the Secret is missed", found, err)
	}
	second, found, err := s.prerequisites(t.Context(), s.client(t, "db0"), cluster)
	if err != nil || found == nil {
		t.Fatalf("found %v (%v), want that the Secret is still missed", found, err)
	}
	if first.agents != second.agents || second.agents == nil {
		t.Error("the second pass asks the agents over connections of its own")
	}
}

// BenchmarkObserve measures how a pass observes its children, among other clusters of the same namespace.
func BenchmarkObserve(b *testing.B) {
	for _, clusters := range []int{20, 1000} {
		b.Run(fmt.Sprintf("clusters=%d", clusters), func(b *testing.B) {
			s := newShop(b, clusters)
			client := s.client(b, "db7")
			b.ReportAllocs()
			for b.Loop() {
				s.look(b, client)
			}
		})
	}
}
