package integration

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/mysql-operator/mysql-operator/crds"
	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysqlcluster"
	"github.com/mysql-operator/mysql-operator/schema"
	"github.com/mysql-operator/mysql-operator/schema/definitions"
	mysqlv1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
	"github.com/mysql-operator/mysql-operator/test/integration/internal/apiserver"
)

func mysqlClusters() schema.Kind { return schema.Kinds()[0] }

// childResource finds a resource that these tests use.
func childResource(name string) apischema.GroupVersionResource {
	switch name {
	case "poddisruptionbudgets":
		return budgets()
	case "mysqlclusters":
		return mysqlClusters().GVR()
	case "clusterroles", "clusterrolebindings":
		return apischema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: name}
	case "storageclasses":
		return apischema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: name}
	}
	return resource(name)
}

// site is a namespace in which MySQLClusters are served and their members simulated.
type site struct {
	*apiserver.Server
	namespace string
	node      *node
}

// newSite makes a site on the control plane that the tests share; its Secret "root" holds a password.
func newSite(t *testing.T) *site {
	t.Helper()
	return newSiteOn(t, pool.Shared(t))
}

func newSiteOn(t *testing.T, server *apiserver.Server) *site {
	t.Helper()
	defined, err := definitions.Load([]schema.Kind{mysqlClusters()})
	if err != nil {
		t.Fatal(err)
	}
	api, err := crds.NewAPI(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (crds.Installer{API: api, Log: logr.Discard()}).Ensure(t.Context(), defined); err != nil {
		t.Fatal(err)
	}
	s := &site{Server: server, namespace: server.Namespace(t)}
	s.node = startNode(t, s)
	s.grant(t, operatorRules())
	s.password(t, "root", "secret")
	return s
}

// operatorRules are what the manifests grant an operator in a namespace.
func operatorRules() []rbacv1.PolicyRule {
	return append(reconcile.Rules(mysqlcluster.Controller(mysqlClusters(), "")), reconcile.LeaseRules()...)
}

// operatorUser is whom the operator is to the API server: somebody who may do what was granted, and nothing else.
func (s *site) operatorUser() string {
	return "system:serviceaccount:" + s.namespace + ":mysql-operator"
}

// grant makes these rules, and no others, the operator's.
func (s *site) grant(t *testing.T, rules []rbacv1.PolicyRule) {
	t.Helper()
	role := object(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: operator}}")
	content := []any{}
	for _, rule := range rules {
		encoded, err := schema.Encode(rule)
		if err != nil {
			t.Fatal(err)
		}
		content = append(content, encoded)
	}
	role.Object["rules"] = content
	binding := object(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: operator}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: operator}}")
	binding.Object["subjects"] = []any{map[string]any{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": s.operatorUser()}}
	for what, made := range map[string]*unstructured.Unstructured{"roles": role, "rolebindings": binding} {
		if _, err := s.of(what).Apply(t.Context(), made.GetName(), made, metav1.ApplyOptions{FieldManager: "administrator", Force: true}); err != nil {
			t.Fatal(err)
		}
	}
}

// of is a client of one of the namespace's resources.
func (s *site) of(what string) dynamic.ResourceInterface {
	return s.Dynamic.Resource(childResource(what)).Namespace(s.namespace)
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

func (s *site) secret(ctx context.Context, name string) (corev1.Secret, error) {
	var found corev1.Secret
	object, err := s.of("secrets").Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return found, err
	}
	err = schema.Decode(object, &found)
	return found, err
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

func (s *site) get(t *testing.T, what, name string) *unstructured.Unstructured {
	t.Helper()
	found, err := s.of(what).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func (s *site) patch(t *testing.T, what, name, changes string) *unstructured.Unstructured {
	t.Helper()
	patched, err := s.of(what).Patch(t.Context(), name, types.MergePatchType, []byte(changes), metav1.PatchOptions{FieldManager: "someone"})
	if err != nil {
		t.Fatal(err)
	}
	return patched
}

func (s *site) remove(t *testing.T, what, name string) {
	t.Helper()
	background := metav1.DeletePropagationBackground
	if err := s.of(what).Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		t.Fatal(err)
	}
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
		if why(cluster).Reason != "AllMembersReady" || !durable || cluster.Status.ObservedGeneration != cluster.Generation {
			return fmt.Sprintf("cluster %s: %+v", name, cluster.Status)
		}
		return ""
	})
	return cluster
}

func why(cluster mysqlv1.MySQLCluster) metav1.Condition {
	if condition := meta.FindStatusCondition(cluster.Status.Conditions, mysqlv1.ConditionReady); condition != nil {
		return *condition
	}
	return metav1.Condition{}
}

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
	s.told(t, cluster.Name, [2]string{"Warning", ready.Reason}, ready.Message)
}

