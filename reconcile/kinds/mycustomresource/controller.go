// Package mycustomresource reconciles MyCustomResource resources: one is healthy while a Pod of the name that it gives exists.
//
// A pass observes (observe.go), decides (decide.go) and reports (status.go); there is nothing to do but to tell. What makes it cheap is
// how it hears of Pods: the watch brings metadata only, of which the cache keeps names, and two indices lead from a Pod to those that
// look for it, and from a name to the Pods that have it. So what a change of a Pod costs does not depend on how many Pods there are,
// nor on how many MyCustomResources; most changes are no news at all.
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

// Controller is the kind as the engine knows it. Pods are watched in all namespaces of the operator, whoever made them.
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
		Childless: true, // it makes nothing
		New: func(api *reconcile.Client) reconcile.Reconciler {
			return &reconciler{api: api, now: time.Now}
		},
	}
}

// wanted names Pods that are looked for: with an empty namespace those of the name in all.
func wanted(namespace, name string) string {
	return namespace + "/" + name
}

// friendOf is the key of a cached MyCustomResource: what it looks for.
func friendOf(resource *unstructured.Unstructured) []string {
	name, _, _ := unstructured.NestedString(resource.Object, "spec", "name")
	namespace, _, _ := unstructured.NestedString(resource.Object, "spec", "namespace")
	return []string{wanted(namespace, name)}
}

// nameOf is the key of a cached Pod.
func nameOf(pod *unstructured.Unstructured) []string {
	return []string{pod.GetName()}
}

// friendsOf returns the MyCustomResources that look for a Pod: in its namespace, or everywhere.
func friendsOf(pod *unstructured.Unstructured, resources reconcile.Lister) []types.NamespacedName {
	concerned := []types.NamespacedName{}
	for _, namespace := range []string{pod.GetNamespace(), ""} {
		for _, resource := range resources.Indexed(indexFriend, wanted(namespace, pod.GetName())) {
			concerned = append(concerned, types.NamespacedName{Namespace: resource.GetNamespace(), Name: resource.GetName()})
		}
	}
	return concerned
}

func pods() apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Version: "v1", Resource: "pods"}
}
