package reconcile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func same(t *testing.T, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected (-want +got):\n%s", diff)
	}
}
