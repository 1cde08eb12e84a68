package crds

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/mysql-operator/mysql-operator/schema"
)

const (
	// VersionAnnotation holds the order of a definition: a whole number that rises with every release that changes the schema.
	// It is written in the YAML, beside the schema it counts.
	VersionAnnotation = schema.MySQLGroup + "/schema-version"
	// HashAnnotation holds the sha256 of the definition's spec, in hexadecimal. It is computed, never written by hand.
	HashAnnotation = schema.MySQLGroup + "/schema-hash"
	// OwnerLabel marks a definition as ours, when it has the value Owner. Setting it hands a definition over to the operator.
	OwnerLabel = "app.kubernetes.io/managed-by"
	// Owner is the value of OwnerLabel on our definitions.
	Owner = "mysql-operator"
	// FieldManager owns, in server-side apply, what we write to definitions.
	FieldManager = "mysql-operator-crds"
)

// Definition is one definition as this operator brings it: typed, defaulted as the API server does, and stamped.
type Definition struct {
	// Kind is the row of the table of kinds it belongs to.
	Kind schema.Kind
	// Version is the definition's order.
	Version int
	// Hash is the sha256 of its spec.
	Hash string

	object *apiextensionsv1.CustomResourceDefinition
}

// Name returns the name of the definition: "<plural>.<group>".
func (d Definition) Name() string {
	return d.Kind.DefinitionName()
}

// Object returns a copy of the definition, for the caller to keep and change.
func (d Definition) Object() *apiextensionsv1.CustomResourceDefinition {
	return d.object.DeepCopy()
}

// YAML returns the stamped definition as a document that can be applied by hand.
func (d Definition) YAML() ([]byte, error) {
	document, err := yaml.Marshal(applyBody(d.object))
	if err != nil {
		return nil, fmt.Errorf("render definition %s: %w", d.Name(), err)
	}
	return document, nil
}

// Load returns the embedded definitions of the kinds, in their order. An error means the program was built from a wrong file.
func Load(kinds []schema.Kind) ([]Definition, error) {
	loaded := []Definition{}
	for _, kind := range kinds {
		document, err := schema.Definition(kind)
		if err != nil {
			return nil, err
		}
		definition, err := parse(kind, document)
		if err != nil {
			return nil, fmt.Errorf("load definition %s: %w", kind.DefinitionName(), err)
		}
		loaded = append(loaded, definition)
	}
	return loaded, nil
}

func parse(kind schema.Kind, document []byte) (Definition, error) {
	object := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(document, object); err != nil {
		return Definition{}, fmt.Errorf("parse YAML: %w", err)
	}
	if object.Name != kind.DefinitionName() || object.Spec.Names.Kind != kind.Kind {
		return Definition{}, fmt.Errorf("it defines %s %s, the table of kinds says %s %s", object.Name, object.Spec.Names.Kind, kind.DefinitionName(), kind.Kind)
	}
	order, err := strconv.Atoi(object.Annotations[VersionAnnotation])
	if err != nil || order < 1 {
		return Definition{}, fmt.Errorf("annotation %s is %q: write a whole number from 1", VersionAnnotation, object.Annotations[VersionAnnotation])
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&object.Spec)
	hash, err := hashSpec(object.Spec)
	if err != nil {
		return Definition{}, err
	}
	object.Labels = merged(object.Labels, map[string]string{OwnerLabel: Owner})
	object.Annotations = merged(object.Annotations, map[string]string{HashAnnotation: hash})
	return Definition{Kind: kind, Version: order, Hash: hash, object: object}, nil
}

// hashSpec returns the sha256 of the spec's JSON. Go writes struct fields in order and map keys sorted, so equal specs hash alike.
func hashSpec(spec apiextensionsv1.CustomResourceDefinitionSpec) (string, error) {
	document, err := json.Marshal(spec)
	if err != nil {
		return "", fmt.Errorf("hash spec: %w", err)
	}
	sum := sha256.Sum256(document)
	return hex.EncodeToString(sum[:]), nil
}

// applyBody is what we say about a definition in a server-side apply, and nothing more: no status, no zero values.
func applyBody(object *apiextensionsv1.CustomResourceDefinition) map[string]any {
	metadata := map[string]any{"name": object.Name, "labels": object.Labels, "annotations": object.Annotations}
	if object.ResourceVersion != "" {
		metadata["resourceVersion"] = object.ResourceVersion
		metadata["uid"] = object.UID
	}
	return map[string]any{
		"apiVersion": apiextensionsv1.SchemeGroupVersion.String(),
		"kind":       "CustomResourceDefinition",
		"metadata":   metadata,
		"spec":       object.Spec,
	}
}

func merged(base, over map[string]string) map[string]string {
	result := map[string]string{}
	maps.Copy(result, base)
	maps.Copy(result, over)
	return result
}
