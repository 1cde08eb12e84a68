package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/mysql-operator/mysql-operator/crds"
	"github.com/mysql-operator/mysql-operator/crds/objects"
	"github.com/mysql-operator/mysql-operator/test/integration/internal/apiserver"
)

// changing is a definition of Things that a test changes under its objects.
type changing struct {
	*apiserver.Server
	t       *testing.T
	group   string
	edition int
}

// edition is what a definition of Things is at some time: its versions, as lists of "NAME fields", "NAME! fields" for the one to store
// in, "NAME? fields" for one that is not served. Fields are those of spec, in YAML flow; a set scale adds the subresource.
type edition struct {
	versions []string
	scale    bool
}

func one(fields string) edition { return edition{versions: []string{"v1! " + fields}} }

// newChanging registers Things under a group of the test's own.
func newChanging(t *testing.T, server *apiserver.Server, group string, first edition) *changing {
	t.Helper()
	c := &changing{Server: server, t: t, group: group + ".objects.example.com"}
	c.become(first)
	t.Cleanup(func() {
		_ = c.Dynamic.Resource(definitionResource()).Delete(context.WithoutCancel(t.Context()), c.name(), metav1.DeleteOptions{})
	})
	return c
}

func (c *changing) name() string { return "things." + c.group }

func (c *changing) things(version string) dynamic.ResourceInterface {
	return c.Dynamic.Resource(apischema.GroupVersionResource{Group: c.group, Version: version, Resource: "things"}).Namespace("default")
}

// definition is the edition as it would be applied.
func (c *changing) definition(wanted edition) *apiextensionsv1.CustomResourceDefinition {
	c.t.Helper()
	made := &apiextensionsv1.CustomResourceDefinition{}
	made.APIVersion, made.Kind, made.Name = "apiextensions.k8s.io/v1", "CustomResourceDefinition", c.name()
	made.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: c.group, Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Singular: "thing", Kind: "Thing", ListKind: "ThingList"},
	}
	for _, document := range wanted.versions {
		name, fields, _ := strings.Cut(document, " ")
		version := apiextensionsv1.CustomResourceDefinitionVersion{Name: name[:2], Served: !strings.Contains(name, "?"), Storage: strings.Contains(name, "!")}
		version.Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{}}
		if err := yaml.UnmarshalStrict(fmt.Appendf(nil, "{type: object, properties: {spec: {type: object, %s}}}", fields), version.Schema.OpenAPIV3Schema); err != nil {
			c.t.Fatalf("%v in %s", err, document)
		}
		if wanted.scale {
			version.Subresources = &apiextensionsv1.CustomResourceSubresources{Scale: &apiextensionsv1.CustomResourceSubresourceScale{
				SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas"}}
		}
		version.AdditionalPrinterColumns = []apiextensionsv1.CustomResourceColumnDefinition{{
			Name: "Mark", Type: "string", JSONPath: ".metadata.name", Description: fmt.Sprintf("edition %d", c.edition)}}
		made.Spec.Versions = append(made.Spec.Versions, version)
	}
	return made
}

// become changes the definition and waits until the API server enforces it.
func (c *changing) become(wanted edition) {
	c.t.Helper()
	c.edition++
	made := c.definition(wanted)
	definitions := c.Dynamic.Resource(definitionResource())
	body := &unstructured.Unstructured{}
	transcribe(c.t, made, &body.Object)
	if c.edition == 1 {
		if _, err := definitions.Create(c.t.Context(), body, metav1.CreateOptions{}); err != nil {
			c.t.Fatal(err)
		}
	} else {
		body.SetResourceVersion(c.live().ResourceVersion)
		if _, err := definitions.Update(c.t.Context(), body, metav1.UpdateOptions{}); err != nil {
			c.t.Fatal(err)
		}
	}
	for _, version := range made.Spec.Versions {
		if version.Served {
			apiserver.Eventually(c.t, func(ctx context.Context) string { return c.notEnforced(ctx, version.Name) })
		}
	}
}

