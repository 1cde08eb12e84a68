package schema

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Decode fills into (a pointer to a kind's type) from an object of the API. It ignores fields that the type does not have: they come from a
// newer version of the definition, which this program must tolerate.
func Decode(object *unstructured.Unstructured, into any) error {
	return decode(object, into, false)
}

// DecodeStrict is like Decode, but a field that the type does not have is an error. It is for tests and for documents that people wrote.
func DecodeStrict(object *unstructured.Unstructured, into any) error {
	return decode(object, into, true)
}

func decode(object *unstructured.Unstructured, into any, strict bool) error {
	if object == nil {
		return fmt.Errorf("decode %T: no object given", into)
	}
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, into, strict)
	if err != nil {
		return fmt.Errorf("decode %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	return nil
}

// Encode turns a typed value (usually a status) into the content of an unstructured object. It omits unset fields according to the type's
// tags, so that a server-side apply of the result owns only fields that are set. Whole numbers become int64, as API machinery needs them.
func Encode(typed any) (map[string]any, error) {
	document, err := json.Marshal(typed)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", typed, err)
	}
	content := map[string]any{}
	if err := utiljson.Unmarshal(document, &content); err != nil {
		return nil, fmt.Errorf("encode %T: it is not an object: %w", typed, err)
	}
	return content, nil
}
