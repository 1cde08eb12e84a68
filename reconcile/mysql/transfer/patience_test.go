package transfer

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestPatienceIsMeasuredByOneClock(t *testing.T) {
	t.Parallel()
	kept, start := NewStopwatch(), time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	one, other := types.NamespacedName{Name: "one"}, types.NamespacedName{Name: "other"}
	for _, look := range []struct {
		key  types.NamespacedName
		what string
		at   time.Duration
		want time.Duration
	}{{one, "a", 0, 0}, {one, "b", time.Hour, 0}, {other, "a", time.Hour, 0}, {one, "a", time.Hour, time.Hour}} {
		if got := kept.Waited(look.key, look.what, start.Add(look.at)); got != look.want {
			t.Errorf("%s of %s has lasted %s, want %s", look.what, look.key.Name, got, look.want)
		}
	}
	kept.End(one, "a")
	if got := kept.Waited(one, "a", start.Add(90*time.Minute)); got != 0 {
		t.Errorf("after its end it has lasted %s", got)
	}
	kept.Forget(one)
	if got := kept.Waited(one, "a", start.Add(2*time.Hour)); got != 0 {
		t.Errorf("after Forget it has lasted %s", got)
	}
	if got := kept.Waited(other, "a", start.Add(2*time.Hour)); got != time.Hour {
		t.Errorf("that of another object has lasted %s", got)
	}
}
