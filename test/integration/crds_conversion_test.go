package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/mysql-operator/mysql-operator/crds/conversion"
	"github.com/mysql-operator/mysql-operator/test/integration/internal/apiserver"
	"github.com/mysql-operator/mysql-operator/test/twoversions"
)

// keptAnnotation carries what a version cannot express.
const keptAnnotation = twoversions.Domain + "/kept-for-conversion"

// twoVersions is a control plane where ConfigMonitor has two versions, v1 stored.
type twoVersions struct {
	*apiserver.Server
	t         *testing.T
	namespace string
	listener  net.Listener
	answered  atomic.Int64
	failed    sync.Map
}

func newTwoVersions(t *testing.T) *twoVersions {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := apiserver.Own(t)
	return &twoVersions{Server: server, t: t, namespace: server.Namespace(t), listener: listener}
}

// Get makes the control plane a reader of definitions.
func (c *twoVersions) Get(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	found, err := c.Dynamic.Resource(definitionResource()).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	return definition, runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, definition)
}

func (c *twoVersions) configuration() conversion.Config {
	registry, err := twoversions.Registry()
	if err != nil {
		c.t.Fatal(err)
	}
	return conversion.Config{
		Rest: c.Config, Registry: registry, Owner: "twoversions", Domain: twoversions.Domain, Namespace: c.namespace, Name: "conversion", Version: 2,
		URL: fmt.Sprintf("https://%s/convert", c.listener.Addr()), Listener: c.listener, Definitions: c, Names: []string{"configmonitors.magalix.com"},
		Poll: 100 * time.Millisecond, Settle: time.Second, Overlap: 2 * time.Second, Log: logr.Discard(),
		Observe: func(o conversion.Observation) {
			c.answered.Add(1)
			if o.Outcome != conversion.OutcomeConverted {
				c.failed.Store(o.Outcome, o)
			}
		},
	}
}

// serve runs a server until the returned function is called.
func (c *twoVersions) serve(config conversion.Config) (server *conversion.Server, stop func()) {
	c.t.Helper()
	server, err := conversion.NewServer(config)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(c.t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := server.Run(ctx); err != nil {
			c.t.Error(err)
		}
	})
	running.Go(func() { server.Lead(ctx) })
	stop = func() {
		cancel()
		running.Wait()
	}
	c.t.Cleanup(stop)
	return server, stop
}

// define applies the definition with what the server says about conversion.
func (c *twoVersions) define(server *conversion.Server) {
	c.t.Helper()
	definition, err := twoversions.Definition()
	if err != nil {
		c.t.Fatal(err)
	}
	if definition.Spec.Conversion, err = server.Conversion(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	definition.TypeMeta = metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
	body, err := json.Marshal(map[string]any{"apiVersion": definition.APIVersion, "kind": definition.Kind, "metadata": map[string]any{"name": definition.Name}, "spec": definition.Spec})
	if err != nil {
		c.t.Fatal(err)
	}
	force := true
	if _, err := c.Dynamic.Resource(definitionResource()).Patch(c.t.Context(), definition.Name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: "test", Force: &force}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *twoVersions) monitors(version string) dynamic.ResourceInterface {
	return c.Dynamic.Resource(apischema.GroupVersionResource{Group: "magalix.com", Version: version, Resource: "configmonitors"}).Namespace(c.namespace)
}

func monitor(version, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "magalix.com/" + version, "kind": "ConfigMonitor", "metadata": map[string]any{"name": name}, "spec": spec,
	}}
}

func (c *twoVersions) create(version string, object *unstructured.Unstructured) {
	c.t.Helper()
	if _, err := c.monitors(version).Create(c.t.Context(), object, metav1.CreateOptions{FieldManager: "creator"}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *twoVersions) patch(version, name, body string, subresources ...string) {
	c.t.Helper()
	if _, err := c.monitors(version).Patch(c.t.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "editor"}, subresources...); err != nil {
		c.t.Fatal(err)
	}
}

