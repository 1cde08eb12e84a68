package crds

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

func TestParsedDefinitionsAreStamped(t *testing.T) {
	t.Parallel()
	definition := ours(t)
	object := definition.Object()
	if object.Labels[OwnerLabel] != us.Owner || object.Annotations[us.HashAnnotation()] != definition.Hash || us.orderOf(object) != definition.Version {
		t.Errorf("labels %v and annotations %v", object.Labels, object.Annotations)
	}
	if !us.isAsApplied(object) {
		t.Error("it counts as edited")
	}
}

// TestEveryVersionIsMarked: the columns that the API server prints must identify the schema it validates with.
func TestEveryVersionIsMarked(t *testing.T) {
	t.Parallel()
	document := strings.Replace(widgets(t), "      additionalPrinterColumns:\n", "      additionalPrinterColumns: []\n      selectableFields:\n", 1)
	document = strings.Replace(document, "        - {name: Size, type: integer, description: Its size., jsonPath: .spec.size}\n", "", 1)
	document = strings.Replace(document, "        - {name: Age, type: date, description: Its age., jsonPath: .metadata.creationTimestamp}\n", "        - {jsonPath: .spec.colour}\n", 1)
	for story, document := range map[string]string{"with columns": widgets(t), "without columns": document} {
		definition, err := us.Parse([]byte(document), "v1")
		if err != nil {
			t.Fatal(err)
		}
		columns := definition.Object().Spec.Versions[0].AdditionalPrinterColumns
		last := columns[len(columns)-1]
		if last.Name != "Age" || !strings.HasSuffix(last.Description, "[schema "+definition.Hash[:markLength]+"]") {
			t.Errorf("%s: the last column is %+v", story, last)
		}
	}
}

func TestParseRefusesWrongFiles(t *testing.T) {
	t.Parallel()
	for story, test := range map[string]struct{ from, to, says string }{
		"a misspelt key":          {"  scope: ", "  scoop: ", "scoop"},
		"no order":                {"schema-version: \"5\"", "schema-version: \"\"", "write a whole number"},
		"an order that is words":  {"schema-version: \"5\"", "schema-version: \"fifth\"", "write a whole number"},
		"nothing of that version": {"name: v1\n", "name: v2\n", "version v1 is used but not served"},
		"a version not served":    {"served: true", "served: false", "version v1 is used but not served"},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			_, err := us.Parse([]byte(strings.Replace(widgets(t), test.from, test.to, 1)), "v1")
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want it to say %q", err, test.says)
			}
		})
	}
}

func TestRulesNameEveryDefinitionAndNothingElse(t *testing.T) {
	t.Parallel()
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, ResourceNames: []string{"widgets.example.com"}, Verbs: []string{"get", "list", "watch", "create", "patch"}},
		{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions/status"}, ResourceNames: []string{"widgets.example.com"}, Verbs: []string{"patch"}},
	}
	if diff := cmp.Diff(want, Rules([]Definition{ours(t)})); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}
