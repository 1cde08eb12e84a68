package crds

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Definition is one definition of a program: typed, defaulted as the API server does, and stamped.
type Definition struct {
	// Version is its order: see Identity.VersionAnnotation.
	Version int
	// Hash is the sha256 of its spec, without the program's stamps and without its conversion.
	Hash string
	// Uses is the API version the program works with.
	Uses string
	// Conversion replaces the YAML's conversion when the definition is applied; nil leaves it. It is not a part of Hash, because its
	// certificates change.
	Conversion *apiextensionsv1.CustomResourceConversion
	// Converts are the API versions that the program's conversion webhook can read; empty if it has no webhook for this kind. If a program
	// converts, but does not know its webhook's address at the moment (Conversion is nil), it does not change the existing conversion.
	Converts []string

	identity Identity
	object   *apiextensionsv1.CustomResourceDefinition
}

// Name returns the name of the definition: "<plural>.<group>".
func (d Definition) Name() string { return d.object.Name }

// Identity returns the identity of the program that the definition belongs to.
func (d Definition) Identity() Identity { return d.identity }

// Object returns a copy of the definition, which the caller may change.
func (d Definition) Object() *apiextensionsv1.CustomResourceDefinition {
	object := d.object.DeepCopy()
	if d.Conversion != nil {
		object.Spec.Conversion = d.Conversion.DeepCopy()
	}
	return object
}

// Resource returns the resource the program works with.
func (d Definition) Resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: d.object.Spec.Group, Version: d.Uses, Resource: d.object.Spec.Names.Plural}
}

// GroupKind returns the kind of the custom resources.
func (d Definition) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: d.object.Spec.Group, Kind: d.object.Spec.Names.Kind}
}

// Namespaced reports whether the custom resources are namespaced.
func (d Definition) Namespaced() bool { return d.object.Spec.Scope == apiextensionsv1.NamespaceScoped }

// YAML returns the stamped definition as a document that a user can apply.
func (d Definition) YAML() ([]byte, error) {
	document, err := yaml.Marshal(applyBody(d.Object()))
	if err != nil {
		return nil, fmt.Errorf("render definition %s: %w", d.Name(), err)
	}
	return document, nil
}

// Parse reads a definition from its YAML, in which Identity.VersionAnnotation gives its order. uses is the API version the program works
// with. Keys that a definition does not have are errors.
func (i Identity) Parse(document []byte, uses string) (Definition, error) {
	object := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(document, object); err != nil {
		return Definition{}, fmt.Errorf("parse YAML: %w", err)
	}
	if used := findVersion(object, uses); used == nil || !used.Served {
		return Definition{}, fmt.Errorf("definition %s: version %s is used but not served", object.Name, uses)
	}
	order, err := strconv.Atoi(object.Annotations[i.VersionAnnotation()])
	if err != nil || order < 1 {
		return Definition{}, fmt.Errorf("definition %s: annotation %s is %q: write a whole number from 1", object.Name, i.VersionAnnotation(), object.Annotations[i.VersionAnnotation()])
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&object.Spec)
	hash, err := hashSpec(object.Spec)
	if err != nil {
		return Definition{}, fmt.Errorf("definition %s: %w", object.Name, err)
	}
	mark(object, hash)
	object.Labels = merged(object.Labels, map[string]string{OwnerLabel: i.Owner})
	object.Annotations = merged(object.Annotations, map[string]string{i.HashAnnotation(): hash})
	if err := i.stamp(object); err != nil {
		return Definition{}, fmt.Errorf("definition %s: %w", object.Name, err)
	}
	return Definition{Version: order, Hash: hash, Uses: uses, identity: i, object: object}, nil
}

// mark makes the schemas of a definition recognisable to clients. The description of each version's last printed column, which kubectl get
// never shows, says which content it belongs to. See Installer.waitUntilEnforced.
func mark(object *apiextensionsv1.CustomResourceDefinition, hash string) {
	for at := range object.Spec.Versions {
		version := &object.Spec.Versions[at]
		if len(version.AdditionalPrinterColumns) == 0 {
			// The column that the API server prints by default if a definition names none.
			version.AdditionalPrinterColumns = []apiextensionsv1.CustomResourceColumnDefinition{
				{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp", Description: "Time since the object was created."},
			}
		}
		version.AdditionalPrinterColumns = slices.Clone(version.AdditionalPrinterColumns)
		last := &version.AdditionalPrinterColumns[len(version.AdditionalPrinterColumns)-1]
		last.Description += " [schema " + hash[:markLength] + "]"
	}
}

// markLength is how many digits of a hash a mark has: enough to distinguish the editions of one definition.
const markLength = 12

// stamp records the hash of the spec that will be applied.
func (i Identity) stamp(object *apiextensionsv1.CustomResourceDefinition) error {
	hash, err := hashSpec(object.Spec)
	if err != nil {
		return err
	}
	object.Annotations = merged(object.Annotations, map[string]string{i.AppliedAnnotation(): hash})
	return nil
}

// hashSpec returns the sha256 of the JSON of a defaulted spec without its conversion. Go writes struct fields in order and map keys
// sorted, so equal specs hash alike.
func hashSpec(spec apiextensionsv1.CustomResourceDefinitionSpec) (string, error) {
	spec.Conversion = nil
	document, err := json.Marshal(spec)
	if err != nil {
		return "", fmt.Errorf("hash spec: %w", err)
	}
	sum := sha256.Sum256(document)
	return hex.EncodeToString(sum[:]), nil
}

// fieldMetadata is a field that every object has.
const fieldMetadata = "metadata"

// applyBody is the body of a server-side apply of a definition. It has no status and no zero values.
func applyBody(object *apiextensionsv1.CustomResourceDefinition) map[string]any {
	metadata := map[string]any{"name": object.Name, "labels": object.Labels, "annotations": object.Annotations}
	if object.ResourceVersion != "" {
		metadata["resourceVersion"] = object.ResourceVersion
		metadata["uid"] = object.UID
	}
	return map[string]any{
		"apiVersion":  apiextensionsv1.SchemeGroupVersion.String(),
		"kind":        "CustomResourceDefinition",
		fieldMetadata: metadata,
		"spec":        object.Spec,
	}
}

func merged(base, over map[string]string) map[string]string {
	result := map[string]string{}
	maps.Copy(result, base)
	maps.Copy(result, over)
	return result
}
