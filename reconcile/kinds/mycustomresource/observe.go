package mycustomresource

import (
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mysql-operator/mysql-operator/reconcile"
	v1 "github.com/mysql-operator/mysql-operator/schema/poc/v1"
)

// caches are what of the engine's client this kind needs.
type caches interface {
	Cached(resource apischema.GroupVersionResource) reconcile.Lister
	WorksIn(namespace string) bool
}

// sight is what a pass saw.
type sight struct {
	// exists says that a Pod of the name is there; one that is being deleted is until it is gone.
	exists bool
	// looks says that the operator knows of the Pods where one is looked for; without a namespace, of those in all.
	looks bool
}

func observe(api caches, spec v1.MyCustomResourceSpec) sight {
	seen := sight{looks: api.WorksIn(spec.Namespace)}
	if spec.Namespace == "" {
		seen.exists = len(api.Cached(pods()).Indexed(indexName, spec.Name)) > 0
		return seen
	}
	_, seen.exists = api.Cached(pods()).Get(spec.Namespace, spec.Name)
	return seen
}
