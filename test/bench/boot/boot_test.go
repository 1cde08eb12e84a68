package main

import (
	"testing"
	"time"
)

func TestAllServed(t *testing.T) {
	t.Parallel()
	// Where the definitions were there before, a client is served from the beginning; the operator's word is what is measured.
	unchanged := boot{served: 5 * time.Millisecond, said: 90 * time.Millisecond, ready: 200 * time.Millisecond}
	// Where it had to make them, a client may see the last one a moment after the operator does.
	fresh := boot{served: 700 * time.Millisecond, said: 690 * time.Millisecond, ready: 900 * time.Millisecond}
	if got := unchanged.allServed(); got != 90*time.Millisecond {
		t.Errorf("unchanged: got %s", got)
	}
	if got := fresh.allServed(); got != 700*time.Millisecond {
		t.Errorf("fresh: got %s", got)
	}
}
