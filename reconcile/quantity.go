package reconcile

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// canonicalise writes the quantities in a desired object's spec as the API server does ("1024Mi" as "1Gi", "1000m" as "1"), so that they
// can be compared with the stored ones. It looks only at fields where the API has quantities, and never at metadata, whose values are text.
func canonicalise(desired *unstructured.Unstructured) {
	if spec, ok := desired.Object["spec"].(map[string]any); ok {
		canonicaliseIn(spec)
	}
}

func canonicaliseIn(content any) {
	switch value := content.(type) {
	case []any:
		for _, item := range value {
			canonicaliseIn(item)
		}
	case map[string]any:
		for field, inner := range value {
			switch field {
			case metadataField:
				// Labels and annotations may have any name.
			case "requests", "limits", "hard", "capacity":
				canonicaliseValues(inner)
			case "sizeLimit", "divisor":
				value[field] = canonical(inner)
			default:
				canonicaliseIn(inner)
			}
		}
	}
}

func canonicaliseValues(content any) {
	quantities, ok := content.(map[string]any)
	if !ok {
		return
	}
	for name, value := range quantities {
		quantities[name] = canonical(value)
	}
}

// canonical leaves a value that is no quantity as it is: the API server reports a better error.
func canonical(value any) any {
	switch value.(type) {
	case string, int64, float64:
	default:
		return value
	}
	quantity, err := resource.ParseQuantity(fmt.Sprint(value))
	if err != nil {
		return value
	}
	return quantity.String()
}