// notEnforced says what is missing until the columns of a table are those of the edition: table and schema are changed as one.
func (c *changing) notEnforced(ctx context.Context, version string) string {
	client, err := rest.HTTPClientFor(c.Config)
	if err != nil {
		return err.Error()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/apis/%s/%s/things?limit=1", c.Config.Host, c.group, version), http.NoBody)
	if err != nil {
		return err.Error()
	}
	request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	response, err := client.Do(request)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	if mark := fmt.Sprintf(`"edition %d"`, c.edition); !strings.Contains(string(content), mark) {
		return fmt.Sprintf("%s of %s in version %s: %.200s", mark, c.name(), version, content)
	}
	return ""
}

// live is the definition as it is in the cluster.
func (c *changing) live() *apiextensionsv1.CustomResourceDefinition {
	c.t.Helper()
	object, err := c.Dynamic.Resource(definitionResource()).Get(c.t.Context(), c.name(), metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	transcribe(c.t, object.Object, definition)
	return definition
}

func transcribe(t *testing.T, from, into any) {
	t.Helper()
	document, err := json.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(document, into); err != nil {
		t.Fatal(err)
	}
}

func (c *changing) thing(version, name, spec string) *unstructured.Unstructured {
	c.t.Helper()
	object := &unstructured.Unstructured{}
	document := fmt.Sprintf("{apiVersion: %s/%s, kind: Thing, metadata: {name: %s}, spec: {%s}}", c.group, version, name, spec)
	if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
		c.t.Fatalf("%v in %s", err, document)
	}
	return object
}

func (c *changing) check(config *rest.Config, target edition, namespaces ...string) (crds.Objects, error) {
	c.t.Helper()
	checker, err := objects.New(config)
	if err != nil {
		c.t.Fatal(err)
	}
	checker.Namespaces, checker.PageSize = namespaces, 50
	return checker.Check(c.t.Context(), c.live(), c.definition(target))
}

// refusals are the causes the API server gives for not accepting the object as a new one, sorted.
func (c *changing) refusals(version string, spec any) []string {
	c.t.Helper()
	fresh := c.thing(version, "fresh", "")
	fresh.Object["spec"] = spec
	_, err := c.things(version).Create(c.t.Context(), fresh, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationIgnore})
	if err == nil {
		return []string{}
	}
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || status.Status().Details == nil {
		c.t.Fatalf("in version %s: %v", version, err)
	}
	causes := []string{}
	for _, cause := range status.Status().Details.Causes {
		if !strings.Contains(cause.Message, "some validation rules were not checked") {
			causes = append(causes, cause.Field+": "+cause.Message)
		}
	}
	slices.Sort(causes)
	return causes
}

