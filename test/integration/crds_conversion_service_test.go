package integration

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/mysql-operator/mysql-operator/crds/conversion"
	"github.com/mysql-operator/mysql-operator/test/integration/internal/apiserver"
	"github.com/mysql-operator/mysql-operator/test/twoversions"
)

func (c *twoVersions) core(resource string) dynamic.ResourceInterface {
	return c.Dynamic.Resource(apischema.GroupVersionResource{Version: "v1", Resource: resource}).Namespace(c.namespace)
}

func (c *twoVersions) make(api dynamic.ResourceInterface, object any) {
	c.t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := api.Create(c.t.Context(), &unstructured.Unstructured{Object: content}, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// restricted is an account with the given rights in the namespace and none beyond.
func (c *twoVersions) restricted(rules []rbacv1.PolicyRule) *rest.Config {
	c.t.Helper()
	rbac := func(resource string) dynamic.ResourceInterface {
		return c.Dynamic.Resource(rbacv1.SchemeGroupVersion.WithResource(resource)).Namespace(c.namespace)
	}
	c.make(rbac("roles"), &rbacv1.Role{
		TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role"}, ObjectMeta: metav1.ObjectMeta{Name: "converts"}, Rules: rules,
	})
	c.make(rbac("rolebindings"), &rbacv1.RoleBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding"}, ObjectMeta: metav1.ObjectMeta{Name: "converts"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "converts"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: c.namespace, Name: "operator"}},
	})
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + c.namespace + ":operator", Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	return config
}

// pod makes a Pod that nothing runs.
func (c *twoVersions) pod(name string) {
	c.t.Helper()
	c.make(c.core("pods"), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name, "labels": map[string]any{"run": "operator"}},
		"spec": map[string]any{"automountServiceAccountToken": false, "containers": []any{map[string]any{"name": "operator", "image": "operator:test"}}},
	}})
}

func (c *twoVersions) field(resource, name string, fields ...string) any {
	c.t.Helper()
	object, err := c.core(resource).Get(c.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, fields...)
	return value
}

func (c *twoVersions) inCluster(rights *rest.Config, pod string, version int) conversion.Config {
	c.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	c.listener = listener
	config := c.configuration()
	config.Rest, config.URL, config.Pod, config.Version = rights, "", pod, version
	config.Reach = time.Millisecond // no node knows the Service here
	return config
}

func conversionOf(t *testing.T, server *conversion.Server, patience time.Duration) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	joint, err := server.Conversion(ctx)
	if err != nil {
		return "", err
	}
	service := joint.Webhook.ClientConfig.Service
	return fmt.Sprintf("%s/%s:%d%s", service.Namespace, service.Name, *service.Port, *service.Path), nil
}

// TestConversionService: an operator's life in a Pod, with no rights but those of Rules.
func TestConversionService(t *testing.T) {
	t.Parallel()
	server := pool.Shared(t)
	c := &twoVersions{Server: server, t: t, namespace: server.Namespace(t)}
	rights := c.restricted(conversion.Rules("conversion"))
	c.pod("new-0")
	c.pod("old-0")
	label := twoversions.Domain + "/converts"

	old, stopOld := c.serve(c.inCluster(rights, "old-0", 2))
	if got, err := conversionOf(t, old, 20*time.Second); err != nil || got != c.namespace+"/conversion:443/convert" {
		t.Fatalf("the definition is to say %q, error %v", got, err)
	}
	want := map[string]any{label: "2"}
	if diff := cmp.Diff(want, c.field("services", "conversion", "spec", "selector")); diff != "" {
		t.Errorf("the Service selects (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{label: "2", "run": "operator"}, c.field("pods", "old-0", "metadata", "labels")); diff != "" {
		t.Errorf("labels of the Pod (-want +got):\n%s", diff)
	}

	fresh, _ := c.serve(c.inCluster(rights, "new-0", 10))
	if _, err := conversionOf(t, fresh, 20*time.Second); err != nil {
		t.Fatal(err)
	}
	want[label] = "10"
	if diff := cmp.Diff(want, c.field("services", "conversion", "spec", "selector")); diff != "" {
		t.Errorf("beside a newer operator, the Service selects (-want +got):\n%s", diff)
	}
	before := c.field("services", "conversion", "metadata", "resourceVersion")
	// Both look at the Service at every poll; a few of them change nothing.
	select {
	case <-time.After(time.Second):
	case <-t.Context().Done():
	}
	if after := c.field("services", "conversion", "metadata", "resourceVersion"); after != before {
		t.Errorf("the Service is written without need: resourceVersion %v, then %v", before, after)
	}

	stopOld()
	if diff := cmp.Diff(map[string]any{"run": "operator"}, c.field("pods", "old-0", "metadata", "labels")); diff != "" {
		t.Errorf("labels of the Pod that ended (-want +got):\n%s", diff)
	}
	if err := c.core("services").Delete(t.Context(), "conversion", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	apiserver.Eventually(t, func(ctx context.Context) string {
		if _, err := c.core("services").Get(ctx, "conversion", metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
}

// TestConversionForeign: the operator never touches what another client made under our names.
func TestConversionForeign(t *testing.T) {
	t.Parallel()
	server := pool.Shared(t)
	c := &twoVersions{Server: server, t: t, namespace: server.Namespace(t)}
	c.make(c.core("secrets"), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "conversion"}, "stringData": map[string]any{"mine": "x"},
	}})
	c.pod("operator-0")
	said := make(chan string, 100)
	config := c.inCluster(c.Config, "operator-0", 2)
	config.Log = funcr.New(func(_, line string) { said <- line }, funcr.Options{})
	replica, _ := c.serve(config)
	select {
	case line := <-said:
		if !strings.Contains(line, "app.kubernetes.io/managed-by=twoversions") || !strings.Contains(line, "delete or rename") {
			t.Errorf("the log says %q, want what is missing and the remedy", line)
		}
	case <-time.After(20 * time.Second):
		t.Error("waited 20 s in vain for the log to tell of the foreign Secret")
	}
	if _, err := conversionOf(t, replica, 200*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want that it is waited for", err)
	}
	if diff := cmp.Diff(map[string]any{"mine": "eA=="}, c.field("secrets", "conversion", "data")); diff != "" {
		t.Errorf("the foreign Secret (-want +got):\n%s", diff)
	}
}
