package integration

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/kinds/configmonitor"
	"github.com/mysql-operator/mysql-operator/schema"
	magalixv1 "github.com/mysql-operator/mysql-operator/schema/magalix/v1"
	"github.com/mysql-operator/mysql-operator/test/integration/internal/apiserver"
)

// The resources these tests make.
func configMonitors() schema.Kind {
	return schema.Kind{Group: schema.MagalixGroup, Version: "v1", Kind: "ConfigMonitor", Plural: "configmonitors"}
}

func appsResource(name string) apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Group: "apps", Version: "v1", Resource: name}
}

func coreResource(name string) apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Version: "v1", Resource: name}
}

// shop is a namespace in which ConfigMonitors are served, with a kubelet of sorts.
type shop struct {
	*apiserver.Server
	t         *testing.T
	namespace string
	kubelet   *kubelet
}

func newShop(t *testing.T) *shop {
	t.Helper()
	server := pool.Shared(t)
	define(t, server, configMonitors())
	s := &shop{Server: server, t: t, namespace: server.Namespace(t)}
	s.place().hold(t)
	s.grantRules(reconcile.Rules(configmonitor.Controller(configMonitors())))
	s.kubelet = startKubelet(t, s)
	return s
}

// operatorUser is the user that the API server takes the operator for. That user may do what the rules say, and nothing else.
func (s *shop) operatorUser() string {
	return s.place().operatorUser()
}

func (s *shop) place() *place {
	return &place{Server: s.Server, namespace: s.namespace, account: wideAccount}
}

func (s *shop) grantRules(needed []rbacv1.PolicyRule) {
	s.t.Helper()
	rules := []any{}
	for _, rule := range needed {
		content, err := schema.Encode(rule)
		if err != nil {
			s.t.Fatal(err)
		}
		rules = append(rules, content)
	}
	role := object(s.t, "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: operator}\n")
	role.Object["rules"] = rules
	s.create(resource("roles"), role)
	s.create(resource("rolebindings"), object(s.t, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: operator}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: operator}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %s}]
`, s.operatorUser())))
}

func (s *shop) create(what apischema.GroupVersionResource, made *unstructured.Unstructured) *unstructured.Unstructured {
	s.t.Helper()
	created, err := s.Dynamic.Resource(what).Namespace(s.namespace).Create(s.t.Context(), made, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return created
}

func (s *shop) patch(what apischema.GroupVersionResource, name, changes string) {
	s.t.Helper()
	_, err := s.Dynamic.Resource(what).Namespace(s.namespace).Patch(s.t.Context(), name, "application/merge-patch+json", []byte(changes), metav1.PatchOptions{FieldManager: "someone"})
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *shop) remove(what apischema.GroupVersionResource, name string) {
	s.t.Helper()
	if err := s.Dynamic.Resource(what).Namespace(s.namespace).Delete(s.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shop) list(ctx context.Context, what apischema.GroupVersionResource) []unstructured.Unstructured {
	s.t.Helper()
	found, err := s.Dynamic.Resource(what).Namespace(s.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return found.Items
}

// settings makes the ConfigMap "settings"; say changes what it says.
func (s *shop) settings(message string) {
	s.t.Helper()
	s.create(coreResource("configmaps"), object(s.t, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {config.cfg: %q}\n", message)))
}

func (s *shop) say(message string) {
	s.t.Helper()
	s.patch(coreResource("configmaps"), "settings", fmt.Sprintf(`{"data":{"config.cfg":%q}}`, message))
}

// watch makes a monitor of "settings" for the Pods with these labels, and waits until it is at work.
func (s *shop) watch(name, selector string) {
	s.t.Helper()
	s.create(configMonitors().GVR(), object(s.t, fmt.Sprintf("apiVersion: magalix.com/v1\nkind: ConfigMonitor\nmetadata: {name: %s}\nspec: {configmap: settings, podSelector: {%s}}\n", name, selector)))
	s.ready(name, "Watching")
}

const podTemplate = `
  selector: {matchLabels: {name: %[1]s}}
  template:
    metadata: {labels: {name: %[1]s, app: frontend}}
    spec: {containers: [{name: app, image: none}]}
