package agent

import (
	"testing"
	"time"
)

// TestPreparedTransactionsThatAreLeft: a coordinator that does not commit within moments has left its transaction. An agent that has just
// started cannot know that.
func TestPreparedTransactionsThatAreLeft(t *testing.T) {
	t.Parallel()
	var s survey
	began := time.Unix(1_800_000_000, 0)
	for _, moment := range []struct {
		minute   int
		prepared []string
		want     int // -1 means unknown
	}{
		{0, nil, -1},
		{1, []string{"a"}, -1},
		{2, []string{"a", "b"}, -1},
		{6, []string{"a", "b"}, 1},
		{7, []string{"a", "b"}, 2},
		{8, []string{"b"}, 1},
		{9, nil, 0},
		// An identifier that is used again counts as a new transaction.
		{10, []string{"b"}, 0},
	} {
		got := -1
		if left := s.left(began.Add(time.Duration(moment.minute)*time.Minute), moment.prepared); left != nil {
			got = *left
		}
		if got != moment.want {
			t.Errorf("minute %d: %d, want %d", moment.minute, got, moment.want)
		}
	}
}
