package reconcile

import (
	"unique"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// sharedText is up to which length, in bytes, a text is worth looking for a twin of it. Longer ones hardly ever have any.
const sharedText = 32

// compact rebuilds an unstructured object on its way into a cache with equal texts, the names of fields above all, kept once for all
// caches: decoded from JSON, every object has copies of its own. That saves about a seventh of a cache. Anything else is returned as
// it is.
func compact(item any) any {
	object, ok := item.(*unstructured.Unstructured)
	if ok {
		object.Object = compactMap(object.Object)
	}
	return item
}

func compactMap(fields map[string]any) map[string]any {
	if fields == nil {
		return nil
	}
	compacted := make(map[string]any, len(fields))
	for name, value := range fields {
		compacted[shared(name)] = compactValue(value)
	}
	return compacted
}

func compactValue(value any) any {
	switch value := value.(type) {
	case map[string]any:
		return compactMap(value)
	case []any:
		for i, item := range value {
			value[i] = compactValue(item)
		}
		return value
	case string:
		return shared(value)
	default:
		return value
	}
}

// shared returns the text's one copy. It goes when nobody has it any more (package unique).
func shared(text string) string {
	if len(text) > sharedText {
		return text
	}
	return unique.Make(text).Value()
}
