package crds

import (
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// missingFields returns the paths, sorted, of the fields in wants that the API server would prune from an object of the schema has
// (https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#field-pruning). The API server drops a
// value written to a pruned field without an error, so a program must not work with such a schema.
func missingFields(has, wants *apiextensionsv1.JSONSchemaProps, path string) []string {
	if has.XPreserveUnknownFields != nil && *has.XPreserveUnknownFields {
		return nil
	}
	missing := missingProperties(has, wants, path)
	if inner, wanted := itemsOf(has), itemsOf(wants); inner != nil && wanted != nil {
		missing = append(missing, missingFields(inner, wanted, path+"[]")...)
	}
	if wants.AdditionalProperties != nil && !acceptsAnyName(has) {
		missing = append(missing, path[1:]+"{}")
	}
	return missing
}

func missingProperties(has, wants *apiextensionsv1.JSONSchemaProps, path string) []string {
	missing := []string{}
	for _, name := range slices.Sorted(maps.Keys(wants.Properties)) {
		below, inner := path+"."+name, wants.Properties[name]
		known, found := has.Properties[name]
		switch {
		case path == "" && isAlwaysThere(name):
		case found:
			missing = append(missing, missingFields(&known, &inner, below)...)
		case !acceptsAnyName(has):
			missing = append(missing, below[1:])
		}
	}
	return missing
}

func isAlwaysThere(rootField string) bool {
	return rootField == "apiVersion" || rootField == "kind" || rootField == fieldMetadata
}

func acceptsAnyName(props *apiextensionsv1.JSONSchemaProps) bool {
	return props.AdditionalProperties != nil && (props.AdditionalProperties.Allows || props.AdditionalProperties.Schema != nil)
}

func itemsOf(props *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	if props.Items == nil {
		return nil
	}
	return props.Items.Schema
}
