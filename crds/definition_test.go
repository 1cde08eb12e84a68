package crds

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/mysql-operator/mysql-operator/schema"
)

func TestLoadedDefinitionsAreStamped(t *testing.T) {
	t.Parallel()
	definitions, err := Load(schema.Kinds())
	if err != nil {
		t.Fatal(err)
	}
	for _, definition := range definitions {
		object := definition.Object()
		if object.Labels[OwnerLabel] != Owner || object.Annotations[HashAnnotation] != definition.Hash || orderOf(object) != definition.Version {
			t.Errorf("%s carries labels %v and annotations %v", definition.Name(), object.Labels, object.Annotations)
		}
	}
}

// TestEditionsAreRecorded fails when a definition changes while its schema-version does not: testdata/editions.txt lists, for each order of
// each definition, the hash it had. Lines of released orders are never edited; a change adds a line and raises the annotation in the YAML.
func TestEditionsAreRecorded(t *testing.T) {
	t.Parallel()
	recorded, err := os.ReadFile("testdata/editions.txt")
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := Load(schema.Kinds())
	if err != nil {
		t.Fatal(err)
	}
	for _, definition := range definitions {
		line := strings.Join([]string{definition.Name(), strconv.Itoa(definition.Version), definition.Hash}, " ")
		if !strings.Contains(string(recorded), line+"\n") {
			t.Errorf("the definition changed: if the order recorded in testdata/editions.txt was released, raise %s in its YAML; then record the line\n%s", VersionAnnotation, line)
		}
	}
}

func TestParseRefusesWrongFiles(t *testing.T) {
	t.Parallel()
	kind := schema.Kinds()[0]
	document, err := schema.Definition(kind)
	if err != nil {
		t.Fatal(err)
	}
	for story, test := range map[string]struct{ from, to, says string }{
		"a misspelt key":         {"  scope: ", "  scoop: ", "scoop"},
		"another name":           {"  name: mysqlclusters.", "  name: mysqlcluster.", "the table of kinds says"},
		"no order":               {"schema-version: \"1\"", "schema-version: \"\"", "write a whole number"},
		"an order that is words": {"schema-version: \"1\"", "schema-version: \"first\"", "write a whole number"},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			_, err := parse(kind, []byte(strings.Replace(string(document), test.from, test.to, 1)))
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want it to say %q", err, test.says)
			}
		})
	}
}

// TestYAMLIsTheSameDefinition makes sure that what people apply by hand is what the operator would apply: it decides to keep it.
func TestYAMLIsTheSameDefinition(t *testing.T) {
	t.Parallel()
	definitions, err := Load(schema.Kinds())
	if err != nil {
		t.Fatal(err)
	}
	for _, definition := range definitions {
		document, err := definition.YAML()
		if err != nil {
			t.Fatal(err)
		}
		again, err := parse(definition.Kind, document)
		if err != nil {
			t.Fatal(err)
		}
		if got := Decide(again.object, definition); got.Action != Keep || got.Reason != ReasonUnchanged {
			t.Errorf("%s applied by hand: %s (%s)", definition.Name(), got.Action, got.Message)
		}
	}
}

func TestRulesNameEveryDefinitionAndNothingElse(t *testing.T) {
	t.Parallel()
	definitions, err := Load(schema.Kinds())
	if err != nil {
		t.Fatal(err)
	}
	want := []rbacv1.PolicyRule{{
		APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"},
		ResourceNames: []string{"mysqlclusters.cr.mysqloperator.grtl.github.com", "configmonitors.magalix.com"}, Verbs: []string{"get", "create", "patch"},
	}}
	if diff := cmp.Diff(want, Rules(definitions)); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}
