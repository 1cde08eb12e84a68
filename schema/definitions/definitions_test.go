package definitions

import (
	"os"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/mysql-operator/mysql-operator/crds"
	"github.com/mysql-operator/mysql-operator/schema"
)

func loaded(t *testing.T) []crds.Definition {
	t.Helper()
	all, err := Load(schema.Kinds())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestEditionsAreRecorded fails when a definition changes, but not its schema-version. testdata/editions.txt lists the hash of each order
// of each definition. Never edit the line of a released order: a change adds a line and raises the annotation in the YAML.
func TestEditionsAreRecorded(t *testing.T) {
	t.Parallel()
	recorded, err := os.ReadFile("testdata/editions.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, definition := range loaded(t) {
		line := strings.Join([]string{definition.Name(), strconv.Itoa(definition.Version), definition.Hash}, " ")
		if !strings.Contains(string(recorded), line+"\n") {
			t.Errorf("the definition changed: if the order recorded in testdata/editions.txt was released, raise %s in its YAML; then record the line\n%s", Identity().VersionAnnotation(), line)
		}
	}
}

// TestYAMLIsTheSameDefinition: the operator keeps a definition that a user applied by hand, because it would apply the same.
func TestYAMLIsTheSameDefinition(t *testing.T) {
	t.Parallel()
	for _, definition := range loaded(t) {
		document, err := definition.YAML()
		if err != nil {
			t.Fatal(err)
		}
		object := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(document, object); err != nil {
			t.Fatal(err)
		}
		if got := crds.Decide(crds.Situation{Existing: object}, definition); got.Decision().Reason != crds.ReasonUnchanged {
			t.Errorf("%s applied by hand: %v", definition.Name(), got.Steps)
		}
	}
}
