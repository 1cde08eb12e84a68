package schema

import (
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"sigs.k8s.io/yaml"
)

// TestDefinitionsAreAcceptedByTheAPIServer runs the API server's checks for a new definition: structural schema, defaults against their own
// schema, compilation of every CEL rule and the estimate of its cost.
func TestDefinitionsAreAcceptedByTheAPIServer(t *testing.T) {
	t.Parallel()
	for _, kind := range Kinds() {
		t.Run(kind.Kind, func(t *testing.T) {
			t.Parallel()
			internal := internalDefinition(t, kind)
			for _, fault := range validation.ValidateCustomResourceDefinition(t.Context(), internal) {
				t.Error(fault)
			}
		})
	}
}

func typedDefinition(t *testing.T, kind Kind) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	document, err := Definition(kind)
	if err != nil {
		t.Fatal(err)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(document, definition); err != nil {
		t.Fatalf("parse the definition of %s: %v", kind.Kind, err)
	}
	return definition
}

// internalDefinition is the definition as the API server sees it after defaulting.
func internalDefinition(t *testing.T, kind Kind) *apiextensions.CustomResourceDefinition {
	t.Helper()
	definition := typedDefinition(t, kind)
	apiextensionsv1.SetDefaults_CustomResourceDefinition(definition)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&definition.Spec)
	internal := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(definition, internal, nil); err != nil {
		t.Fatalf("convert the definition of %s: %v", kind.Kind, err)
	}
	internal.Status.StoredVersions = []string{kind.Version}
	return internal
}
