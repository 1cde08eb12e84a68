package objects

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/crds"
)

// TestExamine specifies what counts as harm. The definition has one version, and the object is in it.
func TestExamine(t *testing.T) {
	t.Parallel()
	replicas := `properties: {replicas: {type: integer, maximum: 9}}`
	hosts := `properties: {hosts: {type: array, items: {type: object, properties: {name: {type: string}, port: {type: integer}}}}}`
	for _, test := range []struct {
		story, has, wants, object string
		want                      crds.Finding
	}{
		{"it fits", replicas, `properties: {replicas: {type: integer, maximum: 5}}`, `replicas: 5`, crds.Finding{}},
		{"a value is too large now", replicas, `properties: {replicas: {type: integer, maximum: 5}}`, `replicas: 7`,
			crds.Finding{Invalid: []string{`spec.replicas: Invalid value: 7: spec.replicas in body should be less than or equal to 5`}}},
		{"a value was too large already", replicas, `properties: {replicas: {type: integer, maximum: 5}}`, `replicas: 12`, crds.Finding{}},
		{"fields are removed", hosts, `properties: {hosts: {type: array, items: {type: object, properties: {name: {type: string}}}}}`,
			`hosts: [{name: a, port: 1}, {name: b}, {port: 2}]`, crds.Finding{Lost: []string{"spec.hosts[0].port", "spec.hosts[2].port"}}},
		{"a field that the object does not have is removed", hosts, `properties: {}`, ``, crds.Finding{}},
		{"a field is needed now", replicas, `required: [replicas], ` + replicas, ``, crds.Finding{Invalid: []string{`spec.replicas: Required value`}}},
		{"a field is needed, and has a default", replicas, `required: [replicas], properties: {replicas: {type: integer, default: 1}}`, ``, crds.Finding{}},
		{"another type", replicas, `properties: {replicas: {type: string}}`, `replicas: 3`,
			crds.Finding{Invalid: []string{`spec.replicas: Invalid value: "integer": spec.replicas in body must be of type string: "integer"`}}},
		{"a value is no longer allowed", `properties: {mode: {type: string}}`, `properties: {mode: {type: string, enum: [a]}}`, `mode: b`,
			crds.Finding{Invalid: []string{`spec.mode: Unsupported value: "b": supported values: "a"`}}},
		{"a null is dropped", `properties: {mode: {type: string, nullable: true}}`, `properties: {mode: {type: string}}`, `mode: null`, crds.Finding{Lost: []string{"spec.mode"}}},
		{"a null becomes the default", `properties: {mode: {type: string, nullable: true}}`, `properties: {mode: {type: string, default: a}}`, `mode: null`,
			crds.Finding{Lost: []string{"spec.mode"}}},
		{"a rule is broken", replicas, `properties: {replicas: {type: integer, x-kubernetes-validations: [{rule: self % 2 == 1, message: must be odd}]}}`, `replicas: 2`,
			crds.Finding{Invalid: []string{`spec.replicas: Invalid value: 2: must be odd`}}},
		{"a transition rule does not apply", replicas, `properties: {replicas: {type: integer, x-kubernetes-validations: [{rule: self > oldSelf}]}}`, `replicas: 2`, crds.Finding{}},
		{"a rule about the whole", replicas, `x-kubernetes-validations: [{rule: "has(self.replicas)"}], ` + replicas, ``,
			crds.Finding{Invalid: []string{`spec: Invalid value: failed rule: has(self.replicas)`}}},
		{"a rule was broken already", `x-kubernetes-validations: [{rule: "has(self.replicas)"}], ` + replicas,
			`x-kubernetes-validations: [{rule: "has(self.replicas)"}, {rule: "!has(self.replicas) || self.replicas > 0"}], ` + replicas, ``, crds.Finding{}},
		{"rules are not evaluated for a value of the wrong type", replicas, `properties: {replicas: {type: string, x-kubernetes-validations: [{rule: size(self) > 3}]}}`, `replicas: 3`,
			crds.Finding{Invalid: []string{`spec.replicas: Invalid value: "integer": spec.replicas in body must be of type string: "integer"`}}},
		{"they are if another value was invalid before", `properties: {mode: {type: string, enum: [a]}, replicas: {type: integer}}`,
			`properties: {mode: {type: string, enum: [a]}, replicas: {type: integer, x-kubernetes-validations: [{rule: self > 3}]}}`, `mode: b, replicas: 3`,
			crds.Finding{Invalid: []string{`spec.replicas: Invalid value: 3: failed rule: self > 3`}}},
		{"a list becomes a set", `properties: {l: {type: array, items: {type: string}}}`, `properties: {l: {type: array, x-kubernetes-list-type: set, items: {type: string}}}`,
			`l: [a, b, a]`, crds.Finding{Invalid: []string{`spec.l[2]: Duplicate value: "a"`}}},
		{"an embedded object has a kind", `properties: {o: {type: object, x-kubernetes-preserve-unknown-fields: true}}`,
			`properties: {o: {type: object, x-kubernetes-preserve-unknown-fields: true, x-kubernetes-embedded-resource: true}}`,
			`o: {apiVersion: v1, metadata: {name: a, mine: b}}`, crds.Finding{Lost: []string{"spec.o.metadata.mine"}, Invalid: []string{`spec.o.kind: Required value`}}},
		{"unknown fields that were preserved are dropped", `x-kubernetes-preserve-unknown-fields: true`, `properties: {a: {type: string}}`, `a: v, b: w, c: {d: e}`,
			crds.Finding{Lost: []string{"spec.b", "spec.c"}}},
	} {
		t.Run(test.story, func(t *testing.T) {
			t.Parallel()
			examiner, err := newExaminer(definition(t, "v1! "+test.has), definition(t, "v1! "+test.wants), nil)
			if err != nil {
				t.Fatal(err)
			}
			got := examiner.examine(t.Context(), thing(t, "a", test.object))
			test.want.Namespace, test.want.Name = "default", "a"
			if diff := cmp.Diff(test.want, got, ignoreEmpty()); diff != "" {
				t.Errorf("finding (-want +got):\n%s", diff)
			}
		})
	}
}

