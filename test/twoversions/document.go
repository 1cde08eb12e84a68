package twoversions

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// DefinitionName is the name of the definition that has a second version in this build.
const DefinitionName = "configmonitors.magalix.com"

// YAML returns the definition as a document, in an order after that of the release: versionAnnotation is where its order stands. Built with
// the tag storedv2 it is that of one release later still, which stores v2.
func YAML(versionAnnotation string) ([]byte, error) {
	definition, err := Definition()
	if err != nil {
		return nil, err
	}
	definition.Annotations[versionAnnotation] = schemaVersion
	for at := range definition.Spec.Versions {
		version := &definition.Spec.Versions[at]
		version.Storage = version.Name == storedVersion
	}
	document, err := yaml.Marshal(map[string]any{
		"apiVersion": apiextensionsv1.SchemeGroupVersion.String(), "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": definition.Name, "annotations": definition.Annotations}, "spec": definition.Spec,
	})
	if err != nil {
		return nil, fmt.Errorf("render the definition with two versions: %w", err)
	}
	return document, nil
}
