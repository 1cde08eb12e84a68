package transfer

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// TestWhatIsSparedIsAsItWas: with the mark goes the finalizer that came with it. Otherwise the data would go when somebody deletes the
// instance by hand, whose data stays.
func TestWhatIsSparedIsAsItWas(t *testing.T) {
	t.Parallel()
	const foreign = "somebody.example.com/else"
	for name, test := range map[string]struct {
		own, schedules v1.DeletionPolicy
		want           string
	}{
		"the data stays by default":                           {want: foreign},
		"its own policy keeps the data":                       {own: v1.RetainData, schedules: v1.DeleteData, want: foreign},
		"the schedule's keeps it":                             {schedules: v1.RetainData, want: foreign},
		"its own lets the data go, with the mark or not":      {own: v1.DeleteData, want: foreign + " " + FinalizerData},
		"the schedule's does, and it says nothing for itself": {schedules: v1.DeleteData, want: foreign + " " + FinalizerData},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
			if test.own != "" {
				object.Object["spec"] = map[string]any{"deletionPolicy": string(test.own)}
			}
			object.SetFinalizers([]string{foreign, FinalizerData})
			changes := Sparing(object, test.schedules)
			annotations, _, _ := unstructured.NestedMap(changes, "metadata", "annotations")
			if value, there := annotations[AnnotationExpired]; !there || value != nil {
				t.Errorf("the mark stays: %v", changes)
			}
			if got := strings.Join(finalizersAfter(object, changes), " "); got != test.want {
				t.Errorf("its finalizers are %q, want %q", got, test.want)
			}
		})
	}
}

// finalizersAfter is what an object has when a merge patch has changed it.
func finalizersAfter(object *unstructured.Unstructured, changes map[string]any) []string {
	metadata, _ := changes["metadata"].(map[string]any)
	if given, ok := metadata["finalizers"].([]string); ok {
		return slices.Clone(given)
	}
	return object.GetFinalizers()
}

// TestAMarkTellsWhoMadeIt: what expires says for which schedule, and earlier builds' marks are marks as well.
func TestAMarkTellsWhoMadeIt(t *testing.T) {
	t.Parallel()
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetFinalizers([]string{"somebody.example.com/else"})
	changes := Expiring(object, "uid-nightly")
	value, _, _ := unstructured.NestedString(changes, "metadata", "annotations", AnnotationExpired)
	if got := strings.Join(finalizersAfter(object, changes), " "); got != "somebody.example.com/else "+FinalizerData {
		t.Errorf("the finalizers are %q", got)
	}
	for name, test := range map[string]struct {
		annotations map[string]string
		by          types.UID
		expired     bool
	}{
		"nobody has marked it":     {annotations: map[string]string{"note": "mine"}},
		"a schedule has":           {annotations: map[string]string{AnnotationExpired: value}, by: "uid-nightly", expired: true},
		"that of an earlier build": {annotations: map[string]string{AnnotationExpired: "true"}, expired: true},
	} {
		if by, expired := ExpiredBy(test.annotations); by != test.by || expired != test.expired {
			t.Errorf("%s: marked %t by %q, want %t by %q", name, expired, by, test.expired, test.by)
		}
	}
}