// TestObjectsAreHarmedAsForetold changes definitions under their objects and compares what the API server does to them, in each version
// it serves, with what was foretold.
func TestObjectsAreHarmedAsForetold(t *testing.T) {
	t.Parallel()
	server := pool.Shared(t)
	text, number := `properties: {a: {type: string}}`, `properties: {a: {type: integer}}`
	two := `properties: {a: {type: string}, b: {type: string}}`
	anything := `x-kubernetes-preserve-unknown-fields: true`
	named := `properties: {l: {type: array, items: {type: object, required: [name], properties: {name: {type: string}, port: {type: integer}}}}}`
	for name, test := range map[string]struct {
		has, wants edition
		spec       string
		harm       bool
	}{
		"field-removed":          {one(two), one(text), `a: u, b: w`, true},
		"field-removed-in-items": {one(named), one(`properties: {l: {type: array, items: {type: object, properties: {name: {type: string}}}}}`), `l: [{name: u, port: 1}, {name: w}]`, true},
		"field-added":            {one(text), one(two), `a: u`, false},
		"unknown-not-kept":       {one(anything), one(text), `a: u, c: {d: [e]}, f: {}`, true},
		"unknown-described":      {one(anything), one(anything + `, properties: {c: {type: object, properties: {d: {type: integer}}}}`), `a: u, c: {d: w, g: 1}`, true},
		"null-dropped":           {one(`properties: {a: {type: string, nullable: true}}`), one(text), `a: null`, true},
		"null-defaulted":         {one(`properties: {a: {type: string, nullable: true}}`), one(`properties: {a: {type: string, default: u}}`), `a: null`, true},
		"null-kept":              {one(`properties: {a: {type: string, nullable: true}}`), one(`properties: {a: {type: string, nullable: true, maxLength: 1}}`), `a: null`, false},
		"type-changed":           {one(text), one(number), `a: u`, true},
		"type-widened":           {one(number), one(`properties: {a: {x-kubernetes-int-or-string: true}}`), `a: 1`, false},
		"integer-to-number":      {one(number), one(`properties: {a: {type: number}}`), `a: 1`, false},
		"object-to-text":         {one(`properties: {a: {type: object, properties: {b: {type: string}}}}`), one(text), `a: {b: u}`, true},
		"maximum-lowered":        {one(number), one(`properties: {a: {type: integer, maximum: 5}}`), `a: 7`, true},
		"maximum-reached":        {one(number), one(`properties: {a: {type: integer, maximum: 7}}`), `a: 7`, false},
		"too-long":               {one(text), one(`properties: {a: {type: string, maxLength: 2}}`), `a: abc`, true},
		"pattern":                {one(text), one(`properties: {a: {type: string, pattern: "^x"}}`), `a: abc`, true},
		"format":                 {one(text), one(`properties: {a: {type: string, format: date-time}}`), `a: yesterday`, true},
		"format-unknown":         {one(text), one(`properties: {a: {type: string, format: my-own}}`), `a: yesterday`, false},
		"value-not-allowed":      {one(text), one(`properties: {a: {type: string, enum: [u, v]}}`), `a: w`, true},
		"required":               {one(two), one(`required: [a, b], ` + two), `a: u`, true},
		"required-defaulted":     {one(two), one(`required: [a, b], properties: {a: {type: string}, b: {type: string, default: u}}`), `a: u`, false},
		"rule":                   {one(number), one(`properties: {a: {type: integer, x-kubernetes-validations: [{rule: self % 2 == 0, message: must be even}]}}`), `a: 7`, true},
		"rule-kept":              {one(number), one(`properties: {a: {type: integer, x-kubernetes-validations: [{rule: self % 2 == 0, message: must be even}]}}`), `a: 8`, false},
		"rule-of-transition":     {one(number), one(`properties: {a: {type: integer, x-kubernetes-validations: [{rule: self > oldSelf}]}}`), `a: 8`, false},
		"rule-says-more":         {one(number), one(`x-kubernetes-validations: [{rule: "self.a > 8", messageExpression: "'above ' + '8'", fieldPath: .a, reason: FieldValueForbidden}], ` + number), `a: 8`, true},
		"rule-and-type":          {one(two), one(`x-kubernetes-validations: [{rule: size(self.b) > 8}], properties: {a: {type: integer}, b: {type: string}}`), `a: u, b: w`, true},
		"list-to-set":            {one(`properties: {l: {type: array, items: {type: string}}}`), one(`properties: {l: {type: array, x-kubernetes-list-type: set, items: {type: string}}}`), `l: [u, v, u]`, true},
		"list-to-map": {one(named), one(`properties: {l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name],
			properties: {name: {type: string}, port: {type: integer}}}}}`), `l: [{name: u, port: 1}, {name: u, port: 2}]`, true},
		"any-of": {one(number), one(`properties: {a: {type: integer, anyOf: [{minimum: 9}, {maximum: 3}]}}`), `a: 7`, true},
		"not":    {one(text), one(`properties: {a: {type: string, not: {enum: [u]}}}`), `a: u`, true},
		"embedded": {one(`properties: {o: {type: object, x-kubernetes-preserve-unknown-fields: true}}`),
			one(`properties: {o: {type: object, x-kubernetes-preserve-unknown-fields: true, x-kubernetes-embedded-resource: true}}`), `o: {apiVersion: v1, metadata: {name: u, mine: v}}`, true},
		"scale": {edition{versions: []string{`v1! properties: {replicas: {type: integer}}`}}, edition{versions: []string{`v1! properties: {replicas: {type: integer}}`}, scale: true}, `replicas: -1`, true},
		"values-of-any-name": {one(`properties: {m: {type: object, additionalProperties: {type: string}}}`),
			one(`properties: {m: {type: object, additionalProperties: {type: string, maxLength: 1}}}`), `m: {u.x: v, w: long}`, true},
		"names-of-any-name":    {one(`properties: {m: {type: object, additionalProperties: {type: string}}}`), one(`properties: {m: {type: object, properties: {u: {type: string}}}}`), `m: {u: v, w.x: long}`, true},
		"version-added":        {one(two), edition{versions: []string{"v1! " + two, "v2 " + two}}, `a: u, b: w`, false},
		"version-added-poorer": {one(two), edition{versions: []string{"v1! " + two, "v2 " + text}}, `a: u, b: w`, true},
		"version-added-strict": {one(two), edition{versions: []string{"v1! " + two, "v2 properties: {a: {type: string, enum: [v]}, b: {type: string}}"}}, `a: u, b: w`, true},
		"version-stored":       {one(two), edition{versions: []string{"v1? " + two, "v2! " + two}}, `a: u, b: w`, false},
		"version-stored-poorer": {edition{versions: []string{"v1! " + two, "v2 " + text}}, edition{versions: []string{"v1 " + two, "v2! " + text}},
			`a: u, b: w`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newChanging(t, server, name, test.has)
			made, err := c.things("v1").Create(t.Context(), c.thing("v1", "a", test.spec), metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			foretold, err := c.check(c.Config, test.wants)
			if err != nil {
				t.Fatal(err)
			}
			if harmed := map[bool]int{true: 1}[test.harm]; foretold.Seen != 1 || foretold.Harmed != harmed {
				t.Errorf("foretold: %d of %d harmed: %v", foretold.Harmed, foretold.Seen, foretold.Findings)
			}
			c.become(test.wants)
			c.compare(foretold, made, name == "version-stored-poorer")
		})
	}
}

