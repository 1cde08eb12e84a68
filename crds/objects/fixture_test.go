package objects

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// definition is the definition of Things with these versions: "NAME fields", "NAME! fields" for the storage version, "NAME? fields" for one
// that is not served. Fields are those of spec, in YAML flow style.
func definition(t *testing.T, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	made := &apiextensionsv1.CustomResourceDefinition{}
	made.Name = "things.example.com"
	made.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Singular: "thing", Kind: "Thing", ListKind: "ThingList"},
	}
	for _, document := range versions {
		made.Spec.Versions = append(made.Spec.Versions, versionOf(t, document))
	}
	made.Status.StoredVersions = []string{"v1"}
	made.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
	return made
}

func versionOf(t *testing.T, document string) apiextensionsv1.CustomResourceDefinitionVersion {
	t.Helper()
	var name, fields string
	for at, letter := range document {
		if letter == ' ' {
			name, fields = document[:at], document[at+1:]
			break
		}
	}
	made := apiextensionsv1.CustomResourceDefinitionVersion{Name: name[:2], Served: true, Schema: &apiextensionsv1.CustomResourceValidation{}}
	for _, mark := range name[2:] {
		made.Storage = made.Storage || mark == '!'
		made.Served = made.Served && mark != '?'
	}
	schema := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.UnmarshalStrict(fmt.Appendf(nil, "{type: object, properties: {spec: {type: object, %s}}}", fields), schema); err != nil {
		t.Fatalf("%v in %s", err, document)
	}
	made.Schema.OpenAPIV3Schema = schema
	return made
}

// thing is an object in version v1 with this spec, in YAML flow style.
func thing(t *testing.T, name, spec string) *unstructured.Unstructured {
	t.Helper()
	made := &unstructured.Unstructured{}
	document := fmt.Sprintf("{apiVersion: example.com/v1, kind: Thing, metadata: {namespace: default, name: %s}, spec: {%s}}", name, spec)
	if err := yaml.Unmarshal([]byte(document), &made.Object); err != nil {
		t.Fatalf("%v in %s", err, document)
	}
	return whole(made)
}

// whole turns numbers that YAML parsed as floating-point into the integers that the API server would have sent.
func whole(object *unstructured.Unstructured) *unstructured.Unstructured {
	content, err := object.MarshalJSON()
	if err != nil {
		panic(err)
	}
	again := &unstructured.Unstructured{}
	if err := again.UnmarshalJSON(content); err != nil {
		panic(err)
	}
	return again
}

// ourDefinitions are the program's own definitions, by name.
func ourDefinitions(t testing.TB) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	paths, err := filepath.Glob("../../schema/*/*/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no definitions found (error %v)", err)
	}
	all := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, path := range paths {
		document, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		made := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(document, made); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all[made.Name] = made
	}
	return all
}