// ignoreEmpty treats a nil list and an empty list as equal.
func ignoreEmpty() cmp.Option {
	return cmp.FilterValues(func(a, b []string) bool { return len(a) == 0 && len(b) == 0 }, cmp.Ignore())
}

// TestExamineVersions is about definitions with several versions whose objects differ only in their apiVersion.
func TestExamineVersions(t *testing.T) {
	t.Parallel()
	one, two := `properties: {a: {type: string}}`, `properties: {a: {type: string}, b: {type: string}}`
	for _, test := range []struct {
		story      string
		has, wants []string
		want       crds.Finding
	}{
		{"a version is added that has all fields", []string{"v1! " + two}, []string{"v1! " + two, "v2 " + two}, crds.Finding{}},
		{"a version is added without one of them", []string{"v1! " + two}, []string{"v1! " + two, "v2 " + one}, crds.Finding{Lost: []string{"spec.b"}}},
		{"it is not served", []string{"v1! " + two}, []string{"v1! " + two, "v2? " + one}, crds.Finding{}},
		{"it lacked one before", []string{"v1! " + two, "v2 " + one}, []string{"v1! " + two, "v2 " + one}, crds.Finding{}},
		{"and becomes the one to store in", []string{"v1! " + two, "v2 " + one}, []string{"v1 " + two, "v2! " + one}, crds.Finding{Lost: []string{"spec.b"}}},
		{"and is served no longer, but stored in", []string{"v1! " + two, "v2 " + one}, []string{"v1 " + two, "v2!? " + one}, crds.Finding{Lost: []string{"spec.b"}}},
		{"the version objects are stored in is replaced", []string{"v1! " + two}, []string{"v2! " + two, "v1? " + two}, crds.Finding{}},
		{"and its successor refuses one", []string{"v1! " + two}, []string{"v2! properties: {a: {type: string}, b: {type: string, maxLength: 0}}", "v1? " + two},
			crds.Finding{Invalid: []string{`spec.b: Too long: may not be more than 0 bytes`}}},
		{"the stored version forgets a field while unserved", []string{"v1! " + two}, []string{"v2! " + two, "v1? " + one}, crds.Finding{Lost: []string{"spec.b"}}},
		{"a default of the stored version is no loss in another", []string{"v1! " + two},
			[]string{"v1! properties: {a: {type: string}, b: {type: string}, c: {type: string, default: x}}", "v2 " + two}, crds.Finding{}},
		{"a default of the stored version makes another valid", []string{"v1! " + two},
			[]string{"v1! properties: {a: {type: string}, b: {type: string}, c: {type: string, default: x}}",
				"v2 required: [c], properties: {a: {type: string}, b: {type: string}, c: {type: string}}"}, crds.Finding{}},
		{"only a served version that is not stored in can be read", []string{"v1? " + two, "v2! " + two}, []string{"v2! " + one}, crds.Finding{Lost: []string{"spec.b"}}},
	} {
		t.Run(test.story, func(t *testing.T) {
			t.Parallel()
			examiner, err := newExaminer(definition(t, test.has...), definition(t, test.wants...), nil)
			if err != nil {
				t.Fatal(err)
			}
			object := thing(t, "a", `a: v, b: w`)
			object.SetAPIVersion("example.com/" + examiner.from)
			test.want.Namespace, test.want.Name = "default", "a"
			if diff := cmp.Diff(test.want, examiner.examine(t.Context(), object), ignoreEmpty()); diff != "" {
				t.Errorf("finding (-want +got):\n%s", diff)
			}
		})
	}
}

