package tdset

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	v1 "github.com/mysql-operator/mysql-operator/schema/schedule/v1"
)

// TestChildrenAreAsWritten compares the children of the founding document's TDSet with the documents in testdata.
func TestChildrenAreAsWritten(t *testing.T) {
	t.Parallel()
	seen := at(t, noon, nil)
	seen.set.Spec.Service = &v1.Service{}
	for file, made := range map[string]any{
		"testdata/deployment.yaml": deploymentFor(seen.set, decide(seen)),
		"testdata/service.yaml":    serviceFor(seen.set),
	} {
		content, err := json.Marshal(made)
		if err != nil {
			t.Fatal(err)
		}
		got, err := yaml.JSONToYAML(content)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

func TestDeploymentSaysNothingOfReplicasThatAreSomebodyElses(t *testing.T) {
	t.Parallel()
	seen := at(t, noon, scaled(8, markNoon, "kubectl"))
	if made := deploymentFor(seen.set, decide(seen)); made.Spec.Replicas != nil {
		t.Errorf("it sets %d", *made.Spec.Replicas)
	}
}

// TestReplicasAreSetOnWhatWasSeen: a decision about replicas holds only for the version of the Deployment that the pass saw.
func TestReplicasAreSetOnWhatWasSeen(t *testing.T) {
	t.Parallel()
	ours, theirs := running(5, markNoon), scaled(8, markNoon, "kubectl")
	ours.version, theirs.version = "17", "17"
	for story, test := range map[string]struct {
		found *deployment
		want  string
	}{
		"a Deployment that the operator scales": {ours, "17"},
		"one that another client has scaled":    {theirs, ""},
		"none":                                  {nil, ""},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			seen, got := at(t, noon, test.found), ""
			if made := deploymentFor(seen.set, decide(seen)); made.ResourceVersion != nil {
				got = *made.ResourceVersion
			}
			same(t, got, test.want)
		})
	}
}
