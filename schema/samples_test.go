package schema

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestSamplesApply checks that every kind has a sample, and that the API server accepts every sample unchanged.
func TestSamplesApply(t *testing.T) {
	t.Parallel()
	shown := map[string]int{}
	files, err := filepath.Glob("../deploy/samples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("find samples: %d files, error %v", len(files), err)
	}
	for _, file := range files {
		for _, document := range readDocuments(t, file) {
			kind := kindOf(t, document)
			if kind == "Secret" {
				continue
			}
			shown[kind]++
			if _, err := newAPIServer(t, kind).create(document); err != nil {
				t.Errorf("%s is refused: %v", file, err)
			}
		}
	}
	for _, kind := range Kinds() {
		if shown[kind.Kind] == 0 {
			t.Errorf("deploy/samples has no %s", kind.Kind)
		}
	}
}

func readDocuments(t *testing.T, file string) []string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(content), "\n---\n")
}

func kindOf(t *testing.T, document string) string {
	t.Helper()
	object := unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object.GetKind()
}
