// Package mycustomresource reconciles MyCustomResource resources. A resource is healthy while a Pod of the name that it gives exists.
//
// A pass observes (observe.go), decides (decide.go) and reports (status.go). It changes no other object. It is cheap: the watch brings only
// the metadata of Pods, and the cache keeps only their names. Two indices lead from a Pod to the resources that look for it, and from a
// name to the Pods that have it. So the cost of a changed Pod does not depend on the number of Pods or MyCustomResources. Most changes
// cause no pass.
package mycustomresource

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/schema"
)

// The indices: of MyCustomResources by the Pods they look for (wanted), and of Pods by name.
const (
	indexFriend = "friend"
	indexName   = "name"
)

// Controller describes the kind to the engine. It watches all Pods in the operator's namespaces, whoever created them.
func Controller(kind schema.Kind) reconcile.Controller {
	return reconcile.Controller{
		Kind:    kind,
		Indices: map[string]reconcile.IndexFunc{indexFriend: friendOf},
		Watches: []reconcile.Watch{{
			Resource:     pods(),
			MetadataOnly: true,
			Transform:    reconcile.KeepIdentity,
			Indices:      map[string]reconcile.IndexFunc{indexName: nameOf},
			Owners:       friendsOf,
		}},
		Childless: true, // it creates no objects
		New: func(reader *reconcile.Reader) reconcile.Reconciler {
			return &reconciler{reader: reader, now: time.Now}
		},
	}
}

// indexKey returns the index key of the Pods that a resource looks for. With an empty namespace, these are the Pods of that name in all
// namespaces.
func indexKey(namespace, name string) string {
	return namespace + "/" + name
}

// friendOf returns the index keys of a cached MyCustomResource: the Pods that it looks for.
func friendOf(resource *unstructured.Unstructured) []string {
	name, _, _ := unstructured.NestedString(resource.Object, "spec", "name")
	namespace, _, _ := unstructured.NestedString(resource.Object, "spec", "namespace")
	return []string{indexKey(namespace, name)}
}

// nameOf returns the index keys of a cached Pod.
func nameOf(pod *unstructured.Unstructured) []string {
	return []string{pod.GetName()}
}

// friendsOf returns the MyCustomResources that look for a Pod, in its namespace or in all namespaces.
func friendsOf(pod *unstructured.Unstructured, resources reconcile.Lister) []types.NamespacedName {
	concerned := []types.NamespacedName{}
	for _, namespace := range []string{pod.GetNamespace(), ""} {
		for _, resource := range resources.Indexed(indexFriend, indexKey(namespace, pod.GetName())) {
			concerned = append(concerned, types.NamespacedName{Namespace: resource.GetNamespace(), Name: resource.GetName()})
		}
	}
	return concerned
}

func pods() apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Version: "v1", Resource: "pods"}
}
