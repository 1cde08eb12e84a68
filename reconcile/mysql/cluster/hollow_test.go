package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// TestHollowTransactionsAreToldOnceAnHour: a monitoring account may flush every minute, indefinitely.
func TestHollowTransactionsAreToldOnceAnHour(t *testing.T) {
	t.Parallel()
	s, memory, began := healthy(t, 2), newMemory(), time.Unix(5000, 0)
	told := 0
	for minute := range 120 {
		if memory.tellsHollow(keyOf(s.cluster), s.cluster.UID, began.Add(time.Duration(minute)*time.Minute)) {
			told++
		}
	}
	if told != 2 {
		t.Errorf("in two hours there are %d events", told)
	}
	if !memory.tellsHollow(keyOf(s.cluster), "another", began) {
		t.Error("another cluster of the same name gets no event")
	}
	memory.forget(keyOf(s.cluster))
	if len(memory.hollow) > 0 {
		t.Error("a cluster that is gone is remembered")
	}
}

func TestTheHollowEventNamesMembersAndRemedy(t *testing.T) {
	t.Parallel()
	s := healthy(t, 3)
	own := "4e11fa47-71ca-11e1-9e33-c80aa9429562:1-2"
	s.member(2, true, func(status *replication.Status) { status.Hollow = gtids(t, own) })
	event := hollowEvent(s.seen.members, replication.Matching{Primary: "db-0", GTIDs: gtids(t, own)})
	for _, part := range []string{"db-2 wrote", "2 of them", "db-0 commits", "RELOAD", "FLUSH LOCAL"} {
		if !strings.Contains(event.Note, part) {
			t.Errorf("%q does not have %q", event.Note, part)
		}
	}
	if event.Reason != "HollowTransactionsMatched" || strings.Contains(event.Note, "db-1") || len(event.Note) > 1024 {
		t.Errorf("the event is %+v", event)
	}
}

// TestAMatchIsLookedAtSoon: after the operator has asked the primary, it does not wait ten seconds until it looks again.
func TestAMatchIsLookedAtSoon(t *testing.T) {
	t.Parallel()
	_, found := atRest(t)
	if got := found.prospect(found.status()).requeueAfter(); got != calmEvery {
		t.Fatalf("a cluster at rest is looked at after %s", got)
	}
	found.matched = true
	if got := found.prospect(found.status()).requeueAfter(); got != stepEvery {
		t.Errorf("it is looked at again after %s", got)
	}
}
