package agent

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/sockets"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
)

func clock(t *testing.T) time.Duration {
	t.Helper()
	now, err := supervisor.Clock()
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// TestAPrimaryOpensWithALease: the operator must have confirmed lately that the member leads. An agent that restarts tells the supervisor
// again what the member needs.
func TestAPrimaryOpensWithALease(t *testing.T) {
	t.Parallel()
	a, exited := newSupervised(t)
	order := replication.Assignment{
		Protocol: replication.Protocol, Role: replication.RolePrimary, Boot: a.Status().Boot, Acks: 1, Lease: 1, LeaseLasts: 20 * time.Second,
		Record: replication.Record{Epoch: 1, Revision: 2, Primary: "db-0", InSync: []string{"db-0", "db-1"}, RequiredAcks: 1, LeaseLasts: 20 * time.Second},
	}
	assign := func(order replication.Assignment, at time.Duration) error {
		order.ConfirmedAt = at
		return a.Assign(order)
	}
	opens := func(what string, want bool) {
		t.Helper()
		if err := a.leaseToOpen(t.Context(), order); (err == nil) != want {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := assign(order, 0); err != nil {
		t.Fatal(err)
	}
	opens("no confirmation", false)
	if err := assign(order, clock(t)-order.LeaseLasts); err != nil {
		t.Fatal(err)
	}
	opens("a confirmation of long ago", false)
	if now := a.Status(); now.Lease == nil || now.Lease.Needs != 0 || now.Lease.Left > 0 || !now.Lease.IsEnding() {
		t.Errorf("the report says %+v", now.Lease)
	}
	earlier := order
	earlier.Record.Revision--
	if err := assign(earlier, clock(t)); err == nil {
		t.Error("an assignment of an earlier revision is accepted")
	}
	opens("a confirmation of an earlier revision", false)
	if err := assign(order, clock(t)); err != nil {
		t.Fatal(err)
	}
	opens("a confirmation", true)
	if now := a.Status(); now.Lease == nil || now.Lease.Needs != 1 || now.Lease.Lasts != order.LeaseLasts || now.Lease.IsEnding() || now.Clock == 0 {
		t.Errorf("the report says %+v", now.Lease)
	}
	if kept := stateOf(t, a.layout); kept.Last == nil || kept.Last.ConfirmedAt != 0 || a.Status().Assignment.ConfirmedAt != 0 {
		t.Errorf("each confirmation is stored: %+v", kept.Last)
	}

	t.Log("a primary that the record does not count on opens without a lease, and gets the first one from replicas")
	first := order
	first.Record.LeaseLasts = 0
	if err := a.leaseToOpen(t.Context(), first); err != nil || a.lease.needs != 0 {
		t.Errorf("it opens with %+v: %v", a.lease, err)
	}
	a.keepLease(t.Context(), mysqld.Observed{}, replication.Observed{Assignment: &first})
	if a.lease.needs != 0 || a.lease.failure == "" {
		t.Errorf("no replica is connected, and it has %+v", a.lease)
	}
	a.keepLease(t.Context(), mysqld.Observed{}, replication.Observed{Assignment: &order})
	if a.lease.needs != 1 {
		t.Errorf("the record counts on it, the operator has confirmed it, and it has %+v", a.lease)
	}

	t.Log("mysqld starts again under a record under which the member has had a lease: an operator may count on it")
	if err := a.keepHadLease(first); err != nil {
		t.Fatal(err)
	}
	if err := a.leaseToOpen(t.Context(), first); err != nil || a.lease.needs != 1 {
		t.Errorf("it opens with %+v: %v", a.lease, err)
	}
	if kept := stateOf(t, a.layout); kept.LeasedUnder != first.Record.Version() {
		t.Errorf("the volume has %+v", kept.LeasedUnder)
	}

	t.Log("the supervisor does not answer: what it was told may hold or not")
	longer, started := order, a.start
	longer.LeaseLasts, a.lease.start, a.start = 30*time.Second, "another start", "another start"
	a.keepLease(t.Context(), mysqld.Observed{}, replication.Observed{Assignment: &longer})
	a.keepLease(t.Context(), mysqld.Observed{}, replication.Observed{Assignment: &order})
	if a.lease.isKnown || a.lease.needs != 1 || a.lease.lasts != longer.LeaseLasts {
		t.Errorf("the agent knows %+v", a.lease)
	}
	a.start = started

	t.Log("the agent restarts, and the member needs no lease any more")
	a.lease = lease{}
	released := order
	released.Lease, released.LeaseLasts = 0, 0
	a.keepLease(t.Context(), mysqld.Observed{}, replication.Observed{Assignment: &released})
	if !a.lease.isKnown || a.lease.needs != 0 {
		t.Errorf("the agent knows %+v", a.lease)
	}
	if _, _, err := supervisor.Lead(t.Context(), supervisor.Socket(a.layout.Run), a.start, supervisor.Lease{Needs: 1, Lasts: time.Hour}); err == nil {
		t.Error("the supervisor still has a lease")
	}
	if err := a.announce(t.Context(), supervisor.Kill); err != nil {
		t.Error(err)
	}
	<-exited
}

// TestALeaseThatIsImpossibleIsNotAskedForAgain: otherwise the operator would write records without end.
func TestALeaseThatIsImpossibleIsNotAskedForAgain(t *testing.T) {
	t.Parallel()
	blind := func(uint16, netip.AddrPort) (time.Duration, error) { return 0, syscall.EPERM }
	a, exited := newSupervisedBy(t, blind)
	reported := func(what string, want bool) {
		t.Helper()
		if now := a.Status().Lease; (now != nil && now.IsImpossible) != want || now != nil && now.Needs > 0 {
			t.Errorf("%s: the report says %+v", what, now)
		}
	}
	order := replication.Assignment{Role: replication.RolePrimary, Lease: 1, LeaseLasts: 20 * time.Second, Record: replication.Record{LeaseLasts: 20 * time.Second}}
	reported("before", false)
	if err := a.leaseToOpen(t.Context(), order); !errors.Is(err, supervisor.ErrNoLease) {
		t.Errorf("it opens: %v", err)
	}
	reported("it was tried", true)
	order.Record.LeaseLasts, order.Lease = 0, 0
	if err := a.leaseToOpen(t.Context(), order); err != nil {
		t.Errorf("it does not open without one: %v", err)
	}
	reported("it does without", true)
	a.lease = a.lease.of("another start")
	reported("mysqld starts again", true)
	if err := a.announce(t.Context(), supervisor.Kill); err != nil {
		t.Error(err)
	}
	<-exited
}

// TestAConfirmationReachesTheSupervisorAtOnce: the agent's loop does not run here. A confirmation of an earlier revision does not count.
func TestAConfirmationReachesTheSupervisorAtOnce(t *testing.T) {
	t.Parallel()
	a, exited := newSupervised(t)
	ca := newAuthority(t)
	ca.install(a.layout, 2, memberHost)
	card := ca.client(OperatorName).Certificates[0].Leaf
	confirmed := clock(t) / 2
	asked := supervisor.Lease{Needs: 1, Lasts: clock(t) + time.Hour}
	first := asked
	first.Confirmed = confirmed
	if _, _, err := supervisor.Lead(t.Context(), supervisor.Socket(a.layout.Run), a.start, first); err != nil {
		t.Fatal(err)
	}
	puts := func(revision int64, lasts time.Duration, want int) {
		t.Helper()
		at := clock(t)
		body, err := json.Marshal(replication.Assignment{
			Protocol: replication.Protocol, Role: replication.RolePrimary, Boot: a.Status().Boot, Acks: 1, Lease: 1, LeaseLasts: lasts, ConfirmedAt: at,
			Record: replication.Record{Epoch: 1, Revision: revision, Primary: "db-0", InSync: []string{"db-0", "db-1"}, RequiredAcks: 1, LeaseLasts: lasts},
		})
		if err != nil {
			t.Fatal(err)
		}
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPut, assignmentPath, bytes.NewReader(body))
		request.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{card}, VerifiedChains: [][]*x509.Certificate{{card}}}
		answer := httptest.NewRecorder()
		a.Handler().ServeHTTP(answer, request)
		if answer.Code != want {
			t.Errorf("revision %d: the agent answers %d %s, want %d", revision, answer.Code, answer.Body, want)
		}
		isCounted := want == http.StatusNoContent && lasts == replication.LongLease
		if isCounted {
			confirmed = at
		}
		before := clock(t)
		left, _, err := supervisor.Lead(t.Context(), supervisor.Socket(a.layout.Run), a.start, asked) // it has no evidence of its own
		after, ends := clock(t), confirmed+asked.Lasts
		if err != nil || before+left > ends || after+left < ends {
			t.Errorf("revision %d: at %s to %s, the lease lasts for %s (%v), want until %s", revision, before, after, left, err, ends)
		}
		if ends := a.currentLease().ends; isCounted && ends != at+asked.Lasts {
			t.Errorf("revision %d: the agent reports that the lease ends at %s, confirmed at %s", revision, ends, at)
		}
	}
	a.kept.Held = replication.Record{Epoch: 1, Revision: 2, Primary: "db-0"}
	a.lease = lease{start: a.start, isKnown: true, needs: 1, lasts: asked.Lasts}
	puts(1, replication.LongLease, http.StatusConflict)
	puts(2, replication.LongLease, http.StatusNoContent)
	t.Log("a lease that rests on replicas is not confirmed")
	puts(3, replication.ShortLease, http.StatusNoContent)
	if now := a.confirmed(); now != confirmed {
		t.Errorf("the agent counts a confirmation of %s, want %s", now, confirmed)
	}
	if err := a.announce(t.Context(), supervisor.Kill); err != nil {
		t.Error(err)
	}
	<-exited
}

// TestALeaseRestsOnReplicasThatWereHeardSince: since the operator has confirmed the primary, and since others may not follow it any more.
func TestALeaseRestsOnReplicasThatWereHeardSince(t *testing.T) {
	t.Parallel()
	var age atomic.Int64
	a, exited := newSupervisedBy(t, func(_ uint16, peer netip.AddrPort) (time.Duration, error) {
		if peer.Port() == 1 { // a look that only tries
			return 0, sockets.ErrNotConnected
		}
		return time.Duration(age.Load()), nil
	})
	order := replication.Assignment{Role: replication.RolePrimary, Lease: 1, LeaseLasts: 20 * time.Second, Record: replication.Record{LeaseLasts: 20 * time.Second}}
	rests := func(what string, want bool) {
		t.Helper()
		a.lease.asked = supervisor.Lease{Port: 3306, Replicas: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.2:4000")}}
		a.lease.start = a.start
		a.keepLease(t.Context(), mysqld.Observed{}, replication.Observed{Assignment: &order})
		if !a.lease.isKnown || a.lease.isHeard != want {
			t.Errorf("%s: %+v", what, a.lease)
		}
	}
	rests("a replica is heard", true)
	age.Store(int64(time.Second))
	a.receivers.since = clock(t)
	rests("another replica was locked out since", false)
	age.Store(0)
	rests("it is heard again", true)
	age.Store(int64(time.Second))
	a.confirmedAt = clock(t)
	rests("the operator has confirmed the primary since", false)
	age.Store(0)
	rests("it is heard after that", true)
	if err := a.announce(t.Context(), supervisor.Kill); err != nil {
		t.Error(err)
	}
	<-exited
}

// TestWhichReplicasAreNotHeard: those in sync that are not connected, or that the supervisor has not heard lately.
func TestWhichReplicasAreNotHeard(t *testing.T) {
	t.Parallel()
	a := newAgent(t, newLayout(t), memberState())
	a.mysqld = supervisor.State{Start: "one", Running: true, Open: true, Heard: "10.0.0.2:40002 10.0.0.5:40005"}
	a.lease = lease{start: "one", needs: 1, lasts: 20 * time.Second, ends: clock(t) + 20*time.Second}
	a.sessions = map[int]netip.AddrPort{1: netip.MustParseAddrPort("10.0.0.2:40002"), 2: netip.MustParseAddrPort("10.0.0.3:40003")}
	record := replication.Record{Primary: "db-0", InSync: []string{"db-0", "db-1", "db-2", "db-3"}}
	a.assignment = &replication.Assignment{Role: replication.RolePrimary, Lease: 1, LeaseLasts: 20 * time.Second, Record: record}
	got := a.Status().Lease
	if diff := cmp.Diff([]string{"db-2", "db-3"}, got.Unheard); diff != "" || got.IsEnding() {
		t.Errorf("it ends: %t; not heard (-want +got):\n%s", got.IsEnding(), diff)
	}
	observed := mysqld.Observed{AskedAcks: 2, AckClients: 2}
	a.start, a.lease.needs = "one", 2
	if short := a.acksShort(time.Now(), observed); short != 0 || a.shortSince.IsZero() {
		t.Errorf("mysqld counts two replicas, and one has been heard: short for %d seconds since %s", short, a.shortSince)
	}
	a.lease.needs = 1
	a.acksShort(time.Now(), observed)
	if !a.shortSince.IsZero() {
		t.Errorf("one is needed, and has been heard: short since %s", a.shortSince)
	}
	a.lease.ends -= 10 * time.Second
	if now := a.Status(); !now.Lease.IsEnding() {
		t.Errorf("the supervisor says nothing, and half of the lease has passed: %+v", now.Lease)
	}
	a.status.State, a.mysqld.Stopping, a.asked = replication.StateWriting, true, question{at: time.Now().Add(-time.Minute)}
	if now := a.Status(); now.UnansweredFor != 0 {
		t.Errorf("as long as its container stops, mysqld is not late: %s", now.UnansweredFor)
	}
}