// TestExamineConverted is about definitions whose versions are converted by a webhook.
func TestExamineConverted(t *testing.T) {
	t.Parallel()
	webhook := &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
	rename := func(object *unstructured.Unstructured, apiVersion string) (*unstructured.Unstructured, error) {
		result := object.DeepCopy()
		result.SetAPIVersion(apiVersion)
		old, _, err := unstructured.NestedString(result.Object, "spec", "old")
		if err != nil || old == "bad" {
			return nil, errors.New("spec.old cannot be converted")
		}
		unstructured.RemoveNestedField(result.Object, "spec", "old")
		return result, unstructured.SetNestedField(result.Object, old, "spec", "new")
	}
	has, wants := definition(t, "v1! properties: {old: {type: string}}"), definition(t, "v1! properties: {old: {type: string}}", "v2 properties: {new: {type: string, maxLength: 3}}")
	wants.Spec.Conversion = webhook
	forgets := definition(t, "v1! properties: {old: {type: string}}", "v2 properties: {}")
	forgets.Spec.Conversion = webhook
	for _, test := range []struct {
		story, spec string
		target      *apiextensionsv1.CustomResourceDefinition
		convert     converter
		want        crds.Finding
	}{
		{"what was converted fits", `old: abc`, wants, rename, crds.Finding{}},
		{"it does not", `old: abcd`, wants, rename, crds.Finding{Invalid: []string{`spec.new: Too long: may not be more than 3 bytes`}}},
		{"it is unknown there", `old: abc`, forgets, rename, crds.Finding{Lost: []string{"spec.new"}}},
		{"it cannot be converted", `old: bad`, wants, rename, crds.Finding{Invalid: []string{`<nil>: Internal error: convert to example.com/v2: spec.old cannot be converted`}}},
		{"the checker cannot convert", `old: abcd`, wants, nil, crds.Finding{}},
	} {
		t.Run(test.story, func(t *testing.T) {
			t.Parallel()
			examiner, err := newExaminer(has, test.target, test.convert)
			if err != nil {
				t.Fatal(err)
			}
			test.want.Namespace, test.want.Name = "default", "a"
			if diff := cmp.Diff(test.want, examiner.examine(t.Context(), thing(t, "a", test.spec)), ignoreEmpty()); diff != "" {
				t.Errorf("finding (-want +got):\n%s", diff)
			}
		})
	}
}

// TestExamineCannot lists when the result is unknown, which must be an error.
func TestExamineCannot(t *testing.T) {
	t.Parallel()
	fields := "properties: {a: {type: string}}"
	webhook := definition(t, "v2! "+fields)
	webhook.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
	broken := definition(t, "v1! properties: {a: {type: object, dependencies: {b: [c]}}}")
	for _, test := range []struct {
		story      string
		has, wants *apiextensionsv1.CustomResourceDefinition
		want       string
	}{
		{"nothing is served", definition(t, "v1!? "+fields), definition(t, "v1! "+fields), "check objects of definition things.example.com: it serves no version to read them in: serve version v1"},
		{"nothing can convert", definition(t, "v1! "+fields), webhook,
			"check objects of definition things.example.com: they can be read in version v1, which the target does not have, and nothing can convert them: set Convert"},
		{"the target is not a valid definition", definition(t, "v1! "+fields), broken,
			"compile version v1 of definition things.example.com: its schema is not structural: "},
	} {
		t.Run(test.story, func(t *testing.T) {
			t.Parallel()
			_, err := newExaminer(test.has, test.wants, nil)
			if err == nil || len(err.Error()) < len(test.want) || err.Error()[:len(test.want)] != test.want {
				t.Errorf("error %v, want %s", err, test.want)
			}
		})
	}
}

// TestRatchetIsAboutWholeValues checks that a new refusal of an object is not mistaken for an old one about another part of it.
func TestRatchetIsAboutWholeValues(t *testing.T) {
	t.Parallel()
	rules := func(rules string) string {
		return "v1! x-kubernetes-validations: [" + rules + "], properties: {a: {type: string}, b: {type: string}}"
	}
	has, wants := definition(t, rules(`{rule: "has(self.a)"}`)), definition(t, rules(`{rule: "has(self.a)"}, {rule: "has(self.b)"}`))
	examiner, err := newExaminer(has, wants, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := examiner.examine(t.Context(), thing(t, "a", ``))
	if diff := cmp.Diff([]string{"spec: Invalid value: failed rule: has(self.b)"}, got.Invalid); diff != "" {
		t.Errorf("refusals (-want +got):\n%s", diff)
	}
}
