package objects

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// everything is a schema with all keywords that a structural schema may have.
const everything = `
required: [name]
x-kubernetes-validations: [{rule: "!has(self.count) || self.count < 50", message: count below 50}]
properties:
  name: {type: string, minLength: 1, maxLength: 5, pattern: "^[a-z]*$"}
  mode: {type: string, enum: [a, b], default: a}
  when: {type: string, format: date-time, nullable: true}
  count: {type: integer, format: int32, minimum: 0, maximum: 100, exclusiveMaximum: true}
  ratio: {type: number, multipleOf: 0.5}
  size: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}], x-kubernetes-validations: [{rule: isQuantity(string(self)), message: a quantity}]}
  flags: {type: object, maxProperties: 2, additionalProperties: {type: boolean, default: true}}
  set: {type: array, x-kubernetes-list-type: set, maxItems: 3, items: {type: string}}
  map:
    type: array
    x-kubernetes-list-type: map
    x-kubernetes-list-map-keys: [name]
    items:
      type: object
      required: [name]
      properties: {name: {type: string}, value: {type: string, allOf: [{minLength: 2}], not: {enum: [bad]}}}
      x-kubernetes-validations: [{rule: "!has(self.value) || self.value != self.name", message: a value other than the name}]
  free: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {name: {type: string}}}
  one: {type: object, properties: {name: {type: string}, mode: {type: string}}, oneOf: [{required: [name]}, {required: [mode]}]}
  object: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
  replicas: {type: integer}
`

// TestRefusesWhatTheAPIServerRefuses compares the refusals with those of the API server's strategy for custom resources, for thousands of
// random objects.
func TestRefusesWhatTheAPIServerRefuses(t *testing.T) {
	t.Parallel()
	const objects = 5000
	made := definition(t, "v1! properties: {}")
	made.Spec.Versions[0].Schema.OpenAPIV3Schema = schemaOfSpec(t, everything)
	made.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Scale: &apiextensionsv1.CustomResourceSubresourceScale{
		SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas"}}
	compiled, err := newEdition(made)
	if err != nil {
		t.Fatal(err)
	}
	under := compiled.versions["v1"]
	scale := &apiextensions.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas"}
	strategy := customresource.NewStrategy(nil, true, schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"},
		under.validator, nil, under.structural, nil, scale, nil)

	seed := rand.Uint64()
	random := generator{rand.New(rand.NewPCG(seed, 0))}
	refusals := 0
	for number := range objects {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "a", "namespace": "default"}, "spec": random.object(3)}}
		written := runtime.DeepCopyJSON(object.Object)
		under.prune(object.Object)
		_, unreadable := under.complete(object.Object)
		got := under.validate(t.Context(), object.Object)
		if !slices.ContainsFunc(got, blocksRules) {
			got = append(got, under.evaluate(t.Context(), object.Object)...)
		}
		want := slices.DeleteFunc(strategy.Validate(t.Context(), object), func(refusal *field.Error) bool {
			return strings.HasPrefix(refusal.Detail, "some validation rules were not checked")
		})
		if diff := cmp.Diff(texts(want), texts(got)); diff != "" {
			t.Fatalf("seed %d, object %d, %v (unreadable: %v): (-API server +here)\n%s", seed, number, written, unreadable, diff)
		}
		refusals += len(got)
	}
	if refusals < objects {
		t.Errorf("only %d refusals of %d objects: too few to compare", refusals, objects)
	}
}

func schemaOfSpec(t *testing.T, document string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	spec := apiextensionsv1.JSONSchemaProps{Type: "object"}
	if err := yaml.UnmarshalStrict([]byte(document), &spec); err != nil {
		t.Fatal(err)
	}
	return &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec}}
}

func texts(refusals field.ErrorList) []string {
	lines := []string{}
	for _, refusal := range refusals {
		lines = append(lines, refusal.Error())
	}
	slices.Sort(lines)
	return lines
}