// compare looks at what became of the object, in each version that is served. Rewritten says that the loss comes with the next write.
func (c *changing) compare(foretold crds.Objects, made *unstructured.Unstructured, rewritten bool) {
	c.t.Helper()
	told := crds.Finding{}
	if len(foretold.Findings) > 0 {
		told = foretold.Findings[0]
	}
	lost, refused := []string{}, []string{}
	if rewritten {
		patch := []byte(`{"metadata":{"labels":{"rewritten":"yes"}}}`)
		if _, err := c.things("v1").Patch(c.t.Context(), "a", "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
			c.t.Fatal(err)
		}
	}
	for _, version := range c.live().Spec.Versions {
		if !version.Served {
			continue
		}
		after, err := c.things(version.Name).Get(c.t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			c.t.Fatal(err)
		}
		lost = append(lost, lostFields("spec", made.Object["spec"], after.Object["spec"])...)
		refused = append(refused, c.refusals(version.Name, made.Object["spec"])...)
	}
	slices.Sort(lost)
	if diff := cmp.Diff(slices.Compact(lost), append([]string{}, told.Lost...)); diff != "" {
		c.t.Errorf("lost (-by the API server +foretold):\n%s", diff)
	}
	slices.Sort(refused)
	if diff := cmp.Diff(slices.Compact(refused), append([]string{}, told.Invalid...)); diff != "" {
		c.t.Errorf("refused (-by the API server +foretold):\n%s", diff)
	}
}