// told waits for an event about a cluster, such as {"Warning", "SecretNotFound"}.
func (s *site) told(t *testing.T, cluster string, kind [2]string, note string) {
	t.Helper()
	soon(t, func(ctx context.Context) string {
		events, err := s.of("events").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		for _, event := range events.Items {
			about, _, _ := unstructured.NestedString(event.Object, "regarding", "name")
			if about == cluster && event.Object["type"] == kind[0] && event.Object["reason"] == kind[1] && event.Object["note"] == note {
				return ""
			}
		}
		return fmt.Sprintf("no event %v about %s that says %q", kind, cluster, note)
	})
}

// gone waits until an object is no more.
func (s *site) gone(t *testing.T, what, name string) {
	t.Helper()
	soon(t, func(ctx context.Context) string {
		if _, err := s.of(what).Get(ctx, name, metav1.GetOptions{}); err == nil || !apierrors.IsNotFound(err) {
			return fmt.Sprintf("%s %s is still there (%v)", what, name, err)
		}
		return ""
	})
}

// operating is an operator for MySQLClusters at work.
type operating struct {
	wire     *wire
	registry *prometheus.Registry
	log      *errorLog
	stop     context.CancelFunc
	ended    chan error
}

// operate starts an operator that runs until the test ends, or finish. configure may change how.
func (s *site) operate(t *testing.T, configure func(*reconcile.Config)) *operating {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	o := &operating{registry: prometheus.NewRegistry(), log: &errorLog{}, stop: stop, ended: make(chan error, 1), wire: &wire{die: stop}}
	config := reconcile.Config{
		Rest: rest.CopyConfig(s.Config), Namespaces: []string{s.namespace}, Identity: "operator", Registry: o.registry,
		Logger: o.log.logger(t), DrainTimeout: 2 * time.Second,
	}
	config.Rest.Impersonate = rest.ImpersonationConfig{UserName: s.operatorUser(), Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	config.Rest.Wrap(o.wire.around)
	if configure != nil {
		configure(&config)
	}
	manager, err := reconcile.New(config, []reconcile.Controller{mysqlcluster.Controller(mysqlClusters(), "operator:test")})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(o.ended)
		o.ended <- manager.Run(ctx)
	}()
	t.Cleanup(func() { o.finish(t) })
	return o
}

// finish stops the operator and waits until it has ended.
func (o *operating) finish(t *testing.T) {
	t.Helper()
	o.stop()
	if err, ok := <-o.ended; ok && err != nil {
		t.Errorf("the operator ended with: %v", err)
	}
}

// passes is how many passes have ended well.
func (o *operating) passes(t *testing.T) float64 {
	t.Helper()
	measured := operator{registry: o.registry}
	return measured.measured(t, "reconcile_total", map[string]string{"result": "done"})
}

// errorLog passes an operator's log on to the test's, and keeps the errors.
type errorLog struct {
	mu     sync.Mutex
	errors []string
}

func (l *errorLog) logger(t *testing.T) logr.Logger {
	t.Helper()
	return funcr.New(func(prefix, line string) {
		t.Log(prefix, line)
		if !strings.Contains(line, `"level"=`) { // funcr gives a level to what is no error
			l.mu.Lock()
			defer l.mu.Unlock()
			l.errors = append(l.errors, line)
		}
	}, funcr.Options{LogTimestamp: true})
}

func (l *errorLog) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.errors
}

// wire is what lies between an operator and the API server: it notes the writes but the Lease's, and may kill the operator at one.
type wire struct {
	die context.CancelFunc

	mu     sync.Mutex
	writes []string
	// deadly is the number of the write, from 1, that the operator does not survive; 0 for none. Sent says that the API server has
	// got it, and only the answer is lost.
	deadly int
	sent   bool
	dead   bool
}

// around implements rest.Config's Wrap.
func (w *wire) around(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if request.Method == http.MethodGet || strings.Contains(request.URL.Path, "/leases") {
			if w.isDead() {
				return nil, context.Canceled
			}
			return next.RoundTrip(request)
		}
		// One write at a time, so that it is certain which one was the last.
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.dead {
			return nil, context.Canceled
		}
		w.writes = append(w.writes, request.Method+" "+request.URL.Path)
		if len(w.writes) != w.deadly {
			return next.RoundTrip(request)
		}
		w.dead = true
		if w.sent {
			if response, err := next.RoundTrip(request); err == nil {
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
			}
		}
		w.die()
		return nil, context.Canceled
	})
}

// dieAt makes a write the operator's last.
func (w *wire) dieAt(number int, sent bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deadly, w.sent = number, sent
}

func (w *wire) isDead() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dead
}

// written returns all writes so far.
func (w *wire) written() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes
}

// patience bounds every wait of these tests. It is for a machine that does much else; what waits for a timer of minutes fails.
const patience = 90 * time.Second

// soon waits until what holds; what says in words what is missing while it does not hold.
func soon(t *testing.T, holds func(ctx context.Context) (missing string)) {
	t.Helper()
	missing := "nothing was looked at"
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		now := holds(ctx)
		if ctx.Err() == nil { // else it speaks of the end of the patience only
			missing = now
		}
		return now == "", nil
	})
	if err != nil {
		t.Fatalf("waited %s in vain: %s", patience, missing)
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
