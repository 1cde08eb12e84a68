package objects

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// edition is a definition as the API server enforces it.
type edition struct {
	group    string
	webhook  bool
	storage  string
	versions map[string]version
	// order holds the names of the versions that an object can be read, written or stored in, in the order of the definition.
	order []string
}

// version is one API version of an edition.
type version struct {
	name       string
	served     bool
	keepsAll   bool // spec.preserveUnknownFields, which definitions made before apiextensions.k8s.io/v1 may still have
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
	scale      *apiextensionsv1.CustomResourceSubresourceScale
}

func newEdition(definition *apiextensionsv1.CustomResourceDefinition) (edition, error) {
	compiled := edition{group: definition.Spec.Group, versions: map[string]version{}}
	compiled.webhook = definition.Spec.Conversion != nil && definition.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
	for _, declared := range definition.Spec.Versions {
		if declared.Storage {
			compiled.storage = declared.Name
		}
		if !declared.Served && !declared.Storage && !slices.Contains(definition.Status.StoredVersions, declared.Name) {
			continue
		}
		one, err := newVersion(declared, definition.Spec.PreserveUnknownFields)
		if err != nil {
			return edition{}, fmt.Errorf("compile version %s of definition %s: %w", declared.Name, definition.Name, err)
		}
		compiled.versions[declared.Name] = one
		compiled.order = append(compiled.order, declared.Name)
	}
	return compiled, nil
}

// newVersion compiles a version as getOrCreateServingInfoFor of k8s.io/apiextensions-apiserver does.
func newVersion(declared apiextensionsv1.CustomResourceDefinitionVersion, keepsAll bool) (version, error) {
	compiled := version{name: declared.Name, served: declared.Served, keepsAll: keepsAll}
	if declared.Subresources != nil {
		compiled.scale = declared.Subresources.Scale
	}
	internal := &apiextensions.CustomResourceValidation{}
	if declared.Schema != nil {
		if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(declared.Schema, internal, nil); err != nil {
			return version{}, fmt.Errorf("read its schema: %w", err)
		}
	}
	validator, _, err := validation.NewSchemaValidator(internal.OpenAPIV3Schema)
	if err != nil {
		return version{}, fmt.Errorf("read its schema: %w", err)
	}
	compiled.validator = validator
	if internal.OpenAPIV3Schema == nil {
		return compiled, nil
	}
	structural, err := structuralschema.NewStructural(internal.OpenAPIV3Schema)
	switch {
	case err == nil:
	case keepsAll:
		return compiled, nil // such old definitions need not be structural; the API server then neither prunes nor defaults
	default:
		return version{}, fmt.Errorf("its schema is not structural: %w", err)
	}
	structural = structural.DeepCopy() // its defaults are still shared with the definition
	if !keepsAll {
		if err := defaulting.PruneDefaults(structural); err != nil {
			return version{}, fmt.Errorf("prune its defaults: %w", err)
		}
	}
	compiled.structural = structural
	compiled.rules = cel.NewValidator(structural, true, celconfig.PerCallLimit)
	return compiled, nil
}

// prune removes the fields that the version does not know, and returns their paths.
func (v version) prune(content map[string]any) []string {
	if v.keepsAll {
		return nil
	}
	return pruning.PruneWithOptions(content, v.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
}

// complete does the other steps of decoding an object: it drops nulls where they are not allowed, normalizes the metadata of embedded
// objects, and fills in defaults. It returns the fields of that metadata that are lost, and what is refused.
func (v version) complete(content map[string]any) (lost []string, refused field.ErrorList) {
	if !v.keepsAll {
		defaulting.PruneNonNullableNullsWithoutDefaults(content, v.structural)
	}
	wrong, lost := objectmeta.CoerceWithOptions(nil, content, v.structural, false, objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	if wrong != nil {
		refused = append(refused, wrong)
	}
	defaulting.Default(content, v.structural)
	return lost, refused
}

// validate returns what the version refuses of the object, without its rules.
func (v version) validate(ctx context.Context, content map[string]any) field.ErrorList {
	refused := validation.ValidateCustomResource(nil, content, v.validator)
	refused = append(refused, validateScale(content, v.scale)...)
	refused = append(refused, objectmeta.Validate(ctx, nil, content, v.structural, false)...)
	return append(refused, listtype.ValidateListSetsAndMaps(nil, v.structural, content)...)
}

// evaluate returns what the version's rules refuse. There is no old object, so transition rules do not apply.
func (v version) evaluate(ctx context.Context, content map[string]any) field.ErrorList {
	if v.rules == nil {
		return nil
	}
	refused, _ := v.rules.Validate(ctx, nil, v.structural, content, nil, celconfig.RuntimeCELCostBudget)
	return refused
}
