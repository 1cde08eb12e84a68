package transfer

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// TestWhatIsSparedIsAsItWas: the patch removes the mark, and the finalizer that came with it. Otherwise a user who deletes the instance
// would delete its data, although its policy is Retain.
func TestWhatIsSparedIsAsItWas(t *testing.T) {
	t.Parallel()
	const foreign = "other.example.com/finalizer"
	for name, test := range map[string]struct {
		own, schedules v1.DeletionPolicy
		want           string
	}{
		"the data stays by default":                                 {want: foreign},
		"its own policy keeps the data":                             {own: v1.RetainData, schedules: v1.DeleteData, want: foreign},
		"the schedule's keeps it":                                   {schedules: v1.RetainData, want: foreign},
		"its own policy deletes the data, with the mark or without": {own: v1.DeleteData, want: foreign + " " + FinalizerData},
		"the schedule's policy does, and the instance has none":     {schedules: v1.DeleteData, want: foreign + " " + FinalizerData},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
			if test.own != "" {
				object.Object["spec"] = map[string]any{"deletionPolicy": string(test.own)}
			}
			object.SetFinalizers([]string{foreign, FinalizerData})
			changes := UnexpirePatch(object, test.schedules)
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

// finalizersAfter returns an object's finalizers after a merge patch.
func finalizersAfter(object *unstructured.Unstructured, changes map[string]any) []string {
	metadata, _ := changes["metadata"].(map[string]any)
	if given, ok := metadata["finalizers"].([]string); ok {
		return slices.Clone(given)
	}
	return object.GetFinalizers()
}

// TestAMarkTellsWhoMadeIt: a mark has the UID of its schedule, and a mark of an earlier build counts, too.
func TestAMarkTellsWhoMadeIt(t *testing.T) {
	t.Parallel()
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetFinalizers([]string{"other.example.com/finalizer"})
	changes := ExpirePatch(object, "uid-nightly")
	value, _, _ := unstructured.NestedString(changes, "metadata", "annotations", AnnotationExpired)
	if got := strings.Join(finalizersAfter(object, changes), " "); got != "other.example.com/finalizer "+FinalizerData {
		t.Errorf("the finalizers are %q", got)
	}
	for name, test := range map[string]struct {
		annotations map[string]string
		by          types.UID
		expired     bool
	}{
		"it has no mark":             {annotations: map[string]string{"note": "mine"}},
		"a schedule's mark":          {annotations: map[string]string{AnnotationExpired: value}, by: "uid-nightly", expired: true},
		"a mark of an earlier build": {annotations: map[string]string{AnnotationExpired: "true"}, expired: true},
	} {
		if by, expired := ExpiredBy(test.annotations); by != test.by || expired != test.expired {
			t.Errorf("%s: marked %t by %q, want %t by %q", name, expired, by, test.expired, test.by)
		}
	}
}
