//go:build !race

// These tests are slow with the race detector, and it finds nothing more: the caches share no data here.

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

// TestNoCacheKeepsWhatTenantsFill: a user who may create ConfigMaps, Pods or StatefulSets with the operator's labels must not be able to
// fill the operator's memory with them. Every cache of every kind keeps little of an object, whatever its fields contain.
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
				continue // the operator caches the specs of its own kinds: docs/security.md
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

// filled returns an object with large values in all fields that its creator may write, and in the status, where Kubernetes repeats some of
// them: the names of containers and images.
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
	// Any client may use a field manager's name that resembles the operator's.
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

// manyOf returns short values under many names, and one long value.
func manyOf(much string) map[string]any {
	values := map[string]any{"storage": "1Gi", "long": much}
	for i := range 10_000 {
		values[fmt.Sprintf("example.com/name-%d", i)] = "1"
	}
	return values
}

// repeating returns a status with large content.
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
