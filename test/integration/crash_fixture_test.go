package integration

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/mysql-operator/mysql-operator/test/sample"
)

// crash is the death of an operator at one of its writes, counted from 1: before the API server gets it, or once it is sent.
type crash struct {
	write int
	sent  bool
}

func (c crash) String() string { return fmt.Sprintf("write %d, sent %t", c.write, c.sent) }

// crashesAt are all deaths at these writes.
func crashesAt(writes ...int) []crash {
	var all []crash
	for _, write := range writes {
		all = append(all, crash{write, false}, crash{write, true})
	}
	return all
}

// crashesUpTo are all deaths at the first so many writes.
func crashesUpTo(writes int) []crash {
	var all []crash
	for write := range writes {
		all = append(all, crashesAt(write+1)...)
	}
	return all
}

// survivesCrashes runs a story for a sample of crashes, several at once. The story reports whether the operator died: it may need fewer
// writes than the one whose writes were counted.
func survivesCrashes(t *testing.T, crashes []crash, story func(*testing.T, crash) (died bool)) {
	t.Helper()
	sampled, stories, deaths := sample.New(t), map[string]func(*testing.T){}, &atomic.Int32{}
	for number, planned := range crashes {
		// Both kinds of death are in each sample.
		if sampled.Takes(number/2 + 2*(number%2)) {
			stories[planned.String()] = func(t *testing.T) {
				if story(t, planned) {
					deaths.Add(1)
				}
			}
		}
	}
	sideBySide(t, 4, stories)
	if died := int(deaths.Load()); died == 0 || died < len(stories)*3/4 {
		t.Errorf("only %d of %d operators died: this proves little", died, len(stories))
	}
	t.Logf("%d of %d operators died; there are %d crashes in all", deaths.Load(), len(stories), len(crashes))
}
