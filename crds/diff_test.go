package crds

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDiffReadsLikeADiff(t *testing.T) {
	t.Parallel()
	there, want := ours(t).Object(), ours(t).Object()
	edited(there)
	withoutField(there)
	order("4")(there)
	there.Labels["team"], there.Annotations["note"] = "theirs", "theirs"
	there.Spec.Versions[0].AdditionalPrinterColumns = there.Spec.Versions[0].AdditionalPrinterColumns[:1]
	wantMark := want.Spec.Versions[0].AdditionalPrinterColumns[1].Description
	got, err := Diff(there, want)
	if err != nil {
		t.Fatal(err)
	}
	diff := cmp.Diff([]string{
		`~ annotations.example.com/schema-version: "4" → "5"`,
		`~ spec.names.shortNames: ["edited"] → ["wd"]`,
		`+ spec.versions.v1.additionalPrinterColumns.Age: {"description":"` + wantMark[:strings.Index(wantMark, "schema ")+7],
		`+ spec.versions.v1.schema.openAPIV3Schema.properties.status.properties.epoch: {"type":"integer"}`,
	}, got, cmp.Comparer(func(a, b string) bool { return a == b || (strings.HasPrefix(b, a) || strings.HasPrefix(a, b)) }))
	if diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if same, err := Diff(want, want); err != nil || len(same) != 0 {
		t.Errorf("between equals: %v, %v", same, err)
	}
	if all, err := Diff(nil, want); err != nil || len(all) != 3 {
		t.Errorf("against nothing: %v, %v", all, err)
	}
}
