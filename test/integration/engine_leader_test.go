package integration

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/schema"
	"github.com/mysql-operator/mysql-operator/test/integration/internal/apiserver"
)

// elected makes a Manager stand for election in the world's namespace.
func (w *world) elected(identity string) func(*reconcile.Config, *reconcile.Controller) {
	return func(config *reconcile.Config, _ *reconcile.Controller) {
		config.LeaderElect = true
		config.LeaseNamespace = w.namespace
		config.Identity = identity
		// A lease that is given up early is taken at once.
		config.RetryPeriod = 50 * time.Millisecond
	}
}

// turns notes who makes passes, and whether two ever did at once.
type turns struct {
	mu       sync.Mutex
	active   map[string]int
	overlaps []string
	passes   map[string]int
}

func (n *turns) begin(who string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.active[who]++
	n.passes[who]++
	for other, count := range n.active {
		if other != who && count > 0 {
			n.overlaps = append(n.overlaps, who+" began while "+other+" was at work")
		}
	}
}

func (n *turns) end(who string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.active[who]--
}

func (n *turns) made(who string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.passes[who]
}

func TestEngineHandsOverWithoutOverlap(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool.Shared(t))
	for index := range 5 {
		w.make(t, w.namespace, fmt.Sprintf("p-%d", index))
	}
	noted := &turns{active: map[string]int{}, passes: map[string]int{}}
	// Passes that heed nothing but their own end: handing over has to wait for them.
	working := func(who string) func(*reconcile.Reader) reconcile.Reconciler {
		return simply(func(_ context.Context, _ *reconcile.Client, object *unstructured.Unstructured) (reconcile.Outcome, error) {
			noted.begin(who)
			defer noted.end(who)
			<-time.After(400 * time.Millisecond)
			outcome := done(object)
			outcome.RequeueAfter = time.Millisecond
			return outcome, nil
		})
	}
	until := func(who string, passes int) {
		apiserver.Eventually(t, func(context.Context) string {
			if made := noted.made(who); made < passes {
				return fmt.Sprintf("%s made %d passes, want %d", who, made, passes)
			}
			return ""
		})
	}
	first := w.operator(t, working("first"), w.elected("first"))
	first.start(t)
	until("first", 10)
	second := w.operator(t, working("second"), w.elected("second"))
	second.start(t)
	apiserver.Eventually(t, func(context.Context) string {
		if err := second.manager.CachesSynced(); err != nil {
			return "a standby is not ready to take over: " + err.Error()
		}
		return ""
	})

	began := time.Now()
	first.finish(t)
	until("second", 10)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the hand-over took %s: the lease was left to run out", took)
	}
	if len(noted.overlaps) > 0 {
		t.Errorf("passes overlapped: %v", noted.overlaps)
	}
	if led, follows := second.measured(t, "leader", nil), first.measured(t, "leader", nil); led != 1 || follows != 0 {
		t.Errorf("the metrics say second leads: %v, first leads: %v", led, follows)
	}
}

func TestEngineEndsRatherThanOverlap(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool.Shared(t))
	w.make(t, w.namespace, "stuck")
	release, entered := make(chan struct{}), make(chan struct{})
	var once sync.Once
	running := w.operator(t, simply(func(_ context.Context, _ *reconcile.Client, object *unstructured.Unstructured) (reconcile.Outcome, error) {
		once.Do(func() { close(entered) })
		<-release // heeds no context
		return done(object), nil
	}), func(config *reconcile.Config, _ *reconcile.Controller) { config.DrainTimeout = 10 * time.Millisecond })
	running.start(t)
	<-entered
	running.stop()
	err := <-running.ended
	close(release)
	if err == nil || !strings.Contains(err.Error(), "Probe "+w.namespace+"/stuck") {
		t.Errorf("got %v, want an error that names the pass that does not end", err)
	}
}

// usurp makes another client the holder of the Lease. Another operator does so if its clock runs fast, or if it found the Lease expired
// while this operator stood still.
func (w *world) usurp(t *testing.T) {
	t.Helper()
	leases := apischema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	w.patch(t.Context(), t, leases, reconcile.LeaseName, fmt.Sprintf(`{"spec":{"holderIdentity":"usurper","renewTime":%q}}`, time.Now().UTC().Format(metav1.RFC3339Micro)))
}

