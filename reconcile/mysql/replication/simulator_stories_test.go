package replication

import (
	"slices"
	"testing"
	"time"
)

// These are failures that wedged other operators, or lost commits there, lived again with the decisions of today. The simulator checks the
// promises after every step.

// growing is a cluster of one member, of which the user wants three now. Clients write.
func growing(t *testing.T, policy Durability) trace {
	t.Helper()
	w := explored{1, policy, 1}.among(t, 3)
	w.mayWrite, w.isUnaided, w.replicas = maxTransactions, true, 3
	return trace{world: w, t: t, p: w.named(w.record.Primary)}
}

// isLedWithout reports whether a member leads, and none of these.
func (x trace) isLedWithout(former ...*simulated) bool {
	now := x.named(x.record.Primary)
	return now != nil && !slices.Contains(former, now) && x.leads(now)
}

// TestAClusterGrowsWhileClientsWrite: the new members copy the data meanwhile. No commit waits for a replica that is not there yet.
func TestAClusterGrowsWhileClientsWrite(t *testing.T) {
	t.Parallel()
	const soon = 3 // rounds
	x := growing(t, Durability{Continue: true, Grace: 10 * time.Second})
	for count := 0; !x.strong(); count++ {
		n := len(x.ledger)
		x.rounds(soon)
		if !x.acked.has(n) {
			t.Fatalf("after %d writes, one is not acknowledged; the record is %+v\n%s", count, x.record, x.history())
		}
		if count > 60 {
			t.Fatalf("the cluster does not grow: %s\n%s", x.weakness(), x.history())
		}
	}
}

// TestAClusterThatBlocksGrows: a user has asked that commits wait for replicas, also for the first one. The copy waits for no commit.
func TestAClusterThatBlocksGrows(t *testing.T) {
	t.Parallel()
	x := growing(t, Durability{Least: mostMembers})
	n := len(x.ledger)
	x.until("a commit waits", func() bool { return len(x.p.sql.waiting) > 0 })
	x.until("all members are in sync", func() bool { return len(x.record.InSync) == 3 && x.record.RequiredAcks == 1 })
	x.until("the commit returns", func() bool { return x.acked.has(n) })
	x.ends()
}

// TestASecondTakeoverFollowsTheFirst: the new primary fails as soon as it leads, before the last member has received anything from it.
func TestASecondTakeoverFollowsTheFirst(t *testing.T) {
	t.Parallel()
	x := newTrace(t, 3)
	x.isUnaided = true
	x.isBrokenWith(x.p)
	x.until("another member leads", func() bool { return x.isLedWithout(x.p) })
	first := x.named(x.record.Primary)
	x.isBrokenWith(first)
	x.until("the last one leads", func() bool { return x.isLedWithout(first, x.p) })
	x.p.isBroken, first.isBroken = false, false
	x.acknowledgesOne()
	x.ends()
}

// TestTheOperatorDiesDuringATakeover, after one of many steps. The next one begins, at times with an earlier record. It completes the
// takeover, and no user has to help.
func TestTheOperatorDiesDuringATakeover(t *testing.T) {
	t.Parallel()
	const most, stride = 1000, 5
	for dies, isOver := 1, false; !isOver; dies += stride {
		x := newTrace(t, 3)
		x.isUnaided = true
		x.isBrokenWith(x.p)
		step := 0
		x.until("another member leads", func() bool {
			step++
			if step == dies {
				x.operator, x.silences = pass{stale: dies%3 == 0}, silences{}
			}
			if x.note != nil && x.note.Blocked {
				t.Fatalf("the operator that begins after step %d needs a user: %+v\n%s", dies, x.note, x.history())
			}
			return x.isLedWithout(x.p)
		})
		if isOver = step < dies; dies > most {
			t.Fatalf("a takeover takes more than %d steps", most)
		}
	}
}