// lostFields are the paths of what is not there any more, or was null and is not.
func lostFields(path string, before, after any) []string {
	lost := []string{}
	switch before := before.(type) {
	case map[string]any:
		left, _ := after.(map[string]any)
		for name, value := range before {
			kept, found := left[name]
			if !found || (value == nil && kept != nil) {
				lost = append(lost, path+"."+name)
				continue
			}
			lost = append(lost, lostFields(path+"."+name, value, kept)...)
		}
	case []any:
		left, _ := after.([]any)
		for at, value := range before {
			if at < len(left) {
				lost = append(lost, lostFields(fmt.Sprintf("%s[%d]", path, at), value, left[at])...)
			}
		}
	}
	return lost
}

// TestWhatIsInvalidAlreadyIsNotCounted is about an object that a former edition made invalid: the API server lets it be, too.
func TestWhatIsInvalidAlreadyIsNotCounted(t *testing.T) {
	t.Parallel()
	limit := func(maximum int, more string) edition {
		return one(fmt.Sprintf(`properties: {a: {type: integer, maximum: %d}, b: {type: string%s}}`, maximum, more))
	}
	c := newChanging(t, pool.Shared(t), "already", limit(100, ""))
	if _, err := c.things("v1").Create(t.Context(), c.thing("v1", "a", "a: 12, b: long"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.become(limit(9, ""))
	for _, test := range []struct {
		target edition
		harmed int
	}{{limit(5, ""), 0}, {limit(5, ", maxLength: 2"), 1}} {
		got, err := c.check(c.Config, test.target)
		if err != nil || got.Seen != 1 || got.Harmed != test.harmed {
			t.Errorf("seen %d, harmed %d: %v, error %v", got.Seen, got.Harmed, got.Findings, err)
		}
	}
	c.become(limit(5, ""))
	patch := []byte(`{"spec":{"b":"other"}}`)
	if _, err := c.things("v1").Patch(t.Context(), "a", "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		t.Errorf("an edit of another field is refused: %v", err)
	}
}

// TestCheckOfManyObjects is about pages, namespaces and rights on the real API server.
func TestCheckOfManyObjects(t *testing.T) {
	t.Parallel()
	has, wants := one(`properties: {a: {type: string}, b: {type: string}}`), one(`properties: {a: {type: string}}`)
	server := pool.Shared(t)
	c := newChanging(t, server, "many", has)
	group := sync.WaitGroup{}
	for worker := range 8 {
		group.Go(func() {
			for at := worker; at < 400; at += 8 {
				spec := map[bool]string{true: "a: u, b: w", false: "a: u"}[at%10 == 0]
				if _, err := c.things("v1").Create(t.Context(), c.thing("v1", fmt.Sprintf("thing-%03d", at), spec), metav1.CreateOptions{}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	got, err := c.check(c.Config, wants)
	if err != nil || got.Seen != 400 || got.Harmed != 40 || len(got.Findings) != 20 || got.Findings[19].Name != "thing-190" {
		t.Errorf("seen %d, harmed %d: %v, error %v", got.Seen, got.Harmed, got.Findings, err)
	}
	got, err = c.check(c.Config, wants, "kube-system")
	if err != nil || got.Seen != 0 || cmp.Diff([]string{"kube-system"}, got.Namespaces) != "" {
		t.Errorf("elsewhere: seen %d in %v, error %v", got.Seen, got.Namespaces, err)
	}

	nobody := rest.CopyConfig(c.Config)
	nobody.Impersonate = rest.ImpersonationConfig{UserName: "stranger", Groups: []string{"system:authenticated"}}
	_, err = c.check(nobody, wants)
	want := fmt.Sprintf(`the account does not have the permission "list" on things.%s in all namespaces`, c.group)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("without rights: error %v", err)
	}

	absent := c.live()
	absent.Spec.Names.Plural, absent.Status.Conditions = "none", nil
	checker, err := objects.New(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := checker.Check(t.Context(), absent, absent); err != nil || got.Seen != 0 {
		t.Errorf("not served yet: seen %d, error %v", got.Seen, err)
	}
}