func TestEngineStopsAtOnceWhenItsLeaseIsTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool.Shared(t))
	w.make(t, w.namespace, "a")
	running := w.operator(t, simply(func(_ context.Context, _ *reconcile.Client, object *unstructured.Unstructured) (reconcile.Outcome, error) {
		return done(object), nil
	}), w.elected("first"))
	running.start(t)
	w.phase(t, w.namespace, "a", "Ready")

	began := time.Now()
	w.usurp(t)
	apiserver.Eventually(t, func(context.Context) string {
		if running.measured(t, "leader", nil) != 0 {
			return "another client holds the lease, and the operator continues to work"
		}
		return ""
	})
	// The elector alone would try to win it back for its deadline of 10 s.
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it worked for %s beside the other", took)
	}
}

func TestEngineStopsDrainingWhenItsLeaseIsTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool.Shared(t))
	for _, name := range []string{"a", "b", "c"} {
		w.make(t, w.namespace, name)
	}
	entered := make(chan struct{})
	running := w.operator(t, simply(func(ctx context.Context, _ *reconcile.Client, _ *unstructured.Unstructured) (reconcile.Outcome, error) {
		close(entered)
		<-ctx.Done()
		return reconcile.Outcome{}, ctx.Err()
	}), func(config *reconcile.Config, controller *reconcile.Controller) {
		w.elected("first")(config, controller)
		config.DrainTimeout = 40 * time.Second
		config.Workers = 1
	})
	running.start(t)
	<-entered
	running.stop()
	w.usurp(t)
	began := time.Now()
	if err := <-running.ended; err != nil {
		t.Errorf("the manager ended with: %v", err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the last pass went on for %s beside the new leader's", took)
	}
	if waiting := running.measured(t, "queue_depth", nil); waiting != 0 {
		t.Errorf("the metrics say that %v objects wait for a pass of one who makes none any more", waiting)
	}
}

func TestEngineIsOneOfTwoOnTheSameHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool.Shared(t))
	w.make(t, w.namespace, "a")
	made := func() *operator {
		return w.operator(t, simply(func(_ context.Context, _ *reconcile.Client, object *unstructured.Unstructured) (reconcile.Outcome, error) {
			return done(object), nil
		}), w.elected(""))
	}
	first, second := made(), made()
	first.start(t)
	w.phase(t, w.namespace, "a", "Ready")
	second.start(t)
	apiserver.Eventually(t, func(context.Context) string {
		asked := map[string]string{"resource": "leases.coordination.k8s.io"}
		if asked := second.measured(t, "api_requests_total", asked); asked < 3 {
			return fmt.Sprintf("the second operator asked for the lease %v times", asked)
		}
		return ""
	})
	if leads, other := first.measured(t, "leader", nil), second.measured(t, "leader", nil); leads != 1 || other != 0 {
		t.Errorf("the first leads: %v, the second leads: %v; want the first alone", leads, other)
	}
}

func TestEngineNeedsNoMoreThanRolesInItsNamespaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool.Shared(t))
	elsewhere := w.Namespace(t)
	controller := reconcile.Controller{Kind: probe(), Watches: []reconcile.Watch{{Resource: resource("configmaps"), Selector: "test=engine"}}}
	second := w.Namespace(t)
	user := "system:serviceaccount:" + w.namespace + ":operator"
	for _, namespace := range []string{w.namespace, second} {
		w.grant(t, namespace, user, controller)
	}
	for _, namespace := range []string{w.namespace, second, elsewhere} {
		w.make(t, namespace, "a")
	}
	running := w.operator(t, simply(func(_ context.Context, _ *reconcile.Client, object *unstructured.Unstructured) (reconcile.Outcome, error) {
		return done(object), nil
	}), func(config *reconcile.Config, made *reconcile.Controller) {
		w.elected("restricted")(config, made)
		config.Namespaces = []string{second, w.namespace}
		config.Rest.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
		made.Watches = controller.Watches
	})
	running.start(t)
	w.phase(t, w.namespace, "a", "Ready")
	w.phase(t, second, "a", "Ready")
	w.phase(t, elsewhere, "a", "")
	if refused := running.measured(t, "api_requests_total", map[string]string{"code": "403"}); refused != 0 {
		t.Errorf("%v requests were forbidden: something was asked beyond the rules", refused)
	}
}

