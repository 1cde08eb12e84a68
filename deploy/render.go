package deploy

import (
	"bytes"
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"
)

// Render writes objects as YAML documents, without the empty status and creation time that Go types of Kubernetes always have.
func Render(objects []any) ([]byte, error) {
	var document bytes.Buffer
	for at, object := range objects {
		if at > 0 {
			document.WriteString("---\n")
		}
		part, err := render(object)
		if err != nil {
			return nil, fmt.Errorf("render %T: %w", object, err)
		}
		document.Write(part)
	}
	return document.Bytes(), nil
}

func render(object any) ([]byte, error) {
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	content := map[string]any{}
	if err := json.Unmarshal(encoded, &content); err != nil {
		return nil, err
	}
	delete(content, "status")
	return yaml.Marshal(withoutEmpty(content))
}

// withoutEmpty drops nulls and empty objects, which mean nothing in the objects rendered here.
func withoutEmpty(content map[string]any) map[string]any {
	kept := map[string]any{}
	for key, value := range content {
		if inner, ok := value.(map[string]any); ok {
			value = withoutEmpty(inner)
			if len(inner) == 0 || len(value.(map[string]any)) == 0 {
				continue
			}
		}
		if value != nil {
			kept[key] = value
		}
	}
	return kept
}