`

// run makes a workload of the kind with Pods labelled app=frontend, and waits until they are all ready.
func (s *shop) run(kind, name string, replicas int) {
	s.t.Helper()
	document := fmt.Sprintf("apiVersion: apps/v1\nkind: %[2]s\nmetadata: {name: %[1]s}\nspec:"+podTemplate, name, kind)
	made := object(s.t, document)
	if kind != "DaemonSet" {
		if err := unstructured.SetNestedField(made.Object, int64(replicas), "spec", "replicas"); err != nil {
			s.t.Fatal(err)
		}
	}
	s.create(appsResource(strings.ToLower(kind)+"s"), made)
	s.serving(name, replicas)
}

// serving waits until so many Pods of a workload are ready, and no others are there.
func (s *shop) serving(name string, replicas int) {
	s.t.Helper()
	apiserver.Eventually(s.t, func(ctx context.Context) string {
		ready, all := 0, 0
		for _, pod := range s.pods(ctx, name) {
			all++
			if isReady(pod) {
				ready++
			}
		}
		if ready != replicas || all != replicas {
			return fmt.Sprintf("%s has %d Pods, of which %d are ready, want %d", name, all, ready, replicas)
		}
		return ""
	})
}

func (s *shop) pods(ctx context.Context, name string) map[string]corev1.Pod {
	found := map[string]corev1.Pod{}
	for _, item := range s.list(ctx, coreResource("pods")) {
		if item.GetLabels()["name"] != name {
			continue
		}
		var pod corev1.Pod
		if err := schema.Decode(&item, &pod); err != nil {
			s.t.Fatal(err)
		}
		found[string(pod.UID)] = pod
	}
	return found
}

// uids are the UIDs of a workload's Pods now, in order.
func (s *shop) uids(name string) []string {
	s.t.Helper()
	return slices.Sorted(maps.Keys(s.pods(s.t.Context(), name)))
}

func isReady(pod corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// monitor reads a monitor.
func (s *shop) monitor(ctx context.Context, name string) magalixv1.ConfigMonitor {
	found, err := s.Dynamic.Resource(configMonitors().GVR()).Namespace(s.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	var monitor magalixv1.ConfigMonitor
	if err := schema.DecodeStrict(found, &monitor); err != nil {
		s.t.Fatal(err)
	}
	return monitor
}

// ready waits until a monitor's Ready condition gives this reason.
func (s *shop) ready(name, reason string) magalixv1.ConfigMonitor {
	s.t.Helper()
	return s.until(name, reason, func(magalixv1.ConfigMonitor) bool { return true })
}

// restarted waits until a monitor is at rest after this many restarts were completed for it, told by the hash it had before.
func (s *shop) restarted(name, hashBefore, reason string) magalixv1.ConfigMonitor {
	s.t.Helper()
	return s.until(name, reason, func(monitor magalixv1.ConfigMonitor) bool {
		return monitor.Status.ObservedHash != hashBefore && monitor.Status.LastRestart.CompletionTime != nil
	})
}

func (s *shop) until(name, reason string, holds func(magalixv1.ConfigMonitor) bool) magalixv1.ConfigMonitor {
	s.t.Helper()
	var monitor magalixv1.ConfigMonitor
	apiserver.Eventually(s.t, func(ctx context.Context) string {
		monitor = s.monitor(ctx, name)
		said := said(monitor)
		if !strings.HasPrefix(said, reason+":") || monitor.Status.ObservedGeneration != monitor.Generation || !holds(monitor) {
			return fmt.Sprintf("monitor %s is %s, and not %s as wanted; last restart %+v", name, said, reason, monitor.Status.LastRestart)
		}
		return ""
	})
	return monitor
}

func said(monitor magalixv1.ConfigMonitor) string {
	for _, condition := range monitor.Status.Conditions {
		if condition.Type == magalixv1.ConditionReady {
			return condition.Reason + ": " + condition.Message
		}
	}
	return "silent"
}

// told waits for an event with this reason about a monitor, and returns its note.
func (s *shop) told(monitor, reason string) string {
	s.t.Helper()
	note := ""
	apiserver.Eventually(s.t, func(ctx context.Context) string {
		for _, event := range s.list(ctx, resource("events")) {
			about, _, _ := unstructured.NestedString(event.Object, "regarding", "name")
			if event.Object["reason"] == reason && about == monitor {
				note, _, _ = unstructured.NestedString(event.Object, "note")
				return ""
			}
		}
		return fmt.Sprintf("no event %s about %s", reason, monitor)
	})
	return note
}

// monitoring is an operator for ConfigMonitors.
type monitoring struct {
	writes *crashing
	stop   context.CancelFunc
	ended  chan error
}

// operate starts an operator. With crashAfter it dies right after that many writes; 0 means never.
func (s *shop) operate(crashAfter int) *monitoring {
	s.t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(s.t.Context()))
	o := &monitoring{stop: stop, ended: make(chan error, 1), writes: &crashing{after: crashAfter, crash: stop}}
	config := rest.CopyConfig(s.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: s.operatorUser()}
	config.Wrap(o.writes.around)
	manager, err := reconcile.New(reconcile.Config{
		Rest: config, Namespaces: []string{s.namespace}, Identity: "operator", Logger: testr.New(s.t), DrainTimeout: time.Second,
	}, []reconcile.Controller{configmonitor.Controller(configMonitors())})
	if err != nil {
		s.t.Fatal(err)
	}
	go func() {
		defer close(o.ended)
		o.ended <- manager.Run(ctx)
	}()
	s.t.Cleanup(func() { o.end(s.t) })
	return o
}

// end stops the operator, if it has not crashed already, and waits until it is gone.
func (o *monitoring) end(t *testing.T) {
	t.Helper()
	o.stop()
	if err, ok := <-o.ended; ok && err != nil {
		t.Errorf("the operator ended with: %v", err)
	}
}

// crashing counts an operator's writes, and lets it die after one: what it sends then does not reach the API server any more.
type crashing struct {
	after int
	crash context.CancelFunc

	mu     sync.Mutex
	writes []string
}

func (c *crashing) around(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if request.Method == http.MethodGet || strings.Contains(request.URL.Path, "/events") {
			return next.RoundTrip(request)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.after > 0 && len(c.writes) >= c.after {
			return nil, context.Canceled
		}
		response, err := next.RoundTrip(request)
		c.writes = append(c.writes, request.Method+" "+request.URL.Path)
		if len(c.writes) == c.after {
			c.crash()
			return nil, context.Canceled
		}
		return response, err
	})
}

// count returns how many writes there were.
func (c *crashing) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.writes)
}

func same(t *testing.T, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected (-want +got):\n%s", diff)
	}
}
