package agent

import (
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// TestAHeldStartEndsWhenItIsKnownWhoLeads, or after some time.
func TestAHeldStartEndsWhenItIsKnownWhoLeads(t *testing.T) {
	t.Parallel()
	_, end := heldStart{}.limits()
	for name, test := range map[string]struct {
		held heldStart
		want holdStep
	}{
		"it has just crashed":                                    {heldStart{commitsWaited: true}, holdWaits},
		"its commits waited for no replica":                      {heldStart{}, holdStarts},
		"the operator says that it stays":                        {heldStart{commitsWaited: true, isConfirmed: true}, holdStarts},
		"another operator begins to lead":                        {heldStart{commitsWaited: true, lasts: replication.MostHeld}, holdWaits},
		"the operator says nothing":                              {heldStart{commitsWaited: true, lasts: newsWithin}, holdStarts},
		"another member takes over":                              {heldStart{commitsWaited: true, isReplaced: true, lasts: newsWithin}, holdWaits},
		"the choice takes long on a busy machine":                {heldStart{commitsWaited: true, isReplaced: true, lasts: 11 * time.Second, undecidedFor: 10 * time.Second}, holdWaits},
		"no other member is chosen for a long time":              {heldStart{commitsWaited: true, isReplaced: true, lasts: end}, holdStarts},
		"the other member is chosen":                             {heldStart{commitsWaited: true, isReplaced: true, isNamed: true, lasts: time.Second}, holdCuts},
		"that member does not lead for a long time":              {heldStart{commitsWaited: true, isReplaced: true, isNamed: true, lasts: end}, holdStarts},
		"its Pod is new, and the operator says nothing":          {heldStart{isFirst: true, commitsWaited: true, lasts: 10 * time.Second}, holdWaits},
		"its Pod is new, and the operator still says nothing":    {heldStart{isFirst: true, commitsWaited: true, lasts: firstNewsWithin}, holdStarts},
		"its network is cut":                                     {heldStart{hasLostLease: true, commitsWaited: true, lasts: time.Minute}, holdWaits},
		"its network is back, and the operator says it stays":    {heldStart{hasLostLease: true, commitsWaited: true, lasts: time.Minute, isConfirmed: true}, holdStarts},
		"its network is back, and another member has taken over": {heldStart{hasLostLease: true, commitsWaited: true, lasts: time.Minute, isReplaced: true, isNamed: true}, holdCuts},
		"its network is back, and the choice may depend on it":   {heldStart{hasLostLease: true, commitsWaited: true, isReplaced: true, undecidedFor: choiceWithin}, holdStarts},
		"its Pod is new, and the choice may depend on it":        {heldStart{isFirst: true, commitsWaited: true, isReplaced: true, undecidedFor: choiceWithin}, holdStarts},
		"its network is cut for very long":                       {heldStart{hasLostLease: true, commitsWaited: true, lasts: time.Hour}, holdStarts},
	} {
		if got := test.held.next(); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}
