package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/mysql-operator/mysql-operator/crds"
	"github.com/mysql-operator/mysql-operator/schema"
	"github.com/mysql-operator/mysql-operator/schema/definitions"
)

func milliseconds(values ...int) []time.Duration {
	durations := []time.Duration{}
	for _, value := range values {
		durations = append(durations, time.Duration(value)*time.Millisecond)
	}
	return durations
}

func TestRatio(t *testing.T) {
	t.Parallel()
	for name, story := range map[string]struct {
		with, without []time.Duration
		want          float64
		fails         bool
	}{
		"objects make no difference":             {milliseconds(50, 60, 40), milliseconds(40, 50, 60), 1, false},
		"each object costs":                      {milliseconds(400, 500, 600), milliseconds(40, 50, 60), 10, false},
		"one boot that something held up":        {milliseconds(50, 50, 900), milliseconds(50, 50, 50), 1, false},
		"no boots without objects":               {milliseconds(50), nil, 0, true},
		"no boots with objects":                  {nil, milliseconds(50), 0, true},
		"boots that took no time were not boots": {milliseconds(50), milliseconds(0), 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ratio(story.with, story.without)
			if got != story.want || (err != nil) != story.fails {
				t.Errorf("got %v, error %v", got, err)
			}
		})
	}
}

func TestMarked(t *testing.T) {
	t.Parallel()
	for objects, want := range map[int]int{1: 1, 100: 1, 101: 2, 10_000: 100} {
		counted, b := 0, measured(t)
		for number := range objects {
			if _, sets := b.object(number).Object["spec"].(map[string]any)["resources"]; sets {
				counted++
			}
		}
		if got := marked(objects); got != want || counted != want {
			t.Errorf("of %d objects: got %d, %d do, want %d", objects, got, counted, want)
		}
	}
}

// TestReleases goes the way of the definition through the benchmark: what the operator brings, v2 added and stored, v1 stored again.
func TestReleases(t *testing.T) {
	t.Parallel()
	shipped := document(t)
	first := parsed(t, shipped)
	second, third := parsed(t, released(t, shipped, first.Version+1, "v2")), parsed(t, released(t, shipped, first.Version+2, "v1"))
	if diff := cmp.Diff([]string{"v1 stored"}, versions(first)); diff != "" {
		t.Errorf("as it is shipped:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"v1", "v2 stored"}, versions(second)); diff != "" {
		t.Errorf("of the next release:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"v1 stored", "v2"}, versions(third)); diff != "" {
		t.Errorf("of the one after:\n%s", diff)
	}
	for _, step := range []struct{ has, wants crds.Definition }{{first, second}, {second, third}} {
		existing := step.has.Object()
		decided := crds.Decide(crds.Situation{Existing: existing}, step.wants).Decision()
		if decided.Action != crds.Update || decided.Reason != crds.ReasonOlder {
			t.Errorf("from order %d to %d: %s %s: %s", step.has.Version, step.wants.Version, decided.Action, decided.Reason, decided.Message)
		}
	}
}

func TestReleaseRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	shipped := document(t)
	if _, err := release(shipped, 2, "v3"); err == nil || !strings.Contains(err.Error(), "no such version") {
		t.Errorf("stored in a version that is not there: %v", err)
	}
	if _, err := release(released(t, shipped, 2, "v2"), 3, "v2"); err == nil || !strings.Contains(err.Error(), "2 versions") {
		t.Errorf("with two versions already: %v", err)
	}
	if _, err := release([]byte("kind: ["), 2, "v2"); err == nil {
		t.Error("what is no YAML was accepted")
	}
}

func TestWithout(t *testing.T) {
	t.Parallel()
	has := parsed(t, document(t)).Object()
	lacks, err := without(has, "resources")
	if err != nil {
		t.Fatal(err)
	}
	changes, err := crds.Diff(has, lacks)
	const removed = "- spec.versions.v1.schema.openAPIV3Schema.properties.spec.properties.resources: "
	if err != nil || len(changes) != 1 || !strings.HasPrefix(changes[0], removed) {
		t.Errorf("changes: %v, error %v", changes, err)
	}
	if _, err := without(has, "sources"); err == nil || !strings.Contains(err.Error(), "spec.sources") {
		t.Errorf("a field that is not there: %v", err)
	}
}

func measured(t *testing.T) bench {
	t.Helper()
	kinds, err := schema.Select([]string{"MySQLCluster"})
	if err != nil {
		t.Fatal(err)
	}
	return bench{kind: kinds[0]}
}

func document(t *testing.T) []byte {
	t.Helper()
	shipped, err := schema.Definition(measured(t).kind)
	if err != nil {
		t.Fatal(err)
	}
	return shipped
}

func released(t *testing.T, shipped []byte, order int, stores string) []byte {
	t.Helper()
	later, err := release(shipped, order, stores)
	if err != nil {
		t.Fatal(err)
	}
	return later
}

func parsed(t *testing.T, document []byte) crds.Definition {
	t.Helper()
	definition, err := definitions.Identity().Parse(document, "v1")
	if err != nil {
		t.Fatal(err)
	}
	return definition
}

func versions(definition crds.Definition) []string {
	names := []string{}
	for _, version := range definition.Object().Spec.Versions {
		names = append(names, described(version))
	}
	return names
}

func described(version apiextensionsv1.CustomResourceDefinitionVersion) string {
	text := version.Name
	if version.Storage {
		text += " stored"
	}
	if !version.Served {
		text += " not served"
	}
	return text
}
