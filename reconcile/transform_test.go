package reconcile

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/schema"
)

func TestTrimMetadataBoundsWhatOthersWrite(t *testing.T) {
	t.Parallel()
	annotations := map[string]string{"evil.example.com/x": strings.Repeat("x", 250_000), schema.MySQLGroup + "/expired": strings.Repeat("y", 250_000)}
	many := map[string]string{"app.kubernetes.io/instance": "db", schema.MySQLGroup + "/backup-schedule": "nightly"}
	for number := range 1000 {
		annotations[fmt.Sprintf("%s/%d", schema.MySQLGroup, number)] = "z"
		many[fmt.Sprint("evil.example.com/", number)] = "z"
	}
	forged := parse(t, set)
	forged.SetAnnotations(annotations)
	for story, object := range map[string]*unstructured.Unstructured{
		"an object": child("a", "1", nil),
		"one with entries of the operator's field manager": applyAs(t, forged, nil),
	} {
		object.SetAnnotations(annotations)
		object.SetLabels(many)
		trimmed, err := TrimMetadata(object)
		if err != nil {
			t.Fatal(err)
		}
		kept, _ := trimmed.(*unstructured.Unstructured)
		bytes := 0
		for name, value := range kept.GetAnnotations() {
			bytes += len(name) + len(value)
		}
		if bytes > 20_000 || len(kept.GetAnnotations()) > maxAnnotations {
			t.Errorf("%s: %d annotations of %d bytes are kept", story, len(kept.GetAnnotations()), bytes)
		}
		same(t, kept.GetLabels(), map[string]string{"app.kubernetes.io/instance": "db", schema.MySQLGroup + "/backup-schedule": "nightly"})
	}
}

// TestWhatTheOperatorAppliedIsKeptFirst: others have added the maximum of annotations with names like the operator's.
func TestWhatTheOperatorAppliedIsKeptFirst(t *testing.T) {
	t.Parallel()
	desired := parse(t, set)
	desired.SetAnnotations(map[string]string{schema.AppliedAnnotation: "digest"})
	live := applyAs(t, desired, nil)
	annotations := live.GetAnnotations()
	for number := range maxAnnotations {
		annotations[fmt.Sprintf("%s/a%d", schema.MySQLGroup, number)] = "x"
	}
	live.SetAnnotations(annotations)
	if _, err := TrimMetadata(live); err != nil {
		t.Fatal(err)
	}
	same(t, live.GetAnnotations()[schema.AppliedAnnotation], "digest")
	same(t, len(live.GetAnnotations()), maxAnnotations)
}
