//go:build !race

// The race detector makes them slow and finds nothing more: no cache shares anything here.

package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup"
	"github.com/mysql-operator/mysql-operator/schema"
)

// TestNoCacheKeepsWhatTenantsFill: whoever may make a ConfigMap, a Pod or a StatefulSet with the operator's labels must not fill its memory
// by them. Every cache of every kind keeps little of an object, whatever its maker put where.
func TestNoCacheKeepsWhatTenantsFill(t *testing.T) {
	t.Parallel()
	const enough = 64 << 10
	all, err := controllers(schema.Kinds(), self{image: "image"}, vmgroup.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	for _, controller := range all {
		for _, watch := range controller.Watches {
			if watch.MetadataOnly || strings.HasPrefix(watch.Resource.Resource, "mysql") {
				continue // of the operator's own kinds it has the specs: docs/security.md
			}
			transform := watch.Transform
			if transform == nil {
				transform = reconcile.TrimMetadata
			}
			large := filled(t, watch)
			kept, err := transform(large)
			if err != nil {
				t.Fatal(err)
			}
			content, err := json.Marshal(kept)
			if err != nil {
				t.Fatal(err)
			}
			if len(content) > enough {
				t.Errorf("%s: of an object of 3 MiB its cache of %s keeps %d bytes", controller.Kind.Kind, watch.Resource.Resource, len(content))
			}
		}
	}
}

// filled is an object that has much of everything that its maker may write, and the status in which Kubernetes repeats some of that: the
// names of containers and of images.
func filled(t *testing.T, watch reconcile.Watch) *unstructured.Unstructured {
	t.Helper()
	much := strings.Repeat("m", 100_000)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": watch.Resource.GroupVersion().String(), "kind": "Any",
		"spec": map[string]any{
			"volumeClaimTemplates": []any{map[string]any{"metadata": map[string]any{"name": much}, "spec": map[string]any{"storageClassName": much}}, map[string]any{"spec": much}},
			"template":             map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "args": []any{much}}}}},
			"containers":           []any{map[string]any{"name": "c", "args": []any{much}}},
			"metrics":              []any{much},
			"selector":             manyOf(much),
			"scaleTargetRef":       map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": much},
			"resources":            map[string]any{"requests": manyOf(much), "limits": manyOf(much)},
		},
		"status": repeating(much),
	}}
	if watch.Resource.Resource == "configmaps" {
		delete(object.Object, "spec")
		delete(object.Object, "status")
		object.Object["data"] = map[string]any{"a": much}
	}
	object.SetName("large")
	object.SetNamespace("theirs")
	isTrue, annotations, labels := true, map[string]string{}, map[string]string{}
	owners, finalizers := []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: much, UID: types.UID(much), Controller: &isTrue}}, []string{}
	for i := range 1000 {
		annotations[fmt.Sprintf("%s/%d", schema.MySQLGroup, i)] = much[:1000]
		labels[fmt.Sprintf("%d.example.com/label", i)] = much[:63]
		owners = append(owners, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: much[:250], UID: types.UID(fmt.Sprint(i))})
		finalizers = append(finalizers, fmt.Sprintf("%d.example.com/finalizer", i))
	}
	annotations["example.com/note"] = much
	object.SetAnnotations(annotations)
	// Anybody may name a field manager like the operator's.
	managers := []metav1.ManagedFieldsEntry{}
	for i := range 1000 {
		fields := fmt.Sprintf(`{"f:metadata":{"f:annotations":{"f:example.com/%s":{}}}}`, much[:min(100_000, 50*(1+i))])
		owned := &metav1.FieldsV1{}
		owned.SetRawString(fields)
		managers = append(managers, metav1.ManagedFieldsEntry{
			Manager: fmt.Sprintf("%s-%d", reconcile.ManagerChildren, i), Operation: metav1.ManagedFieldsOperationApply, APIVersion: watch.Resource.GroupVersion().String(),
			FieldsType: "FieldsV1", FieldsV1: owned,
		})
	}
	object.SetManagedFields(managers)
	object.SetLabels(labels)
	object.SetOwnerReferences(owners)
	object.SetFinalizers(finalizers)
	return object
}

// manyOf has short values under many names, and a long one.
func manyOf(much string) map[string]any {
	values := map[string]any{"storage": "1Gi", "long": much}
	for i := range 10_000 {
		values[fmt.Sprintf("example.com/name-%d", i)] = "1"
	}
	return values
}

// repeating is a status with much in it.
func repeating(much string) map[string]any {
	conditions, containers := []any{}, []any{}
	for range 1000 {
		conditions = append(conditions, map[string]any{"type": "Any", "status": "False", "reason": "Any", "message": much[:10_000]})
		ended := map[string]any{"terminated": map[string]any{"exitCode": int64(1), "reason": "Error", "message": much[:10_000]}}
		containers = append(containers, map[string]any{
			"name": much[:63], "image": much[:10_000], "imageID": much[:10_000], "lastState": ended,
			"state": map[string]any{"waiting": map[string]any{"reason": "ErrImagePull", "message": much[:10_000]}, "terminated": ended["terminated"]},
		})
	}
	return map[string]any{
		"phase": "Pending", "reason": "Any", "message": much, "conditions": conditions, "capacity": manyOf(much),
		"initContainerStatuses": containers, "containerStatuses": containers,
	}
}
