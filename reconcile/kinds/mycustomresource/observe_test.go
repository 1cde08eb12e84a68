package mycustomresource

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile"
	v1 "github.com/mysql-operator/mysql-operator/schema/poc/v1"
)

func same(t *testing.T, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(decision{}, observed{})); diff != "" {
		t.Errorf("unexpected (-want +got):\n%s", diff)
	}
}

// shelf is a cache with one index, which a test fills. It cannot list all objects: no code here may need that.
type shelf struct {
	reconcile.Lister
	keys    reconcile.IndexFunc
	objects []*unstructured.Unstructured
}

// Get implements reconcile.Lister.
func (s shelf) Get(namespace, name string) (*unstructured.Unstructured, bool) {
	for _, object := range s.objects {
		if object.GetNamespace() == namespace && object.GetName() == name {
			return object, true
		}
	}
	return nil, false
}

// Indexed implements reconcile.Lister.
func (s shelf) Indexed(_, key string) []*unstructured.Unstructured {
	found := []*unstructured.Unstructured{}
	for _, object := range s.objects {
		if slices.Contains(s.keys(object), key) {
			found = append(found, object)
		}
	}
	return found
}

func named(namespace, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

func resourceFor(name string, spec v1.MyCustomResourceSpec) *unstructured.Unstructured {
	object := named("home", name)
	content := map[string]any{"name": spec.Name}
	if spec.Namespace != "" {
		content["namespace"] = spec.Namespace
	}
	object.Object["spec"] = content
	return object
}

func TestWhomAPodConcerns(t *testing.T) {
	t.Parallel()
	resources := shelf{keys: friendOf, objects: []*unstructured.Unstructured{
		resourceFor("any-joe", v1.MyCustomResourceSpec{Name: "joe"}),
		resourceFor("shops-joe", v1.MyCustomResourceSpec{Name: "joe", Namespace: "shop"}),
		resourceFor("banks-joe", v1.MyCustomResourceSpec{Name: "joe", Namespace: "bank"}),
		resourceFor("any-jane", v1.MyCustomResourceSpec{Name: "jane"}),
	}}
	for story, test := range map[string]struct {
		pod  *unstructured.Unstructured
		want []string
	}{
		"one that is looked for here and anywhere":  {named("shop", "joe"), []string{"shops-joe", "any-joe"}},
		"one that is looked for anywhere":           {named("home", "jane"), []string{"any-jane"}},
		"one in the resource's own namespace":       {named("home", "joe"), []string{"any-joe"}},
		"one that no resource looks for":            {named("shop", "jim"), nil},
		"one whose name begins like one looked for": {named("shop", "joe-2"), nil},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			want := []types.NamespacedName{}
			for _, name := range test.want {
				want = append(want, types.NamespacedName{Namespace: "home", Name: name})
			}
			same(t, friendsOf(test.pod, resources), want)
		})
	}
}

// cluster implements caches with the Pods and namespaces of a test.
type cluster struct {
	pods       shelf
	namespaces []string
}

// Cached implements caches.
func (c cluster) Cached(apischema.GroupVersionResource) reconcile.Lister { return c.pods }

// WorksIn implements caches.
func (c cluster) WorksIn(namespace string) bool {
	return len(c.namespaces) == 0 || slices.Contains(c.namespaces, namespace)
}

func TestObserve(t *testing.T) {
	t.Parallel()
	all := shelf{keys: nameOf, objects: []*unstructured.Unstructured{named("shop", "joe"), named("bank", "joe"), named("bank", "jane")}}
	for story, test := range map[string]struct {
		spec       v1.MyCustomResourceSpec
		namespaces []string
		want       observed
	}{
		"a Pod in several namespaces":                    {v1.MyCustomResourceSpec{Name: "joe"}, nil, observed{exists: true, watched: true}},
		"a Pod in another namespace":                     {v1.MyCustomResourceSpec{Name: "jane"}, nil, observed{exists: true, watched: true}},
		"no Pod":                                         {v1.MyCustomResourceSpec{Name: "jim"}, nil, observed{watched: true}},
		"a Pod in the namespace asked for":               {v1.MyCustomResourceSpec{Name: "jane", Namespace: "bank"}, nil, observed{exists: true, watched: true}},
		"a Pod in another namespace than the one":        {v1.MyCustomResourceSpec{Name: "jane", Namespace: "shop"}, nil, observed{watched: true}},
		"an operator of some namespaces asked about all": {v1.MyCustomResourceSpec{Name: "jim"}, []string{"shop", "bank"}, observed{}},
		"asked about one of its own":                     {v1.MyCustomResourceSpec{Name: "jim", Namespace: "bank"}, []string{"shop", "bank"}, observed{watched: true}},
		"asked about another":                            {v1.MyCustomResourceSpec{Name: "jim", Namespace: "home"}, []string{"shop", "bank"}, observed{}},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			same(t, observe(cluster{pods: all, namespaces: test.namespaces}, test.spec), test.want)
		})
	}
}
