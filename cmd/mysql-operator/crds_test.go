package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/mysql-operator/mysql-operator/cmd/internal/cli"
	"github.com/mysql-operator/mysql-operator/crds"
	"github.com/mysql-operator/mysql-operator/schema"
)

type definition = apiextensionsv1.CustomResourceDefinition

// oneDefinition is a Kubernetes cluster with one definition.
type oneDefinition struct {
	crds.API
	there *definition
}

func (o oneDefinition) Get(context.Context, string) (*definition, error) {
	return o.there.DeepCopy(), nil
}

// objectsFound is the result of a check of objects.
type objectsFound crds.Objects

func (o objectsFound) Check(context.Context, *definition, *definition) (crds.Objects, error) {
	return crds.Objects(o), nil
}

// TestPlanTellsWhatChanges: the exit statuses are those of diff, and the output shows everything that will change or is refused.
func TestPlanTellsWhatChanges(t *testing.T) {
	t.Parallel()
	kinds, err := schema.Select([]string{"MySQLCluster"})
	if err != nil {
		t.Fatal(err)
	}
	defined, err := loadDefinitions(kinds)
	if err != nil {
		t.Fatal(err)
	}
	harm := objectsFound{Seen: 7, Harmed: 1, Findings: []crds.Finding{{Namespace: "shop", Name: "a", Lost: []string{"spec.mine"}}}}
	const more = `- spec.versions.v1.schema.openAPIV3Schema.properties.spec.properties.mine: {"type":"string"}`
	for story, test := range map[string]struct {
		edited  bool
		objects objectsFound
		status  int
		says    []string
	}{
		"nothing differs": {says: []string{"Keep", "Unchanged"}},
		"a field was added by hand": {edited: true, objects: objectsFound{Seen: 7}, status: exitChanges,
			says: []string{"Update", "Edited", "7 objects checked, 0 would be harmed", more}},
		"and an object uses it": {edited: true, objects: harm, status: exitRefused,
			says: []string{"Refuse", "WouldHarm", "7 objects checked, 1 would be harmed", "shop/a would lose spec.mine", more}},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			there := defined[0].Object()
			if test.edited {
				there.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["mine"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
			}
			installer := crds.Installer{API: oneDefinition{there: there}, Objects: test.objects, Log: logr.Discard()}
			out := &bytes.Buffer{}
			status, own := 0, (*cli.StatusError)(nil)
			if err := printPlan(t.Context(), cli.Process{Out: out}, installer, defined); errors.As(err, &own) {
				status = own.Status
			} else if err != nil {
				t.Fatal(err)
			}
			if status != test.status {
				t.Errorf("exit status %d, want %d", status, test.status)
			}
			for _, part := range test.says {
				if !strings.Contains(out.String(), part) {
					t.Errorf("it does not say %q:\n%s", part, out)
				}
			}
		})
	}
}

// TestWhatABootChangesIsLogged: the log has a line for each difference that an update makes, and none for a definition that is created or
// kept.
func TestWhatABootChangesIsLogged(t *testing.T) {
	t.Parallel()
	defined, err := loadDefinitions(schema.Kinds()[:1])
	if err != nil {
		t.Fatal(err)
	}
	target := defined[0].Object()
	former := target.DeepCopy()
	former.Spec.Scope = apiextensionsv1.ClusterScoped
	for story, test := range map[string]struct {
		existing, target *definition
		want             string
	}{
		"created": {nil, target, ""},
		"kept":    {target, nil, ""},
		"updated": {former, target, `"definition changed" "name"="` + target.Name + `" "change"="~ spec.scope: \"Cluster\" → \"Namespaced\""`},
	} {
		told := []string{}
		news := definitionReporter{log: funcr.New(func(_, line string) { told = append(told, line) }, funcr.Options{})}
		news.changed(crds.Result{Definition: defined[0], Existing: test.existing, Plan: crds.Plan{Target: test.target}})
		if got := strings.Join(told, "\n"); !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%s: logged %q, want %q", story, got, test.want)
		}
	}
}