// TestAReplicaThatIsDeletedByForceIsLockedOut: the user wants fewer members, and deletes the Pod of one by force. Its mysqld runs on, and
// follows the primary. It has left the record only when the primary refuses it, so no commit rests on it alone.
func TestAReplicaThatIsDeletedByForceIsLockedOut(t *testing.T) {
	t.Parallel()
	x := newTrace(t, 3)
	last := x.members[2]
	x.mayWrite = maxTransactions
	x.acknowledgesOne()
	x.replicas, x.mayWrite = 2, len(x.ledger)
	x.until("the StatefulSet shrinks, and the primary does not know it", func() bool {
		return x.scale == 2 && x.p.agent.status.ObservedUnder == x.record.Version()
	})
	if !last.pod || !last.sql.ackActive || last == x.p {
		t.Fatalf("%s does not acknowledge", last.name)
	}
	last.pod, last.agent = false, sidecar{}
	x.until("it has left the record", func() bool { return !x.record.Acknowledges(last.name) })
	if !last.sql.up || last.sql.connected || last.sql.ackActive {
		t.Errorf("its mysqld runs: %t; it acknowledges: %t", last.sql.up, last.sql.ackActive)
	}
	x.mayWrite = maxTransactions
	x.acknowledgesOne()
	x.isBrokenWith(x.p)
	x.until("the other replica leads", func() bool { return x.isLedWithout(x.p) })
	x.ends()
}

// TestThePrimaryFailsWhilePodsAreReplaced, one by one, as in an update. A replica that is about to start counts, so another one leads as
// soon as it is back.
func TestThePrimaryFailsWhilePodsAreReplaced(t *testing.T) {
	t.Parallel()
	for _, updated := range []int{1, 2} {
		x := newTrace(t, 3)
		x.isUnaided = true
		for _, m := range []*simulated{x.b, x.a}[:updated] {
			x.until("all members are in sync", x.strong)
			m.killPod()
			m.address = ""
		}
		x.isBrokenWith(x.p)
		x.until("another member leads", func() bool { return x.isLedWithout(x.p) })
		x.p.isBroken = false
		x.acknowledgesOne()
		x.ends()
	}
}

// TestMembersLeadInTurnWhileOneIsCutOff: the replica that is cut off has a commit that no other member has. The primary that made it is
// replaced, and leads again, with another server_uuid: its next commits get no GTID that the replica has. So the replica is seen to be
// errant, and acknowledges nothing.
func TestMembersLeadInTurnWhileOneIsCutOff(t *testing.T) {
	t.Parallel()
	x := newTrace(t, 5)
	x.isUnaided, x.mayWrite = true, maxTransactions
	for _, m := range x.members {
		m.cut = m != x.p && m != x.a
	}
	n := len(x.ledger)
	x.until("a replica alone has a commit", func() bool { return n < len(x.ledger) && x.a.vol.has().has(n) })
	x.isolated(x.a)
	made := x.p.uuid
	x.isBrokenWith(x.p)
	for _, m := range x.members {
		m.cut = m == x.a
	}
	x.until("another member leads", func() bool { return x.isLedWithout(x.p) })
	if x.acked.has(n) {
		t.Fatalf("transaction %d is acknowledged", n)
	}
	x.p.isBroken = false
	for !x.leads(x.p) {
		x.until("the others are in sync", func() bool {
			return x.isLedWithout() && len(x.record.InSync) == 4 && x.record.RequiredAcks == 2
		})
		if next := x.named(x.record.Primary); next != x.p {
			x.isBrokenWith(next)
			x.until("the next one leads", func() bool { return x.isLedWithout(next) })
			next.isBroken = false
		}
	}
	if x.p.uuid == made || x.p.vol.has().has(n) {
		t.Errorf("%s has the same server_uuid: %t, and transaction %d: %t", x.p.name, x.p.uuid == made, n, x.p.vol.has().has(n))
	}
	x.acknowledgesOne()
	x.a.cut, x.a.deaf = false, false
	x.until("the replica is errant", func() bool { return x.a.agent.status.State == StateErrant })
	x.rounds(20)
	if x.a.agent.status.State != StateErrant || x.a.sql.ackActive || x.record.Acknowledges(x.a.name) {
		t.Errorf("%s counts again: it is %s", x.a.name, x.a.agent.status.State)
	}
}
