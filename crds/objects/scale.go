package objects

import (
	"math"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateScale checks the fields of the scale subresource: the numbers of replicas must fit an autoscaling/v1 Scale, and the selector must
// be a string. The messages are those of the API server.
func validateScale(content map[string]any, scale *apiextensionsv1.CustomResourceSubresourceScale) field.ErrorList {
	if scale == nil {
		return nil
	}
	refused := validateReplicas(content, scale.SpecReplicasPath)
	refused = append(refused, validateReplicas(content, scale.StatusReplicasPath)...)
	if scale.LabelSelectorPath == nil {
		return refused
	}
	selector, _, err := unstructured.NestedString(content, steps(*scale.LabelSelectorPath)...)
	if err != nil {
		refused = append(refused, field.Invalid(field.NewPath(*scale.LabelSelectorPath), selector, err.Error()))
	}
	return refused
}

func validateReplicas(content map[string]any, path string) field.ErrorList {
	replicas, _, err := unstructured.NestedInt64(content, steps(path)...)
	at := field.NewPath(path)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(at, replicas, err.Error())}
	case replicas < 0:
		return field.ErrorList{field.Invalid(at, replicas, "should be a non-negative integer")}
	case replicas > math.MaxInt32:
		return field.ErrorList{field.Invalid(at, replicas, "should be less than or equal to 2147483647")}
	default:
		return nil
	}
}

// steps splits the path of a field within an object, such as .spec.replicas.
func steps(path string) []string {
	return strings.Split(strings.TrimPrefix(path, "."), ".")
}