// has checks one field of an object, read in a version.
func (c *twoVersions) has(version, name, field string, want any) {
	c.t.Helper()
	object, err := c.monitors(version).Get(c.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	got, _, _ := unstructured.NestedFieldNoCopy(object.Object, strings.Split(field, ".")...)
	if diff := cmp.Diff(want, got); diff != "" {
		c.t.Errorf("%s of %s, read in %s (-want +got):\n%s", field, name, version, diff)
	}
}

// TestConversion is the life of a kind with two versions and a webhook between them, on a real API server.
func TestConversion(t *testing.T) {
	t.Parallel()
	c := newTwoVersions(t)
	config := c.configuration()
	server, stop := c.serve(config)
	c.define(server)
	apiserver.Eventually(t, func(ctx context.Context) string {
		if _, err := c.monitors("v2").List(ctx, metav1.ListOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
	//nolint:paralleltest // each step continues from where the one before left the cluster
	for _, step := range []struct {
		story string
		test  func(*twoVersions)
	}{
		{"what v1 alone can say survives edits in v2", editOldInNew},
		{"what v2 alone can say survives edits in v1", editNewInOld},
		{"status too, element by element", editStatus},
		{"server-side apply in both versions", applyInBoth},
		{"lists hold both, in either version", listBoth},
		{"a forged annotation contradicts nothing", forge},
		{"a CA is rotated while requests continue", func(c *twoVersions) { c.rotate(server) }},
		{"no conversion failed in all that time", (*twoVersions).noneFailed},
		{"the webhook is down", func(c *twoVersions) { c.down(stop) }},
	} {
		t.Run(step.story, func(t *testing.T) {
			c.t = t
			step.test(c)
		})
	}
}

func (c *twoVersions) noneFailed() {
	c.failed.Range(func(_, value any) bool {
		c.t.Errorf("a conversion failed: %+v", value)
		return true
	})
	if c.answered.Load() == 0 {
		c.t.Error("no conversion was asked for")
	}
}

func editOldInNew(c *twoVersions) {
	c.create("v1", monitor("v1", "old", map[string]any{"configmap": "settings", "podSelector": map[string]any{"app": "web"}}))
	c.has("v2", "old", "spec", map[string]any{"source": map[string]any{"name": "settings"}, "targets": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}}}})
	c.patch("v2", "old", `{"spec":{"targets":{"selector":{"matchLabels":{"tier":"front"}}}}}`)
	c.has("v1", "old", "spec", map[string]any{"configmap": "settings", "podSelector": map[string]any{"app": "web", "tier": "front"}})
	c.has("v1", "old", "metadata.annotations", nil)
	c.patch("v2", "old", `{"spec":{"source":{"name":"other"}}}`)
	c.has("v1", "old", "spec.configMap", "other")
	c.has("v1", "old", "spec.configmap", nil)
}

func editNewInOld(c *twoVersions) {
	expressions := []any{map[string]any{"key": "canary", "operator": "DoesNotExist"}}
	c.create("v2", monitor("v2", "new", map[string]any{
		"source":  map[string]any{"name": "settings", "keys": []any{"a", "b"}},
		"targets": map[string]any{"batch": int64(3), "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}, "matchExpressions": expressions}},
	}))
	c.has("v1", "new", "spec", map[string]any{"configMap": "settings", "podSelector": map[string]any{"app": "web"}})
	c.patch("v1", "new", `{"spec":{"podSelector":{"app":"api"}},"metadata":{"labels":{"edited":"yes"}}}`)
	c.has("v2", "new", "spec", map[string]any{
		"source":  map[string]any{"name": "settings", "keys": []any{"a", "b"}},
		"targets": map[string]any{"batch": int64(3), "selector": map[string]any{"matchLabels": map[string]any{"app": "api"}, "matchExpressions": expressions}},
	})
	c.has("v2", "new", "metadata.labels", map[string]any{"edited": "yes"})
}

func editStatus(c *twoVersions) {
	c.patch("v1", "old", `{"status":{"observedHash":"h","lastRestart":{"time":"2026-01-01T00:00:00Z","configMapResourceVersion":"77","workloads":[
		{"kind":"Pod","name":"a","action":"Pending","owner":"Job/a"},{"kind":"Pod","name":"b","action":"Pending","owner":"Job/b"}]}}}`, "status")
	c.has("v2", "old", "status.restart.workloads", []any{
		map[string]any{"kind": "Pod", "name": "a", "action": "Pending"}, map[string]any{"kind": "Pod", "name": "b", "action": "Pending"},
	})
	c.patch("v2", "old", `{"status":{"restart":{"by":"someone","workloads":[{"kind":"Pod","name":"b","action":"Replaced","percent":100}]}}}`, "status")
	c.has("v1", "old", "status.lastRestart", map[string]any{
		"time": "2026-01-01T00:00:00Z", "configMapResourceVersion": "77",
		"workloads": []any{map[string]any{"kind": "Pod", "name": "b", "action": "Replaced", "owner": "Job/b"}},
	})
	c.patch("v1", "old", `{"status":{"observedHash":"i"}}`, "status")
	c.has("v2", "old", "status.restart", map[string]any{
		"began": "2026-01-01T00:00:00Z", "by": "someone",
		"workloads": []any{map[string]any{"kind": "Pod", "name": "b", "action": "Replaced", "percent": int64(100)}},
	})
}

func applyInBoth(c *twoVersions) {
	apply := func(version, manager string, spec map[string]any) {
		c.t.Helper()
		if _, err := c.monitors(version).Apply(c.t.Context(), "applied", monitor(version, "applied", spec), metav1.ApplyOptions{FieldManager: manager}); err != nil {
			c.t.Fatal(err)
		}
	}
	apply("v1", "first", map[string]any{"configMap": "settings", "podSelector": map[string]any{"app": "web"}})
	apply("v2", "second", map[string]any{"targets": map[string]any{"batch": int64(2)}, "source": map[string]any{"keys": []any{"a"}, "name": "settings"}})
	apply("v1", "first", map[string]any{"configMap": "settings", "podSelector": map[string]any{"app": "api"}})
	c.has("v2", "applied", "spec", map[string]any{
		"source":  map[string]any{"name": "settings", "keys": []any{"a"}},
		"targets": map[string]any{"batch": int64(2), "selector": map[string]any{"matchLabels": map[string]any{"app": "api"}}},
	})
}

func listBoth(c *twoVersions) {
	for _, version := range []string{"v1", "v2"} {
		list, err := c.monitors(version).List(c.t.Context(), metav1.ListOptions{})
		if err != nil {
			c.t.Fatal(err)
		}
		for index := range list.Items {
			if got := list.Items[index].GetAPIVersion(); got != "magalix.com/"+version {
				c.t.Errorf("%s is listed in %s, want %s", list.Items[index].GetName(), got, version)
			}
		}
		if len(list.Items) != 3 {
			c.t.Errorf("%d objects are listed in %s, want 3", len(list.Items), version)
		}
	}
}

func forge(c *twoVersions) {
	forged := monitor("v2", "forged", map[string]any{
		"source": map[string]any{"name": "settings"}, "targets": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}}},
	})
	forged.SetAnnotations(map[string]string{keptAnnotation: `{"v1":{"in":"v2","changes":[
		{"at":["spec","podSelector"],"set":{"app":"all","more":"x"}},{"at":["metadata","name"],"set":"another"},{"at":["spec","configmap"],"set":"another"}]}}`})
	c.create("v2", forged)
	c.has("v1", "forged", "spec.podSelector", map[string]any{"app": "web"})
	c.has("v1", "forged", "spec.configMap", "settings")
	c.has("v1", "forged", "metadata.name", "forged")
}

