package crds

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// affectsObjects reports whether the target differs from the existing definition in anything that could affect objects. It lists what
// affects none. Everything else counts, and so do fields that a later Kubernetes adds to definitions.
func affectsObjects(existing, target *apiextensionsv1.CustomResourceDefinition) bool {
	stored := existing.Status.StoredVersions
	return !equality.Semantic.DeepEqual(objectRelevantSpec(existing, stored), objectRelevantSpec(target, stored))
}

// objectRelevantSpec returns a copy of the definition's spec without the parts that affect no object: names, columns, texts for people, the
// address and the certificate of the conversion webhook, and versions in which no object is read, written or stored.
func objectRelevantSpec(definition *apiextensionsv1.CustomResourceDefinition, stored []string) apiextensionsv1.CustomResourceDefinitionSpec {
	type apiVersion = apiextensionsv1.CustomResourceDefinitionVersion
	spec := defaulted(definition).Spec
	spec.Names = apiextensionsv1.CustomResourceDefinitionNames{}
	spec.Conversion.Webhook = nil
	served := slices.ContainsFunc(spec.Versions, func(version apiVersion) bool { return version.Served })
	for at := range spec.Versions {
		version := &spec.Versions[at]
		// Objects of a definition that serves no version cannot be read. Serving them again as they are stored needs no check.
		version.Served = version.Served || (version.Storage && !served)
		version.AdditionalPrinterColumns, version.Deprecated, version.DeprecationWarning = nil, false, nil
		if version.Schema != nil {
			dropTexts(version.Schema.OpenAPIV3Schema)
		}
	}
	spec.Versions = slices.DeleteFunc(spec.Versions, func(version apiVersion) bool {
		return !version.Served && !version.Storage && !slices.Contains(stored, version.Name)
	})
	return spec
}

// dropTexts removes from a schema the texts that only people read.
func dropTexts(schema *apiextensionsv1.JSONSchemaProps) {
	if schema == nil {
		return
	}
	schema.Description, schema.Title, schema.Example, schema.ExternalDocs = "", "", nil, nil
	for at := range schema.XValidations {
		rule := &schema.XValidations[at]
		rule.Message, rule.MessageExpression, rule.Reason, rule.FieldPath = "", "", nil, ""
	}
	for name, field := range schema.Properties {
		dropTexts(&field)
		schema.Properties[name] = field
	}
	for _, parts := range [][]apiextensionsv1.JSONSchemaProps{schema.AllOf, schema.AnyOf, schema.OneOf} {
		for at := range parts {
			dropTexts(&parts[at])
		}
	}
	dropTexts(schema.Not)
	if schema.Items != nil {
		dropTexts(schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil {
		dropTexts(schema.AdditionalProperties.Schema)
	}
}
