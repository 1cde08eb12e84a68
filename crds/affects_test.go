package crds

import (
	"errors"
	"fmt"
	"maps"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"
)

// withFields adds fields with these schemas to spec. schemas is YAML in flow style.
func withFields(t *testing.T, schemas string) change {
	t.Helper()
	given := map[string]apiextensionsv1.JSONSchemaProps{}
	if err := yaml.UnmarshalStrict([]byte("{"+schemas+"}"), &given); err != nil {
		t.Fatalf("%v in %s", err, schemas)
	}
	return func(object *apiextensionsv1.CustomResourceDefinition) {
		maps.Copy(object.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties, given)
	}
}

// TestWordsOfASchemaAffectNoObjects specifies which differences between two schemas require a check of objects: all except texts for
// people.
func TestWordsOfASchemaAffectNoObjects(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		story, has, wants string
		affects           bool
	}{
		{"nothing differs", `a: {type: string}`, `a: {type: string}`, false},
		{"a field is described", `a: {type: string}`, `a: {type: string, description: d, title: t, example: e, externalDocs: {url: u}}`, false},
		{"items are described", `a: {type: array, items: {type: string}}`, `a: {type: array, items: {type: string, description: d}}`, false},
		{"a field of a field is described", `a: {properties: {b: {type: string}}}`, `a: {properties: {b: {type: string, title: t}}}`, false},
		{"values are described", `a: {additionalProperties: {type: string}}`, `a: {additionalProperties: {type: string, title: t}}`, false},
		{"combinations are described", `a: {allOf: [{}], anyOf: [{}], oneOf: [{}], not: {}}`,
			`a: {allOf: [{title: t}], anyOf: [{title: t}], oneOf: [{title: t}], not: {title: t}}`, false},
		{"a rule is explained", `a: {x-kubernetes-validations: [{rule: "true"}]}`,
			`a: {x-kubernetes-validations: [{rule: "true", message: m, messageExpression: e, reason: FieldValueInvalid, fieldPath: .a}]}`, false},

		{"a field is added", ``, `a: {type: string}`, true},
		{"a field is removed", `a: {type: string}`, ``, true},
		{"a field called description is removed", `description: {type: string}`, ``, true},
		{"a field of a field is removed", `a: {properties: {b: {type: string}}}`, `a: {properties: {}}`, true},
		{"another type", `a: {type: string}`, `a: {type: integer}`, true},
		{"a default is added", `a: {type: string}`, `a: {type: string, default: x}`, true},
		{"another default", `a: {type: string, default: x}`, `a: {type: string, default: y}`, true},
		{"a field becomes required", `a: {properties: {b: {}}}`, `a: {required: [b], properties: {b: {}}}`, true},
		{"a lower maximum", `a: {type: integer, maximum: 9}`, `a: {type: integer, maximum: 5}`, true},
		{"a higher maximum", `a: {type: integer, maximum: 5}`, `a: {type: integer, maximum: 9}`, true},
		{"shorter items", `a: {type: array, items: {type: string}}`, `a: {type: array, items: {type: string, maxLength: 9}}`, true},
		{"another type of values", `a: {additionalProperties: {type: string}}`, `a: {additionalProperties: {type: integer}}`, true},
		{"a combination demands more", `a: {allOf: [{maxLength: 4}]}`, `a: {allOf: [{maxLength: 3}]}`, true},
		{"a value is removed", `a: {type: string, enum: [x, y]}`, `a: {type: string, enum: [x]}`, true},
		{"a rule is added", `a: {type: string}`, `a: {type: string, x-kubernetes-validations: [{rule: self != 'x'}]}`, true},
		{"another rule of the same message", `a: {x-kubernetes-validations: [{rule: self > 1, message: m}]}`,
			`a: {x-kubernetes-validations: [{rule: self > 2, message: m}]}`, true},
		{"a list becomes a set", `a: {type: array}`, `a: {type: array, x-kubernetes-list-type: set}`, true},
		{"unknown fields are pruned", `a: {type: object, x-kubernetes-preserve-unknown-fields: true}`, `a: {type: object}`, true},
		{"a keyword that no schema used before", `a: {type: object}`, `a: {type: object, patternProperties: {x: {}}}`, true},
	} {
		t.Run(test.story, func(t *testing.T) {
			t.Parallel()
			wantAffects(t, []change{withFields(t, test.has)}, []change{withFields(t, test.wants)}, test.affects)
		})
	}
}

