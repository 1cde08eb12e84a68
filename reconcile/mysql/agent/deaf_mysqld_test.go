package agent

import (
	"net/netip"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/test/hang"
)

// TestAReplicaKnowsWhenItHeardItsPrimaryMysqld: after it has stopped to receive, because another member takes over. The primary hangs, or
// the network drops all packets. One that lives may end the connection itself, and then that is not known.
func TestAReplicaKnowsWhenItHeardItsPrimaryMysqld(t *testing.T) {
	t.Parallel()
	const away = 3 * time.Second
	leader, replica, _ := startAcknowledging(t, newAuthority(t))
	epoch := int64(1)
	// stops has the replica stop, and returns for how long it had heard nothing before that.
	stops := func(what string, isKnown bool) (before time.Duration) {
		t.Helper()
		began := time.Now()
		replica.obeys(t, replication.Assignment{Record: replication.Record{Epoch: epoch + 1, Revision: 1, FormerPrimary: "db-0"}, Role: replication.RoleReplica, InSync: true})
		var status replication.Status
		replica.until(t, what+": the replica knows", func() bool {
			status = replica.agent.Status()
			return status.ObservedUnder.Epoch == epoch+1 && !status.Acknowledging && (status.DeafFor > 0 || !isKnown)
		})
		took := time.Since(began)
		if again := replica.agent.Status().DeafFor; isKnown && again <= status.DeafFor {
			t.Errorf("%s: it has heard nothing for %s, and later for %s", what, status.DeafFor, again)
		}
		t.Logf("%s: it has heard nothing for %s, of which %s since the assignment", what, status.DeafFor, took)
		return status.DeafFor - took
	}
	var receiver netip.AddrPort
	follows := func() {
		t.Helper()
		epoch += 2
		record := replication.Record{Epoch: epoch, Revision: 1, Primary: "db-0", InSync: []string{"db-0", "db-1"}}
		replica.obeys(t, replication.Assignment{Record: record, Role: replication.RoleReplica, InSync: true, Acknowledge: true, SourceHost: "localhost", SourceAddress: "127.0.0.1", SourcePort: leader.port})
		replica.until(t, "the replica receives again", func() bool {
			status := replica.agent.Status()
			return status.Acknowledging && status.State == replication.StateReplicating && status.DeafFor == 0
		})
		var since time.Time
		replica.until(t, "the receiver stays connected", func() bool {
			// The primary may not have noticed yet that the connection of the last receiver has ended. The kernel has.
			all, _ := connectionsTo(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(leader.port)))
			if one, isKnown := onlyOpen(all, ownSockets()); !isKnown || one.Own != receiver {
				receiver, since = one.Own, time.Now()
			}
			return receiver.IsValid() && time.Since(since) > time.Second
		})
	}

	if before := stops("the primary lives", false); before > 1500*time.Millisecond {
		t.Errorf("the primary sends a heartbeat every second, and the replica has heard nothing for %s", before)
	}
	follows()
	if silent := replica.agent.Status().SourceSilentFor; silent >= away {
		t.Errorf("the primary sends a heartbeat every second, and the replica reports that it has got nothing for %s", silent)
	}

	hung := leader.pid(t)
	hang.Process(t, hung)
	<-time.After(away)
	if silent := replica.agent.Status().SourceSilentFor; silent < away-1500*time.Millisecond {
		t.Errorf("the primary has hung for %s, and the replica reports that it has got nothing for %s", away, silent)
	}
	if before := stops("the primary hangs", true); before < away-100*time.Millisecond {
		t.Errorf("the primary has hung for %s, and the replica has heard nothing for %s", away, before)
	}
	hang.Continue(t, hung)
	follows()

	cut(t, leader.port, int(receiver.Port()))
	<-time.After(away)
	if before := stops("the network drops its packets", true); before < away-100*time.Millisecond {
		t.Errorf("the network has dropped all packets for %s, and the replica has heard nothing for %s", away, before)
	}
}
