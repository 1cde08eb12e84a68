package agent

import (
	"testing"
	"time"
)

// TestAHeldStartEndsWhenItIsKnownWhoLeads, or after some seconds.
func TestAHeldStartEndsWhenItIsKnownWhoLeads(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		held heldStart
		want holdStep
	}{
		"it has just crashed":                       {heldStart{commitsWaited: true}, holdWaits},
		"its commits waited for no replica":         {heldStart{}, holdStarts},
		"the operator says that it stays":           {heldStart{commitsWaited: true, isConfirmed: true}, holdStarts},
		"the operator says nothing":                 {heldStart{commitsWaited: true, lasts: mostHeld}, holdStarts},
		"another member takes over":                 {heldStart{commitsWaited: true, isReplaced: true, lasts: mostHeld}, holdWaits},
		"no other member is chosen for a long time": {heldStart{commitsWaited: true, isReplaced: true, lasts: cutWithin}, holdStarts},
		"the other member is chosen":                {heldStart{commitsWaited: true, isReplaced: true, isNamed: true, lasts: time.Second}, holdCuts},
		"that member does not lead for a long time": {heldStart{commitsWaited: true, isReplaced: true, isNamed: true, lasts: cutWithin}, holdStarts},
	} {
		if got := test.held.next(); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}