// grant gives a user a Role with the rules the engine says it needs.
func (w *world) grant(t *testing.T, namespace, user string, controller reconcile.Controller) {
	t.Helper()
	rules := []any{}
	for _, rule := range append(reconcile.Rules(controller), reconcile.LeaseRules()...) {
		content, err := schema.Encode(rule)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, content)
	}
	role := object(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: operator}}")
	role.Object["rules"] = rules
	binding := object(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: operator}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: operator}}")
	binding.Object["subjects"] = []any{map[string]any{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}}
	for what, made := range map[string]*unstructured.Unstructured{"roles": role, "rolebindings": binding} {
		if _, err := w.Dynamic.Resource(resource(what)).Namespace(namespace).Create(t.Context(), made, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEngineNamesTheCacheItWaitsFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool.Shared(t))
	running := w.operator(t, simply(nil), func(config *reconcile.Config, _ *reconcile.Controller) {
		config.SyncTimeout = 10 * time.Second // the API server may be slow to refuse
		config.Rest.Impersonate = rest.ImpersonationConfig{UserName: "stranger"}
	})
	err := running.manager.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "probes.v1.engine.example.com in namespace "+w.namespace) || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("got %v, want an error that names the resource and says that it is forbidden", err)
	}
}

func TestEngineSurvivesAnOutageOfTheAPIServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("kills an API server of its own and waits longer than a lease")
	}
	w := newWorld(t, apiserver.Own(t))
	w.make(t, w.namespace, "before")
	var lateness atomic.Int32
	running := w.operator(t, simply(func(_ context.Context, _ *reconcile.Client, object *unstructured.Unstructured) (reconcile.Outcome, error) {
		lateness.Add(1)
		outcome := done(object)
		outcome.RequeueAfter = 50 * time.Millisecond
		return outcome, nil
	}), func(config *reconcile.Config, controller *reconcile.Controller) {
		w.elected("only")(config, controller)
		// The outage must outlast the lease without the test taking a minute.
		config.LeaseDuration, config.RenewDeadline, config.RetryPeriod = 3*time.Second, 2*time.Second, 200*time.Millisecond
	})
	running.start(t)
	w.phase(t, w.namespace, "before", "Ready")

	w.Kill(t)
	apiserver.Eventually(t, func(context.Context) string {
		if running.measured(t, "leader", nil) != 0 {
			return "the lease ran out, and the operator still thinks it leads"
		}
		return ""
	})
	select {
	case err := <-running.ended:
		t.Fatalf("the outage ended the operator: %v", err)
	default:
	}
	w.Restart(t)
	w.reconnect(t)
	w.make(t, w.namespace, "after")
	w.touch(t.Context(), t, "before")
	// Only the operator's watch tells it of this one. After a long outage client-go waits up to a minute until it tries again.
	soon(t, func(ctx context.Context) string {
		after, err := w.get(ctx, probe().GVR(), "after")
		if err != nil {
			return err.Error()
		}
		if after.Object["status"] == nil {
			return "the operator has not seen what was made after the outage"
		}
		return ""
	})
	w.phase(t, w.namespace, "after", "Ready")
	w.phase(t, w.namespace, "before", "Ready")
}

// reconnect makes a client that does not use the connections of before.
func (w *world) reconnect(t *testing.T) {
	t.Helper()
	client, err := dynamic.NewForConfig(rest.CopyConfig(w.Config))
	if err != nil {
		t.Fatal(err)
	}
	w.Dynamic = client
	apiserver.Eventually(t, func(ctx context.Context) string {
		if _, err := w.get(ctx, probe().GVR(), "before"); err != nil {
			return err.Error()
		}
		return ""
	})
}
