package integration

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/kinds/mycustomresource"
	"github.com/mysql-operator/mysql-operator/schema"
	pocv1 "github.com/mysql-operator/mysql-operator/schema/poc/v1"
)

func myCustomResources() schema.Kind {
	return schema.Kind{Group: schema.PoCGroup, Version: "v1", Kind: "MyCustomResource", Plural: "mycustomresources"}
}

// friends are two namespaces with Pods; MyCustomResources are in the first. The operator works in both, with what the manifests grant.
type friends struct {
	t          *testing.T
	home, away *place
}

func newFriends(t *testing.T) *friends {
	t.Helper()
	server := pool.Shared(t)
	f := &friends{t: t, home: newPlace(t, server, myCustomResources())}
	f.away = &place{Server: server, namespace: server.Namespace(t)}
	rules := rulesOf(mycustomresource.Controller(myCustomResources()))
	f.home.grant(t, rules)
	f.away.grant(t, rules)
	// There, too, it is the operator of the first namespace that is allowed to.
	subject := fmt.Sprintf(`{"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":%q}]}`, f.home.operatorUser())
	f.away.patch(t, "rolebindings", "operator", subject)
	return f
}

// operate starts an operator of both namespaces.
func (f *friends) operate(configure ...func(*reconcile.Config)) *operating {
	f.t.Helper()
	return f.home.operate(f.t, func(config *reconcile.Config) {
		config.Namespaces = []string{f.home.namespace, f.away.namespace}
		for _, change := range configure {
			change(config)
		}
	}, mycustomresource.Controller(myCustomResources()))
}

// seek makes a MyCustomResource that looks for a Pod.
func (f *friends) seek(name, spec string) {
	f.t.Helper()
	made := object(f.t, fmt.Sprintf("{apiVersion: poc.test.domain/v1, kind: MyCustomResource, metadata: {name: %s}, spec: {%s}}", name, spec))
	if _, err := f.home.Dynamic.Resource(myCustomResources().GVR()).Namespace(f.home.namespace).Create(f.t.Context(), made, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// respec changes what one looks for.
func (f *friends) respec(name, spec string) {
	f.t.Helper()
	changes := fmt.Appendf(nil, `{"spec":%s}`, spec)
	if _, err := f.home.Dynamic.Resource(myCustomResources().GVR()).Namespace(f.home.namespace).Patch(f.t.Context(), name, types.MergePatchType, changes, metav1.PatchOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// pod makes a Pod; no kubelet will ever run it, which does not matter.
func (f *friends) pod(where *place, name string) {
	f.t.Helper()
	where.make(f.t, "pods", fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {containers: [{name: ubuntu, image: 'ubuntu:latest', command: [sleep], args: [infinity]}]}}", name))
}

func (f *friends) read(ctx context.Context, name string) (pocv1.MyCustomResource, error) {
	var resource pocv1.MyCustomResource
	found, err := f.home.Dynamic.Resource(myCustomResources().GVR()).Namespace(f.home.namespace).Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		err = schema.DecodeStrict(found, &resource)
	}
	return resource, err
}

// is waits until a MyCustomResource tells this health and reason of its present spec, and returns the message.
func (f *friends) is(name string, healthy bool, reason string) string {
	f.t.Helper()
	message := ""
	soon(f.t, func(ctx context.Context) string {
		resource, err := f.read(ctx, name)
		if err != nil {
			return err.Error()
		}
		ready := readyIn(resource.Status.Conditions)
		message = ready.Message
		if resource.Status.Healthy != healthy || ready.Reason != reason || resource.Status.ObservedGeneration != resource.Generation {
			return fmt.Sprintf("%s is %+v at generation %d, want Healthy %t because of %s", name, resource.Status, resource.Generation, healthy, reason)
		}
		return ""
	})
	return message
}

// podReads notes how an operator asked for Pods.
type podReads struct {
	mu      sync.Mutex
	accepts []string
}

func (r *podReads) around(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if request.Method == http.MethodGet && strings.HasSuffix(request.URL.Path, "/pods") {
			r.mu.Lock()
			r.accepts = append(r.accepts, request.Header.Get("Accept"))
			r.mu.Unlock()
		}
		return next.RoundTrip(request)
	})
}

func (r *podReads) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.accepts
}
