package integration

import (
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/schema"
)

// TestNewObjectsAreInProgress: no operator runs, and a new object of each kind reports at once that no controller has looked at it.
// kstatus ("The Kubernetes status library", sigs.k8s.io/cli-utils) calls an object InProgress whose status.observedGeneration is not its
// metadata.generation. Without an observedGeneration, and without conditions, it calls the object Current.
func TestNewObjectsAreInProgress(t *testing.T) {
	t.Parallel()
	p := newPlace(t, pool.Shared(t), schema.Kinds()...)
	for _, kind := range schema.Kinds() {
		t.Run(kind.Kind, func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile("../../deploy/samples/" + strings.ToLower(kind.Kind) + ".yaml")
			if err != nil {
				t.Fatal(err)
			}
			api := p.Dynamic.Resource(kind.GVR()).Namespace(p.namespace)
			sample := sampleOf(t, kind.Kind, string(content))
			sample.SetNamespace(p.namespace)
			sample.SetName("new-one")
			made, err := api.Create(t.Context(), sample, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			read, err := api.Get(t.Context(), made.GetName(), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for at, found := range map[string]*unstructured.Unstructured{"the answer to its creation": made, "a read": read} {
				same(t, found.Object["status"], any(map[string]any{"observedGeneration": int64(-1)}))
				if found.GetGeneration() < 1 {
					t.Errorf("%s: its generation is %d", at, found.GetGeneration())
				}
			}
		})
	}
}

// sampleOf is the object of a kind in a file that may have others.
func sampleOf(t *testing.T, kind, documents string) *unstructured.Unstructured {
	t.Helper()
	for document := range strings.SplitSeq(documents, "\n---\n") {
		if strings.Contains(document, "kind: "+kind+"\n") {
			return object(t, document)
		}
	}
	t.Fatalf("there is no sample of %s", kind)
	return nil
}