// TestAffectsObjects specifies which other differences between two definitions require a check of objects.
func TestAffectsObjects(t *testing.T) {
	t.Parallel()
	type changes = []change
	for _, test := range []struct {
		story      string
		has, wants changes
		affects    bool
	}{
		{"nothing differs", nil, nil, false},
		{"what the server and others add", changes{serverFilled}, nil, false},
		{"another schema-version", changes{order("4")}, nil, false},
		{"other labels and annotations", changes{unmarked}, nil, false},
		{"a short name", changes{edited}, nil, false},
		{"a category", nil, changes{inACategory}, false},
		{"columns for people", nil, changes{withoutColumns}, false},
		{"a version is deprecated", nil, changes{deprecated}, false},
		{"the schema is described", nil, changes{described}, false},
		{"the webhook has another certificate", changes{converted}, changes{converted, certified}, false},
		{"a version without objects is removed", changes{defining("v0"), unservedToo("v0"), storedIn("v1")}, nil, false},
		{"a version without objects is added", nil, changes{defining("v2"), unservedToo("v2")}, false},
		{"the only version, in which objects cannot be read, is served again", changes{unserved}, nil, false},

		{"it is served again with another schema", changes{unserved, withField}, nil, true},
		{"a version is added", nil, changes{defining("v2")}, true},
		{"a version is removed", changes{defining("v0"), storedIn("v1")}, nil, true},
		{"a version that objects are stored in is removed", changes{defining("v0"), unservedToo("v0"), storedIn("v0", "v1")}, nil, true},
		{"a version is carried over", changes{defining("v0"), storedIn("v0", "v1")}, changes{carrying("v0")}, true},
		{"a version is served no longer", changes{defining("v2")}, changes{defining("v2"), unservedToo("v2")}, true},
		{"a version is served now", changes{defining("v2"), unservedToo("v2")}, changes{defining("v2")}, true},
		{"objects are stored in another version", changes{defining("v2")}, changes{defining("v2"), storingInV2}, true},
		{"objects are converted", nil, changes{converted}, true},
		{"objects are converted no longer", changes{converted}, nil, true},
		{"a schema is added", changes{withoutSchema}, nil, true},
		{"unknown fields were preserved everywhere", changes{keepingAll}, nil, true},
		{"the status becomes a subresource", changes{withoutStatus}, nil, true},
		{"the status is no longer a subresource", nil, changes{withoutStatus}, true},
		{"replicas can be scaled", nil, changes{scaling}, true},
		{"a field becomes selectable", nil, changes{selecting}, true},
		{"a field is no longer selectable", changes{selecting}, nil, true},
		{"another scope", changes{clusterScoped}, nil, true},
	} {
		t.Run(test.story, func(t *testing.T) {
			t.Parallel()
			wantAffects(t, test.has, test.wants, test.affects)
		})
	}
}

// wantAffects compares our own definition with itself, each changed in its own way.
func wantAffects(t *testing.T, has, wants []change, want bool) {
	t.Helper()
	existing, target := changed(t, has...), changed(t, wants...)
	had, wanted := existing.DeepCopy(), target.DeepCopy()
	if got := affectsObjects(existing, target); got != want {
		t.Errorf("affects objects: %t, want %t", got, want)
	}
	if diff := cmp.Diff(had, existing) + cmp.Diff(wanted, target); diff != "" {
		t.Errorf("the comparison changed its arguments:\n%s", diff)
	}
}

func inACategory(object *apiextensionsv1.CustomResourceDefinition) {
	object.Spec.Names.Categories = []string{"all"}
}

func withoutColumns(object *apiextensionsv1.CustomResourceDefinition) {
	object.Spec.Versions[0].AdditionalPrinterColumns = nil
}

func deprecated(object *apiextensionsv1.CustomResourceDefinition) {
	object.Spec.Versions[0].Deprecated, object.Spec.Versions[0].DeprecationWarning = true, new("use v2")
}

func described(object *apiextensionsv1.CustomResourceDefinition) {
	object.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "other"
}

func certified(object *apiextensionsv1.CustomResourceDefinition) {
	object.Spec.Conversion.Webhook = &apiextensionsv1.WebhookConversion{
		ClientConfig: &apiextensionsv1.WebhookClientConfig{CABundle: []byte("new")}, ConversionReviewVersions: []string{"v1"},
	}
}

func storingInV2(object *apiextensionsv1.CustomResourceDefinition) {
	object.Spec.Versions[0].Storage, findVersion(object, "v2").Storage = false, true
}

func withoutSchema(object *apiextensionsv1.CustomResourceDefinition) {
	object.Spec.Versions[0].Schema = nil
}

func keepingAll(object *apiextensionsv1.CustomResourceDefinition) {
	object.Spec.PreserveUnknownFields = true
}

