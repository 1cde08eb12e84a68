package backup

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// The indices of the caches. indexKey makes their keys.
const (
	// indexLabel finds instances, and Pods, by the value of the label that names the instance.
	indexLabel = "label"
	// indexWaiting finds instances that are not over by the cluster in their spec, which may be empty.
	indexWaiting = "waiting"
	// indexClaim finds instances that are not over by the volume that holds their data.
	indexClaim = "claim"
)

func indexKey(namespace, name string) string {
	return types.NamespacedName{Namespace: namespace, Name: name}.String()
}

// indices are the indices of the cached instances.
func indices() map[string]reconcile.IndexFunc {
	return map[string]reconcile.IndexFunc{
		indexLabel: func(instance *unstructured.Unstructured) []string {
			return []string{indexKey(instance.GetNamespace(), transfer.LabelValue(instance.GetName()))}
		},
		indexWaiting: unlessOver("spec", "cluster"),
		indexClaim:   unlessOver("status", "location", "claim"),
	}
}

// unlessOver returns the index of a field of instances that are not over.
func unlessOver(path ...string) reconcile.IndexFunc {
	return func(instance *unstructured.Unstructured) []string {
		phase, _, _ := unstructured.NestedString(instance.Object, "status", "phase")
		if isOver(v1.BackupPhase(phase)) {
			return nil
		}
		value, _, _ := unstructured.NestedString(instance.Object, path...)
		return []string{indexKey(instance.GetNamespace(), value)}
	}
}

// podLabel returns the index key of a Pod.
func podLabel(pod *unstructured.Unstructured) []string {
	return []string{indexKey(pod.GetNamespace(), pod.GetLabels()[transfer.LabelBackup])}
}
