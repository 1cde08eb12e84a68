package children

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// SecretData returns the content of a Secret.
func SecretData(object *unstructured.Unstructured) (map[string][]byte, error) {
	var secret corev1.Secret
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &secret); err != nil {
		return nil, fmt.Errorf("read Secret %s/%s: %w", object.GetNamespace(), object.GetName(), err)
	}
	return secret.Data, nil
}
