package crds

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// schemaOf is a schema whose spec has the given fields, written as YAML flow.
func schemaOf(t *testing.T, fields string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	return parsedSchema(t, fmt.Sprintf("{type: object, properties: {spec: {type: object, properties: {%s}}}}", fields))
}

func parsedSchema(t *testing.T, document string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	parsed := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.UnmarshalStrict([]byte(document), parsed); err != nil {
		t.Fatalf("%v in %s", err, document)
	}
	return parsed
}

// edition is a definition with one version, served and stored, of the given schema.
func edition(schema *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.CustomResourceDefinition {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	definition.Spec.Scope = apiextensionsv1.NamespaceScoped
	definition.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{versionWith("v1", schema, true, true)}
	return definition
}

func versionWith(name string, schema *apiextensionsv1.JSONSchemaProps, served, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
	return apiextensionsv1.CustomResourceDefinitionVersion{
		Name: name, Served: served, Storage: storage, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: schema},
	}
}

func lines(changes []Change) string {
	texts := []string{}
	for _, change := range changes {
		texts = append(texts, change.String())
	}
	return strings.Join(texts, "\n")
}

// TestChangesOfFields says, for each thing that a schema may say about a field, what a difference is called and whether it is breaking.
func TestChangesOfFields(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ story, has, wants, want string }{
		{"nothing", `a: {type: string}`, `a: {type: string}`, ``},
		{"a description, title, example", `a: {type: string, description: x}`, `a: {type: string, description: y, title: t, example: e}`, ``},

		{"a new field", ``, `a: {type: string, minLength: 1}`, `v1 spec.a: field added`},
		{"a new field with a default", ``, `a: {type: string, default: x}`, `v1 spec.a: field added`},
		{"a field goes", `a: {type: object, properties: {b: {type: string}}}`, ``, `v1 spec.a: field removed (breaking)`},
		{"a field of list items goes", `a: {type: array, items: {type: object, properties: {name: {type: string}}}}`, `a: {type: array, items: {type: object}}`,
			`v1 spec.a[].name: field removed (breaking)`},
		{"a field is renamed", `old: {type: string}`, `new: {type: string}`, "v1 spec.new: field added\nv1 spec.old: field removed (breaking)"},
		{"a field becomes one of many names", `a: {type: object, properties: {b: {type: string}}}`, `a: {type: object, additionalProperties: {type: string}}`,
			`v1 spec.a: fields of any name kept now`},
		{"values of any name become integers", `a: {type: object, additionalProperties: {type: string}}`, `a: {type: object, additionalProperties: {type: integer}}`,
			`v1 spec.a.*: type string → integer (breaking)`},
		{"values of any name are dropped", `a: {type: object, additionalProperties: {type: string}}`, `a: {type: object, properties: {b: {type: string}}}`,
			`v1 spec.a: unknown fields no longer kept (breaking)`},
		{"one of many names is described", `a: {type: object, additionalProperties: {type: string}}`, `a: {type: object, properties: {b: {type: string, maxLength: 3}}}`,
			"v1 spec.a: unknown fields no longer kept (breaking)\nv1 spec.a.b: maxLength 3 added (breaking)"},

		{"another type", `a: {type: string}`, `a: {type: integer}`, `v1 spec.a: type string → integer (breaking)`},
		{"an object becomes a text", `a: {type: object, properties: {b: {type: string}}}`, `a: {type: string}`, `v1 spec.a: type object → string (breaking)`},
		{"integers become numbers", `a: {type: integer}`, `a: {type: number}`, `v1 spec.a: type integer → number`},
		{"numbers become integers", `a: {type: number}`, `a: {type: integer}`, `v1 spec.a: type number → integer (breaking)`},
		{"texts become integers or texts", `a: {type: string}`, `a: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}`,
			`v1 spec.a: type string → integer or string`},
		{"integers or texts become texts", `a: {x-kubernetes-int-or-string: true}`, `a: {type: string}`, `v1 spec.a: type integer or string → string (breaking)`},
		{"null is refused", `a: {type: string, nullable: true}`, `a: {type: string}`, `v1 spec.a: nullable no more (breaking)`},
		{"null is accepted", `a: {type: string}`, `a: {type: string, nullable: true}`, `v1 spec.a: nullable now`},

		{"a smaller maximum", `a: {type: integer, maximum: 9}`, `a: {type: integer, maximum: 5}`, `v1 spec.a: maximum 9 → 5 (breaking)`},
		{"a larger maximum", `a: {type: integer, maximum: 5}`, `a: {type: integer, maximum: 2147483647}`, `v1 spec.a: maximum 5 → 2147483647`},
		{"a first maximum", `a: {type: integer}`, `a: {type: integer, maximum: 5}`, `v1 spec.a: maximum 5 added (breaking)`},
		{"no maximum any more", `a: {type: integer, maximum: 5}`, `a: {type: integer}`, `v1 spec.a: maximum 5 removed`},
		{"the maximum itself goes", `a: {type: integer, maximum: 5}`, `a: {type: integer, maximum: 5, exclusiveMaximum: true}`, `v1 spec.a: maximum 5 → below 5 (breaking)`},
		{"the maximum itself comes", `a: {type: integer, maximum: 5, exclusiveMaximum: true}`, `a: {type: integer, maximum: 5}`, `v1 spec.a: maximum below 5 → 5`},
		{"a larger minimum", `a: {type: integer, minimum: 1}`, `a: {type: integer, minimum: 2}`, `v1 spec.a: minimum 1 → 2 (breaking)`},
		{"a smaller minimum", `a: {type: integer, minimum: 1}`, `a: {type: integer, minimum: 0}`, `v1 spec.a: minimum 1 → 0`},
		{"the minimum itself goes", `a: {type: number, minimum: 0.5}`, `a: {type: number, minimum: 0.5, exclusiveMinimum: true}`, `v1 spec.a: minimum 0.5 → above 0.5 (breaking)`},
		{"another multiple", `a: {type: integer, multipleOf: 4}`, `a: {type: integer, multipleOf: 3}`, `v1 spec.a: multipleOf 4 → 3 (breaking)`},
		{"shorter texts", `a: {type: string, maxLength: 9}`, `a: {type: string, maxLength: 5}`, `v1 spec.a: maxLength 9 → 5 (breaking)`},
		{"texts may not be empty", `a: {type: string}`, `a: {type: string, minLength: 1}`, `v1 spec.a: minLength 1 added (breaking)`},
		{"no length below 0", `a: {type: string}`, `a: {type: string, minLength: 0}`, ``},
		{"longer lists", `a: {type: array, maxItems: 1, items: {type: string}}`, `a: {type: array, maxItems: 2, items: {type: string}}`, `v1 spec.a: maxItems 1 → 2`},
		{"lists of one at least", `a: {type: array, items: {type: string}}`, `a: {type: array, minItems: 1, items: {type: string}}`, `v1 spec.a: minItems 1 added (breaking)`},
		{"fewer keys", `a: {type: object, maxProperties: 3}`, `a: {type: object, maxProperties: 2}`, `v1 spec.a: maxProperties 3 → 2 (breaking)`},
		{"more keys at least", `a: {type: object, minProperties: 2}`, `a: {type: object, minProperties: 3}`, `v1 spec.a: minProperties 2 → 3 (breaking)`},
		{"another pattern", `a: {type: string, pattern: ^a$}`, `a: {type: string, pattern: ^b$}`, `v1 spec.a: pattern ^a$ → ^b$ (breaking)`},
		{"a first pattern", `a: {type: string}`, `a: {type: string, pattern: ^b$}`, `v1 spec.a: pattern ^b$ added (breaking)`},
		{"no pattern any more", `a: {type: string, pattern: ^a$}`, `a: {type: string}`, `v1 spec.a: pattern ^a$ removed`},
		{"a format", `a: {type: string}`, `a: {type: string, format: date-time}`, `v1 spec.a: format date-time added (breaking)`},
		{"a larger format", `a: {type: integer, format: int32}`, `a: {type: integer, format: int64}`, `v1 spec.a: format int32 → int64`},
		{"a smaller format", `a: {type: integer, format: int64}`, `a: {type: integer, format: int32}`, `v1 spec.a: format int64 → int32 (breaking)`},
		{"values come and go", `a: {type: string, enum: [u, v]}`, `a: {type: string, enum: [w, v]}`, "v1 spec.a: value \"u\" no longer allowed (breaking)\nv1 spec.a: value \"w\" allowed now"},
		{"values in another order", `a: {type: string, enum: [u, v]}`, `a: {type: string, enum: [v, u]}`, ``},
		{"only certain values", `a: {type: string}`, `a: {type: string, enum: [u, v]}`, `v1 spec.a: only these values are allowed now: "u", "v" (breaking)`},
		{"any value", `a: {type: string, enum: [u, v]}`, `a: {type: string}`, `v1 spec.a: any value allowed now`},

		{"another default", `a: {type: integer, default: 2}`, `a: {type: integer, default: 3}`, `v1 spec.a: default 2 → 3 (breaking)`},
		{"a default goes", `a: {type: integer, default: 2}`, `a: {type: integer}`, `v1 spec.a: default 2 removed (breaking)`},
		{"a default comes", `a: {type: object}`, `a: {type: object, default: {}}`, `v1 spec.a: default {} added (breaking)`},

		{"lists become maps", `a: {type: array, items: {type: object, required: [name], properties: {name: {type: string}}}}`,
			`a: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}}}}`,
			"v1 spec.a: list keys none → name (breaking)\nv1 spec.a: list type atomic → map (breaking)"},
		{"atomic is what lists are", `a: {type: array, items: {type: string}}`, `a: {type: array, x-kubernetes-list-type: atomic, items: {type: string}}`, ``},
		{"sets become lists", `a: {type: array, x-kubernetes-list-type: set, items: {type: string}}`, `a: {type: array, items: {type: string}}`, `v1 spec.a: list type set → atomic (breaking)`},
		{"maps become atomic", `a: {type: object, x-kubernetes-map-type: granular}`, `a: {type: object, x-kubernetes-map-type: atomic}`, `v1 spec.a: map type granular → atomic (breaking)`},

		{"unknown fields are dropped", `a: {type: object, x-kubernetes-preserve-unknown-fields: true}`, `a: {type: object}`, `v1 spec.a: unknown fields no longer kept (breaking)`},
		{"unknown fields are kept", `a: {type: object}`, `a: {type: object, x-kubernetes-preserve-unknown-fields: true}`, `v1 spec.a: fields of any name kept now`},
		{"an unknown field gets a schema", `a: {type: object, x-kubernetes-preserve-unknown-fields: true}`,
			`a: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {b: {type: string}}}`, `v1 spec.a.b: described now: what does not fit is dropped or refused (breaking)`},
		{"a field is described no longer", `a: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {b: {type: string}}}`,
			`a: {type: object, x-kubernetes-preserve-unknown-fields: true}`, `v1 spec.a.b: no longer described: anything is accepted`},
		{"and had a default", `a: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {b: {type: string, default: x}}}`,
			`a: {type: object, x-kubernetes-preserve-unknown-fields: true}`, `v1 spec.a.b: no longer described: anything is accepted (breaking)`},
		{"anything at all gets a schema", `a: {x-kubernetes-preserve-unknown-fields: true}`, `a: {type: string}`, `v1 spec.a: described now: what does not fit is dropped or refused (breaking)`},
		{"an object becomes an embedded one", `a: {type: object, x-kubernetes-preserve-unknown-fields: true}`,
			`a: {type: object, x-kubernetes-preserve-unknown-fields: true, x-kubernetes-embedded-resource: true}`, "v1 spec.a: a whole embedded object now (breaking)\n" +
				"v1 spec.a.apiVersion: described now: what does not fit is dropped or refused (breaking)\n" +
				"v1 spec.a.kind: described now: what does not fit is dropped or refused (breaking)\n" +
				"v1 spec.a.metadata: described now: what does not fit is dropped or refused (breaking)"},

		{"a rule comes", `a: {type: string}`, `a: {type: string, x-kubernetes-validations: [{rule: self != 'x', message: not x}]}`, `v1 spec.a: validation rule added: not x (breaking)`},
		{"a rule goes", `a: {type: string, x-kubernetes-validations: [{rule: self != 'x'}]}`, `a: {type: string}`, `v1 spec.a: validation rule removed: self != 'x'`},
		{"a rule changes", `a: {type: string, x-kubernetes-validations: [{rule: self != 'x', message: not that}]}`,
			`a: {type: string, x-kubernetes-validations: [{rule: self != 'y', message: not that}]}`, `v1 spec.a: validation rule changed: not that (breaking)`},
		{"a rule is explained better", `a: {type: string, x-kubernetes-validations: [{rule: self != 'x', message: no}]}`,
			`a: {type: string, x-kubernetes-validations: [{rule: self != 'x', message: not x, reason: FieldValueForbidden}]}`, ``},

		{"a combination comes", `a: {type: string}`, `a: {type: string, allOf: [{maxLength: 3}]}`, `v1 spec.a: allOf added (breaking)`},
		{"a combination changes", `a: {type: string, anyOf: [{maxLength: 3}]}`, `a: {type: string, anyOf: [{maxLength: 4}]}`, `v1 spec.a: anyOf changed (breaking)`},
		{"a combination goes", `a: {type: string, oneOf: [{maxLength: 3}]}`, `a: {type: string}`, `v1 spec.a: oneOf removed (breaking)`},
		{"a negation changes", `a: {type: string, not: {enum: [u]}}`, `a: {type: string, not: {enum: [u, v]}}`, `v1 spec.a: not changed (breaking)`},
		{"a combination is described", `a: {type: string, allOf: [{maxLength: 3}]}`, `a: {type: string, allOf: [{maxLength: 3, description: short}]}`, ``},
		{"what is not known here", `a: {type: object}`, `a: {type: object, patternProperties: {x: {type: string}}}`, `v1 spec.a: schema changed in a way that is not told apart (breaking)`},
	} {
		t.Run(test.story, func(t *testing.T) {
			t.Parallel()
			got := Changes(edition(schemaOf(t, test.has)), edition(schemaOf(t, test.wants)))
			if diff := cmp.Diff(test.want, lines(got)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestChangesOfObjects is about what a schema says of objects as a whole.
func TestChangesOfObjects(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ story, has, wants, want string }{
		{"fields must be there", `{type: object, properties: {a: {type: string}, b: {type: string, default: x}}}`,
			`{type: object, required: [a, b], properties: {a: {type: string}, b: {type: string, default: x}}}`,
			"v1 a: now required (breaking)\nv1 b: now required, and filled in by its default"},
		{"a field need not be there", `{type: object, required: [a], properties: {a: {type: string}}}`, `{type: object, properties: {a: {type: string}}}`, `v1 a: no longer required`},
		{"a new field must be there", `{type: object}`, `{type: object, required: [a], properties: {a: {type: string}}}`, "v1 a: field added\nv1 a: now required (breaking)"},
		{"what all objects have is described", `{type: object}`, `{type: object, properties: {apiVersion: {type: string}, kind: {type: string}, metadata: {type: object}}}`, ``},
		{"names are limited", `{type: object, properties: {metadata: {type: object}}}`, `{type: object, properties: {metadata: {type: object, properties: {name: {type: string, maxLength: 9}}}}}`,
			`v1 metadata.name: maxLength 9 added (breaking)`},
		{"a rule about objects", `{type: object}`, `{type: object, x-kubernetes-validations: [{rule: "size(self.metadata.name) < 9"}]}`,
			`v1 validation rule added: size(self.metadata.name) < 9 (breaking)`},
	} {
		t.Run(test.story, func(t *testing.T) {
			t.Parallel()
			got := Changes(edition(parsedSchema(t, test.has)), edition(parsedSchema(t, test.wants)))
			if diff := cmp.Diff(test.want, lines(got)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestChangesOfVersions is about versions that come and go, and what goes with them.
func TestChangesOfVersions(t *testing.T) {
	t.Parallel()
	small, large := `a: {type: integer, default: 1}`, `a: {type: integer}, b: {type: string}`
	type definition = apiextensionsv1.CustomResourceDefinition
	for _, test := range []struct {
		story string
		edit  func(t *testing.T, has, wants *definition)
		want  string
	}{
		{"a version is added that can say more", func(t *testing.T, _, wants *definition) {
			wants.Spec.Versions = append(wants.Spec.Versions, versionWith("v2", schemaOf(t, large), true, false))
		}, "v2 version added"},
		{"a version is added that cannot say what is stored", func(t *testing.T, has, wants *definition) {
			has.Spec.Versions[0] = versionWith("v1", schemaOf(t, large), true, true)
			wants.Spec.Versions[0] = has.Spec.Versions[0]
			wants.Spec.Versions = append(wants.Spec.Versions, versionWith("v2", schemaOf(t, small), true, false))
		}, "v2 version added\nv2 spec.b: unlike v1: field removed (breaking)"},
		{"a version is added that is neither served nor stored", func(t *testing.T, _, wants *definition) {
			wants.Spec.Versions = append(wants.Spec.Versions, versionWith("v2", schemaOf(t, ``), false, false))
		}, "v2 version added"},
		{"a version is added with a converter", func(t *testing.T, _, wants *definition) {
			wants.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
			wants.Spec.Versions = append(wants.Spec.Versions, versionWith("v2", schemaOf(t, ``), true, false))
		}, "conversion None → Webhook\nv2 version added"},
		{"objects are stored in another version", func(t *testing.T, has, wants *definition) {
			has.Spec.Versions = append(has.Spec.Versions, versionWith("v2", schemaOf(t, `a: {type: string}`), true, false))
			wants.Spec.Versions[0].Storage = false
			wants.Spec.Versions = append(wants.Spec.Versions, versionWith("v2", schemaOf(t, `a: {type: string}`), true, true))
		}, "v2 objects are stored in this version from now on\nv2 spec.a: unlike v1: type integer → string (breaking)"},
		{"objects are converted to another version", func(t *testing.T, has, wants *definition) {
			webhook := &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
			has.Spec.Conversion, wants.Spec.Conversion = webhook, webhook
			has.Spec.Versions = append(has.Spec.Versions, versionWith("v2", schemaOf(t, ``), true, false))
			wants.Spec.Versions[0].Storage = false
			wants.Spec.Versions = append(wants.Spec.Versions, versionWith("v2", schemaOf(t, ``), true, true))
		}, "v2 objects are stored in this version from now on (breaking)"},
		{"objects are converted no longer", func(t *testing.T, has, wants *definition) {
			has.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
			has.Spec.Versions = append(has.Spec.Versions, versionWith("v2", schemaOf(t, ``), true, false))
			wants.Spec.Versions = has.Spec.Versions
		}, "conversion Webhook → None (breaking)"},
		{"a version goes", func(t *testing.T, has, _ *definition) {
			has.Spec.Versions = append(has.Spec.Versions, versionWith("v1beta1", schemaOf(t, small), true, false))
		}, "v1beta1 version removed (breaking)"},
		{"a version goes that nobody could use", func(t *testing.T, has, _ *definition) {
			has.Spec.Versions = append(has.Spec.Versions, versionWith("v1beta1", schemaOf(t, small), false, false))
		}, "v1beta1 version removed"},
		{"a version goes that objects are stored in", func(t *testing.T, has, _ *definition) {
			has.Spec.Versions = append(has.Spec.Versions, versionWith("v1beta1", schemaOf(t, small), false, false))
			has.Status.StoredVersions = []string{"v1beta1", "v1"}
		}, "v1beta1 version removed (breaking)"},
		{"a version is served no longer", func(_ *testing.T, _, wants *definition) {
			wants.Spec.Versions[0].Served = false
		}, "v1 no longer served (breaking)"},
		{"a version is deprecated", func(_ *testing.T, _, wants *definition) {
			wants.Spec.Versions[0].Deprecated = true
		}, "v1 now deprecated"},
		{"columns for people", func(_ *testing.T, _, wants *definition) {
			wants.Spec.Versions[0].AdditionalPrinterColumns = []apiextensionsv1.CustomResourceColumnDefinition{{Name: "A", JSONPath: ".spec.a", Type: "integer"}}
		}, ""},
		{"subresources go", func(_ *testing.T, has, _ *definition) {
			has.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{
				Status: &apiextensionsv1.CustomResourceSubresourceStatus{}, Scale: &apiextensionsv1.CustomResourceSubresourceScale{}}
		}, "v1 scale subresource removed (breaking)\nv1 status subresource removed (breaking)"},
		{"subresources come", func(_ *testing.T, _, wants *definition) {
			wants.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{
				Status: &apiextensionsv1.CustomResourceSubresourceStatus{}, Scale: &apiextensionsv1.CustomResourceSubresourceScale{}}
		}, "v1 scale subresource added (breaking)\nv1 status subresource added (breaking)"},
		{"a status has a default from now on", func(t *testing.T, has, wants *definition) {
			withStatus := &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
			for at, status := range map[*definition]string{
				has:   `{type: object, properties: {a: {type: integer}, b: {type: integer, default: 1}}}`,
				wants: `{type: object, default: {a: -1}, properties: {a: {type: integer, default: -1}, b: {type: integer, default: 2}}}`,
			} {
				at.Spec.Versions[0] = versionWith("v1", parsedSchema(t, "{type: object, properties: {status: "+status+"}}"), true, true)
				at.Spec.Versions[0].Subresources = withStatus
			}
		}, "v1 status: default {\"a\":-1} added\nv1 status.a: default -1 added\nv1 status.b: default 1 → 2 (breaking)"},
		{"a status has a default from now on, and is a part of manifests", func(t *testing.T, has, wants *definition) {
			has.Spec.Versions[0] = versionWith("v1", parsedSchema(t, "{type: object, properties: {status: {type: object}}}"), true, true)
			wants.Spec.Versions[0] = versionWith("v1", parsedSchema(t, "{type: object, properties: {status: {type: object, default: {}}}}"), true, true)
		}, "v1 status: default {} added (breaking)"},
		{"the scale is elsewhere", func(_ *testing.T, has, wants *definition) {
			has.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Scale: &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.a"}}
			wants.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Scale: &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.b"}}
		}, "v1 scale subresource: specReplicasPath .spec.a → .spec.b (breaking)"},
		{"a field selector goes", func(_ *testing.T, has, _ *definition) {
			has.Spec.Versions[0].SelectableFields = []apiextensionsv1.SelectableField{{JSONPath: ".spec.a"}}
		}, "v1 field selector .spec.a removed (breaking)"},
		{"another scope", func(_ *testing.T, _, wants *definition) {
			wants.Spec.Scope = apiextensionsv1.ClusterScoped
		}, "scope Namespaced → Cluster (breaking)"},
		{"unknown fields were kept everywhere", func(_ *testing.T, has, _ *definition) {
			has.Spec.PreserveUnknownFields = true
		}, "unknown fields no longer kept (breaking)"},
		{"a schema where there was none", func(_ *testing.T, has, _ *definition) {
			has.Spec.Versions[0].Schema = nil
		}, "v1 unknown fields no longer kept (breaking)\nv1 spec: described now: what does not fit is dropped or refused (breaking)"},
	} {
		t.Run(test.story, func(t *testing.T) {
			t.Parallel()
			has, wants := edition(schemaOf(t, small)), edition(schemaOf(t, small))
			test.edit(t, has, wants)
			if diff := cmp.Diff(test.want, lines(Changes(has, wants))); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestChangesDoNotTouchTheirArguments guards that plans are made from what was read, not from what was compared.
func TestChangesDoNotTouchTheirArguments(t *testing.T) {
	t.Parallel()
	has := edition(schemaOf(t, `a: {type: string, allOf: [{maxLength: 3, description: short}], x-kubernetes-validations: [{rule: "true"}]}`))
	wants := edition(schemaOf(t, `a: {type: string, allOf: [{maxLength: 4, description: longer}]}`))
	before, after := has.DeepCopy(), wants.DeepCopy()
	Changes(has, wants)
	if diff := cmp.Diff(before, has) + cmp.Diff(after, wants); diff != "" {
		t.Errorf("arguments changed:\n%s", diff)
	}
}