// generator makes valid and invalid objects with the names that the schema knows.
type generator struct{ *rand.Rand }

func (g generator) object(depth int) map[string]any {
	names := []string{"name", "mode", "when", "count", "ratio", "size", "flags", "set", "map", "free", "one", "object", "replicas", "value", "apiVersion", "kind", "metadata", "other"}
	made := map[string]any{}
	for range g.IntN(8) {
		name := names[g.IntN(len(names))]
		made[name] = g.value(name, depth-1)
	}
	return made
}

func (g generator) value(name string, depth int) any {
	likely := map[string]string{"name": "text", "mode": "text", "when": "time", "count": "int", "ratio": "float", "size": "text", "flags": "object", "set": "texts",
		"map": "objects", "free": "object", "one": "object", "object": "object", "replicas": "int", "value": "text", "apiVersion": "text", "kind": "text", "metadata": "object"}
	kinds := []string{"text", "time", "int", "float", "bool", "null", "object", "objects", "texts"}
	kind := likely[name]
	if kind == "" || g.IntN(6) == 0 {
		kind = kinds[g.IntN(len(kinds))]
	}
	words := []string{"", "a", "b", "abc", "abcdef", "bad", "1Gi", "v1", "Pod"}
	switch kind {
	case "text":
		return words[g.IntN(len(words))]
	case "time":
		return []any{"2026-11-21T12:00:00Z", "yesterday", nil}[g.IntN(3)]
	case "int":
		return []int64{-1, 0, 7, 60, 100, 1 << 40}[g.IntN(6)]
	case "float":
		return []float64{0.5, 0.7, 3}[g.IntN(3)]
	case "bool":
		return g.IntN(2) == 0
	case "null":
		return nil
	}
	if depth <= 0 {
		return map[string]any{}
	}
	if kind == "object" {
		return g.object(depth)
	}
	list := []any{}
	for range g.IntN(5) {
		if kind == "objects" {
			list = append(list, g.object(depth))
			continue
		}
		list = append(list, words[g.IntN(len(words))])
	}
	return list
}

// TestOurOwnDefinitionsCompile checks that this package supports each of the program's definitions.
func TestOurOwnDefinitionsCompile(t *testing.T) {
	t.Parallel()
	for name, made := range ourDefinitions(t) {
		if _, err := newExaminer(made, made, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestStatusDefaultsHarmNothing: the definitions of former operators had no default in the status, and many objects may have no status.
func TestStatusDefaultsHarmNothing(t *testing.T) {
	t.Parallel()
	for name, made := range ourDefinitions(t) {
		former := made.DeepCopy()
		for _, version := range former.Spec.Versions {
			status := version.Schema.OpenAPIV3Schema.Properties["status"]
			if status.Default == nil {
				t.Errorf("%s: its status has no default", name)
			}
			status.Default = nil
			version.Schema.OpenAPIV3Schema.Properties["status"] = status
		}
		examiner, err := newExaminer(former, made, nil)
		if err != nil {
			t.Fatal(err)
		}
		object := sample(t, made.Spec.Names.Kind)
		if _, found := object.Object["status"]; found {
			t.Errorf("%s: its sample has a status", name)
		}
		if finding := examiner.examine(t.Context(), object); len(finding.Lost)+len(finding.Invalid) > 0 {
			t.Errorf("%s: %s", name, finding)
		}
	}
}

// sample is the object of a kind in deploy/samples.
func sample(t *testing.T, kind string) *unstructured.Unstructured {
	t.Helper()
	documents, err := os.ReadFile("../../deploy/samples/" + strings.ToLower(kind) + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(documents), "\n---\n") {
		made := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &made.Object); err != nil {
			t.Fatalf("%v in the sample of %s", err, kind)
		}
		if made.GetKind() == kind {
			return whole(made)
		}
	}
	t.Fatalf("there is no sample of %s", kind)
	return nil
}