func scaling(object *apiextensionsv1.CustomResourceDefinition) {
	object.Spec.Versions[0].Subresources.Scale = &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.size"}
}

func selecting(object *apiextensionsv1.CustomResourceDefinition) {
	object.Spec.Versions[0].SelectableFields = []apiextensionsv1.SelectableField{{JSONPath: ".spec.colour"}}
}

// TestDecideAsksForObjects specifies which plans require a check of objects. Boot must not become slower with the number of objects.
func TestDecideAsksForObjects(t *testing.T) {
	t.Parallel()
	older := func(changes ...change) []change { return append(changes, order("4"), asApplied) }
	for story, test := range map[string]struct {
		there []change
		when  Situation
		looks bool
	}{
		"unchanged":                                       {},
		"older, with the same content":                    {there: older()},
		"older, described otherwise":                      {there: older(described)},
		"older, wider than before":                        {there: older(withoutField), looks: true},
		"older, narrower than before":                     {there: older(withField), looks: true},
		"older, narrower, and objects were checked":       {there: older(withField), when: Situation{Objects: &Objects{Seen: 7}}},
		"edited: no longer served":                        {there: []change{unserved}},
		"edited: a field added":                           {there: []change{withField}, looks: true},
		"newer, with another schema":                      {there: []change{order("6"), withField, asApplied}},
		"another manager's, with another schema":          {there: []change{foreign, withField}},
		"another build's, seen while running":             {there: []change{withField, otherHash, asApplied}, when: Situation{Running: true}},
		"being deleted, with another schema":              {there: []change{withField, beingDeleted}},
		"a version that clients may have used is removed": {there: older(defining("v0"), storedIn("v1")), looks: true},
		"a version that was carried over is removed":      {there: []change{carrying("v0"), asApplied, storedIn("v1")}},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			test.when.Existing = changed(t, test.there...)
			if got := Decide(test.when, ours(t)); got.NeedsObjects != test.looks {
				t.Errorf("needs objects: %t, want %t; the plan is %v", got.NeedsObjects, test.looks, got.Steps)
			}
		})
	}
	if got := Decide(Situation{}, ours(t)); got.NeedsObjects {
		t.Errorf("there is no definition, but the plan requires a check of objects: %v", got.Steps)
	}
}

// TestEnsureLooksAtNoObjectsWithoutNeed: a first start, and a start without a difference that could affect objects, need no permission to
// list them.
func TestEnsureLooksAtNoObjectsWithoutNeed(t *testing.T) {
	t.Parallel()
	for story, s := range map[string]*server{
		"a first start":               newServer(),
		"nothing changed":             newServer(ours(t).Object()),
		"only a description changed":  newServer(changed(t, order("4"), described, asApplied)),
		"an edit of what people read": newServer(changed(t, edited)),
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			one := installer(s)
			one.Objects = checker(func() (Objects, error) {
				return Objects{}, apierrors.NewForbidden(groupResource(), "", errors.New("no"))
			})
			if _, err := one.Ensure(t.Context(), all(t)); err != nil {
				t.Error(err)
			}
			if live := s.live(ours(t).Name()); !sameSpec(live, ours(t).object) {
				t.Error("the definition is not as the program needs it")
			}
		})
	}
}

// TestEnsureLooksAtObjectsAgain retries the check when the API server is unreachable for a moment. If it stays unreachable, the error says
// what to do.
func TestEnsureLooksAtObjectsAgain(t *testing.T) {
	t.Parallel()
	s, looks := newServer(changed(t, narrower)), 0
	one := installer(s)
	one.Objects = checker(func() (Objects, error) {
		looks++
		if looks < 3 {
			return Objects{}, fmt.Errorf("list widgets: %w", syscall.ECONNREFUSED)
		}
		return Objects{Seen: 7}, nil
	})
	results, err := one.Ensure(t.Context(), all(t))
	if err != nil {
		t.Fatal(err)
	}
	if harm := results[0].Plan.Harm; looks != 3 || harm == nil || harm.Seen != 7 {
		t.Errorf("looked %d times, found %v", looks, harm)
	}
	never := impatient(newServer(changed(t, narrower)))
	never.Objects = checker(func() (Objects, error) { return Objects{}, syscall.ECONNREFUSED })
	_, err = never.Ensure(t.Context(), all(t))
	wantSays(t, err, "check the objects of definition widgets.example.com", "not within 150ms", "crds apply --timeout", "connection refused")
}

// changed returns our definition with these changes.
func changed(t *testing.T, changes ...change) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	object := ours(t).Object()
	for _, apply := range changes {
		apply(object)
	}
	return object
}
