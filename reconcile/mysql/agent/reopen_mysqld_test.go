package agent

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/sockets"
)

// heardHere says of a peer that is connected over the loopback interface that it has been heard. A supervisor does not count such a peer.
func heardHere(port uint16, peer netip.AddrPort) (time.Duration, error) {
	const age = 10 * time.Millisecond
	_, err := sockets.Look(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port), peer)
	return age, err
}

// leases makes a primary that takes writes lead with a lease that rests on its replica, and returns the assignment.
func (m *realMember) leases(t *testing.T) replication.Assignment {
	t.Helper()
	order := replication.Assignment{
		Record: replication.Record{Epoch: 1, Revision: 3, Primary: "db-0", InSync: []string{"db-0", "db-1"}, RequiredAcks: 1},
		Role:   replication.RolePrimary, Acks: 1, Lease: 1, LeaseLasts: replication.LongLease,
	}
	m.obeys(t, order)
	m.until(t, "it has a lease", func() bool {
		status := m.agent.Status()
		return status.ObservedUnder == order.Record.Version() && status.Lease != nil && status.Lease.IsHeard
	})
	m.until(t, "its agent has seen it write", func() bool { m.agent.Wake(); return m.agent.Status().State == replication.StateWriting })
	return order
}

// TestACrashedPrimaryOpensAgainByItsReplicaMysqld: no operator runs. Writes come back, each time that mysqld crashes. When the operator is
// back, nothing changes.
func TestACrashedPrimaryOpensAgainByItsReplicaMysqld(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	leader, replica, db := startAcknowledging(t, ca)
	order := leader.leases(t)
	for range 2 {
		leader.crashes(t)
		began := time.Now()
		leader.until(t, "it takes writes again", func() bool { return leader.agent.Status().State == replication.StateWriting })
		t.Logf("it takes writes after %s", time.Since(began).Round(time.Millisecond))
		execute(t, db, "INSERT INTO shop.orders VALUES ()")
		status := leader.agent.Status()
		if status.Assignment.Boot == status.Boot || status.Lease == nil || status.Lease.Needs != 1 || status.ObservedUnder != order.Record.Version() {
			t.Errorf("it reports the lease %+v, and %+v", status.Lease, status)
		}
		if text := read(t, leader.layout.bootstrapFile()); strings.Contains(text, "'mysql_operator_replication_1'@'%' ACCOUNT UNLOCK") || strings.Count(text, "ACCOUNT LOCK") == 0 {
			t.Errorf("the next start of mysqld lets members in:\n%s", text)
		}
	}
	var rows int
	if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM shop.orders").Scan(&rows); err != nil || rows != 2 {
		t.Errorf("it has %d rows: %v", rows, err)
	}
	all := leader.agent.Status().Executed
	replica.until(t, "the replica has everything", func() bool { return replica.agent.Status().Executed.Contains(all) })

	t.Log("the operator is back")
	starts := strings.Count(leader.messages(), "ready for connections")
	leader.obeys(t, order)
	leader.until(t, "it follows the assignment", func() bool {
		status := leader.agent.Status()
		return status.Assignment.Boot == status.Boot && status.State == replication.StateWriting
	})
	execute(t, db, "INSERT INTO shop.orders VALUES ()")
	if again := strings.Count(leader.messages(), "ready for connections") - starts; again != 0 {
		t.Errorf("mysqld started %d times", again)
	}
}

// TestACrashedPrimaryStaysClosedMysqld: its replica has accepted that another member takes over, while nothing reached this one.
func TestACrashedPrimaryStaysClosedMysqld(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	leader, replica, _ := startAcknowledging(t, ca)
	leader.leases(t)
	replica.obeys(t, replication.Assignment{
		Record: replication.Record{Epoch: 2, Revision: 4, FormerPrimary: "db-0", InSync: []string{"db-0", "db-1"}, RequiredAcks: 1}, Role: replication.RoleReplica,
	})
	replica.until(t, "the replica is silent", func() bool { return !replica.agent.Status().Acknowledging })
	leader.crashes(t)
	leader.until(t, "mysqld waits for its replicas", func() bool { return leader.agent.Status().Reopens() })
	for began := time.Now(); time.Since(began) < 8*time.Second; <-time.After(100 * time.Millisecond) {
		if status := leader.agent.Status(); status.Writable || status.State != replication.StateWaiting && status.State != replication.StatePromoting || leader.agent.ready(time.Now()) == nil {
			t.Fatalf("the member reports %+v", status)
		}
	}
	t.Log(leader.agent.Status().Message)
}