func (c *twoVersions) secret() *corev1.Secret {
	c.t.Helper()
	found, err := c.Dynamic.Resource(apischema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(c.namespace).Get(c.t.Context(), "conversion", metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	secret := &corev1.Secret{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, secret); err != nil {
		c.t.Fatal(err)
	}
	return secret
}

// rotate loses the Secret, which brings a new CA, while objects are written in the version that is not stored. The definition follows as
// the operator would have it.
func (c *twoVersions) rotate(server *conversion.Server) {
	before := c.secret()
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	var writers sync.WaitGroup
	var written atomic.Int64
	for writer := range 4 {
		writers.Go(func() {
			name := []string{"old", "new", "applied", "forged"}[writer]
			for count := 0; ctx.Err() == nil; count++ {
				body := fmt.Sprintf(`{"metadata":{"labels":{"count":"%d"}}}`, count)
				if _, err := c.monitors("v2").Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{}); err != nil && ctx.Err() == nil {
					c.t.Errorf("write %d of %s: %v", count, name, err)
					return
				}
				written.Add(1)
			}
		})
	}
	if err := c.Dynamic.Resource(apischema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(c.namespace).Delete(ctx, "conversion", metav1.DeleteOptions{}); err != nil {
		c.t.Fatal(err)
	}
	bundle := func() []byte {
		joint, err := server.Conversion(ctx)
		if err != nil {
			c.t.Fatal(err)
		}
		return joint.Webhook.ClientConfig.CABundle
	}
	authorities := func(bundle []byte) int { return strings.Count(string(bundle), "BEGIN CERTIFICATE") }
	apiserver.Eventually(c.t, func(context.Context) string {
		if got := authorities(bundle()); got != 2 {
			return fmt.Sprintf("the bundle has %d CAs, want the old and the new", got)
		}
		return ""
	})
	if !bytes.Equal(c.secret().Data["tls.crt"], before.Data["tls.crt"]) {
		c.t.Error("a certificate of the new CA is served before the definition trusts it")
	}
	c.define(server)
	apiserver.Eventually(c.t, func(context.Context) string {
		if secret := c.secret(); bytes.Equal(secret.Data["tls.crt"], before.Data["tls.crt"]) {
			return "the old certificate is served still"
		}
		if got := authorities(bundle()); got != 1 {
			return fmt.Sprintf("the bundle has %d CAs, want the new one alone", got)
		}
		return ""
	})
	c.define(server)
	so := written.Load()
	apiserver.Eventually(c.t, func(context.Context) string {
		if written.Load() < so+40 {
			return "40 more writes"
		}
		return ""
	})
	cancel()
	writers.Wait()
	c.t.Logf("%d writes while the CA was rotated, %d conversions so far", written.Load(), c.answered.Load())
}

func (c *twoVersions) down(stop func()) {
	stop()
	c.has("v1", "old", "spec.configMap", "other")
	list, err := c.monitors("v1").List(c.t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	if err != nil || len(list.Items) != 4 {
		c.t.Errorf("list in the stored version: %d objects, error %v", len(list.Items), err)
	}
	_, err = c.monitors("v2").Patch(c.t.Context(), "old", types.MergePatchType, []byte(`{"metadata":{"labels":{"count":"down"}}}`), metav1.PatchOptions{})
	if err == nil || !strings.Contains(err.Error(), "conversion webhook") {
		c.t.Errorf("write in the other version: error %v, want one that names the conversion webhook", err)
	}
	c.t.Log(err)
}

// TestConversionReplicas: the replica that comes first makes the certificates, and all replicas serve the same. They refuse a Secret that
// another client made, and make a damaged one of ours again.
func TestConversionReplicas(t *testing.T) {
	t.Parallel()
	server := pool.Shared(t)
	c := &twoVersions{Server: server, t: t, namespace: server.Namespace(t)}
	bundles := make([]string, 4)
	var replicas sync.WaitGroup
	for index := range bundles {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		c.listener = listener
		replica, _ := c.serve(c.configuration())
		replicas.Go(func() {
			joint, err := replica.Conversion(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			bundles[index] = string(joint.Webhook.ClientConfig.CABundle)
		})
	}
	replicas.Wait()
	for _, bundle := range bundles[1:] {
		if bundle != bundles[0] {
			t.Error("replicas have different CAs")
		}
	}
	secrets := server.Dynamic.Resource(apischema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(c.namespace)
	if _, err := secrets.Patch(t.Context(), "conversion", types.MergePatchType, []byte(`{"data":{"ca.crt":"eA==","mine":"eA=="}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	apiserver.Eventually(t, func(context.Context) string {
		healed := c.secret()
		if _, left := healed.Data["mine"]; left || strings.Count(string(healed.Data["ca.crt"]), "BEGIN") != 2 {
			return "the damaged Secret is not made again"
		}
		return ""
	})
}
