package mycustomresource

import (
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mysql-operator/mysql-operator/reconcile"
	v1 "github.com/mysql-operator/mysql-operator/schema/poc/v1"
)

// caches is the part of the engine's client that this kind needs.
type caches interface {
	Cached(resource apischema.GroupVersionResource) reconcile.Lister
	WorksIn(namespace string) bool
}

// observed is what a pass observed.
type observed struct {
	// exists reports whether a Pod of the name exists. A Pod that is being deleted exists until it is gone.
	exists bool
	// watched reports whether the operator watches Pods in the resource's spec.namespace. If that is empty: in all namespaces.
	watched bool
}

func observe(api caches, spec v1.MyCustomResourceSpec) observed {
	seen := observed{watched: api.WorksIn(spec.Namespace)}
	if spec.Namespace == "" {
		seen.exists = len(api.Cached(pods()).Indexed(indexName, spec.Name)) > 0
		return seen
	}
	_, seen.exists = api.Cached(pods()).Get(spec.Namespace, spec.Name)
	return seen
}
