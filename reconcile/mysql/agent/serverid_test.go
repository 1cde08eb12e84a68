package agent

import "testing"

func TestServerIDsDifferAndStay(t *testing.T) {
	t.Parallel()
	choose := func(layout Layout, ordinal int) uint32 {
		t.Helper()
		id, err := keepServerID(layout, ordinal)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	seen := map[uint32]bool{}
	for range 20 {
		for ordinal := range 9 {
			layout := newLayout(t)
			id := choose(layout, ordinal)
			if id == 0 || seen[id] {
				t.Errorf("member %d of another cluster also has %d", ordinal, id)
			}
			seen[id] = true
			if again := choose(layout, ordinal); again != id {
				t.Errorf("member %d has %d after a restart, and had %d", ordinal, again, id)
			}
			if other := choose(layout, ordinal+1); other == id {
				t.Errorf("a volume that became another member's still has %d", other)
			}
		}
	}
}
