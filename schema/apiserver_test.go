package schema

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// apiServer handles one kind's documents like the API server, with the API server's own code: it prunes fields that the schema does not
// know, fills in defaults, and validates by schema and by CEL.
type apiServer struct {
	structure      *structural.Structural
	validateCreate func(object *unstructured.Unstructured) field.ErrorList
	validateUpdate func(object, old *unstructured.Unstructured) field.ErrorList
}

func newAPIServer(t *testing.T, kindName string) apiServer {
	t.Helper()
	kinds, err := Select([]string{kindName})
	if err != nil {
		t.Fatal(err)
	}
	kind, definition := kinds[0], internalDefinition(t, kinds[0])
	// The conversion moves what all versions share to the top of the definition.
	props, subresources := definition.Spec.Validation, definition.Spec.Subresources
	structure, err := structural.NewStructural(props.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	whole, part := newValidator(t, props.OpenAPIV3Schema), newStatusValidator(t, props.OpenAPIV3Schema)
	strategy := customresource.NewStrategy(runtime.NewScheme(), true, kind.GVK(), whole, part, structure, subresources.Status, subresources.Scale, nil)
	return apiServer{
		structure:      structure,
		validateCreate: func(object *unstructured.Unstructured) field.ErrorList { return strategy.Validate(t.Context(), object) },
		validateUpdate: func(object, old *unstructured.Unstructured) field.ErrorList {
			return strategy.ValidateUpdate(t.Context(), object, old)
		},
	}
}

func newValidator(t *testing.T, props *apiextensions.JSONSchemaProps) validation.SchemaValidator {
	t.Helper()
	validator, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		t.Fatal(err)
	}
	return validator
}

func newStatusValidator(t *testing.T, props *apiextensions.JSONSchemaProps) validation.SchemaValidator {
	t.Helper()
	status := props.Properties["status"]
	return newValidator(t, &status)
}

// admit parses, prunes and defaults a document. Unknown fields are an error, as for kubectl apply (fieldValidation=Strict).
func (s apiServer) admit(document string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
		return nil, err
	}
	content, err := Encode(object.Object)
	if err != nil {
		return nil, err
	}
	object.Object = content
	object.SetNamespace("default")
	defaulting.PruneNonNullableNullsWithoutDefaults(object.Object, s.structure)
	options := structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	if unknown := pruning.PruneWithOptions(object.Object, s.structure, true, options); len(unknown) > 0 {
		return nil, fmt.Errorf("unknown field %s", strings.Join(unknown, ", "))
	}
	defaulting.Default(object.Object, s.structure)
	return object, nil
}

// create returns the stored object, or the error that refuses it.
func (s apiServer) create(document string) (*unstructured.Unstructured, error) {
	object, err := s.admit(document)
	if err != nil {
		return nil, err
	}
	return object, s.validateCreate(object).ToAggregate()
}

// update returns the error that refuses the change from one document to the other.
func (s apiServer) update(t *testing.T, before, after string) error {
	t.Helper()
	old, err := s.create(before)
	if err != nil {
		t.Fatalf("the first document is refused: %v", err)
	}
	object, err := s.admit(after)
	if err != nil {
		return err
	}
	old.SetResourceVersion("1")
	object.SetResourceVersion("1")
	return s.validateUpdate(object, old).ToAggregate()
}

// wantRefusal fails unless err is not nil and contains all parts; no parts mean that err must be nil.
func wantRefusal(t *testing.T, err error, parts ...string) {
	t.Helper()
	if len(parts) == 0 {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	if err == nil {
		t.Errorf("accepted, want an error with %q", parts)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
}
