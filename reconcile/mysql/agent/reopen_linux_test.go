package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// ledOrder is the assignment of a primary that has led with a lease.
func ledOrder() replication.Assignment {
	return replication.Assignment{
		Protocol: replication.Protocol, Role: replication.RolePrimary, Boot: "before", Acks: 1, Lease: 1, LeaseLasts: 20 * time.Second, Silent: []string{"db-3"},
		Record: replication.Record{Epoch: 1, Revision: 2, Primary: "db-0", InSync: []string{"db-0", "db-1", "db-3"}, Joining: []string{"db-2"}, RequiredAcks: 1, LeaseLasts: 20 * time.Second},
	}
}

// letsIn reports whether the next start of mysqld lets in these members.
func letsIn(t *testing.T, layout Layout, ordinals ...int) bool {
	t.Helper()
	text := read(t, layout.bootstrapFile())
	for _, ordinal := range ordinals {
		if !strings.Contains(text, "CREATE USER IF NOT EXISTS '"+mysqld.ReplicationUser(ordinal)+"'@'%'") {
			t.Fatalf("the file has no account of member %d:\n%s", ordinal, text)
		}
	}
	return strings.Count(text, "PASSWORD REQUIRE CURRENT OPTIONAL ACCOUNT UNLOCK") == 3+len(ordinals) // the others are no receivers
}

// TestReplicasMayFollowACrashedPrimary: from the next start of its mysqld on, and not from the one after that.
func TestReplicasMayFollowACrashedPrimary(t *testing.T) {
	t.Parallel()
	a := newAgent(t, newLayout(t), memberState())
	if err := writeBootstrap(a.layout, mysqld.Bootstrap{}); err != nil {
		t.Fatal(err)
	}
	order, closed := ledOrder(), replication.Server{SuperReadOnly: true}
	under, writes := followed{version: order.Record.Version()}, replication.Step{State: replication.StateWriting}
	a.assignment, a.mysqld.Start, a.start = &order, "first", "first"
	a.sees(writes, replication.Observed{Assignment: &order}, followed{})
	a.prepareReopening()
	if a.reopening.isPrepared || !letsIn(t, a.layout) {
		t.Error("others may have followed it when its agent saw it take writes, and it may open")
	}
	a.sees(writes, replication.Observed{Assignment: &order}, under)
	order.Boot = a.status.Boot
	a.prepareReopening()
	if a.reopening.isPrepared || !letsIn(t, a.layout) {
		t.Error("the operator has confirmed it, and it may open by its replicas")
	}
	order.Boot = "before"
	write(t, a.layout.account(mysqld.ReplicationUsers), "") // no account could have it
	a.prepareReopening()
	if !a.reopening.isPrepared || !letsIn(t, a.layout, 1, 2) {
		t.Fatalf("its replicas may not follow it:\n%s", read(t, a.layout.bootstrapFile()))
	}
	view := func(under followed) bool {
		local := replication.Observed{Assignment: a.assignment, Server: closed}
		a.viewReopening(&local, under)
		return local.IsReopening && local.Opened.Under == under.version
	}
	seen := replication.Observed{Assignment: &order, Origin: replication.OriginMember, Server: closed}
	if a.beginReopening(seen) || view(under) || letsIn(t, a.layout) {
		t.Error("the mysqld that has crashed opens again")
	}
	a.start = "second"
	if !a.beginReopening(seen) {
		t.Error("the first report does not say that it opens by its replicas")
	}
	if a.beginReopening(seen) || !view(under) || !letsIn(t, a.layout) || a.follows().version != under.version {
		t.Errorf("it cannot open by its replicas: %+v", a.reopening)
	}
	if view(followed{}) {
		t.Error("it opens before it reports that it lets them in")
	}
	a.allowReceivers(t.Context(), replication.Observed{Assignment: &order, Server: closed})
	if !a.receivers.known {
		t.Error("the agent forgets whom it has let in")
	}
	fenced := order
	fenced.Role, fenced.Record.Epoch, fenced.Record.Primary = replication.RoleReplica, 2, ""
	a.assignment = &fenced
	a.allowReceivers(t.Context(), replication.Observed{Assignment: &fenced, Server: closed})
	if a.receivers.known || view(under) {
		t.Error("it opens although another member takes over")
	}
	a.assignment, a.start = &order, "third"
	if a.beginReopening(seen) || view(under) {
		t.Error("it opens after another start")
	}
}

func transactions(t *testing.T, numbers string) replication.GTIDSet {
	t.Helper()
	set, err := replication.ParseGTIDSet("3e11fa47-71ca-11e1-9e33-c80aa9429562:" + numbers)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// prepared returns an agent that has ordered a start at which its replicas may follow it, and what it sees of that mysqld.
func prepared(t *testing.T) (*Agent, replication.Observed) {
	t.Helper()
	a, order := newAgent(t, newLayout(t), memberState()), ledOrder()
	under, server := followed{version: order.Record.Version()}, replication.Server{SuperReadOnly: true, Executed: transactions(t, "1-10")}
	a.assignment, a.mysqld.Start, a.start = &order, "first", "first"
	a.sees(replication.Step{State: replication.StateWriting}, replication.Observed{Assignment: &order, Server: server}, under)
	a.prepareReopening()
	if !letsIn(t, a.layout, 1, 2) {
		t.Fatal("its replicas may not follow it")
	}
	return a, replication.Observed{Assignment: &order, Origin: replication.OriginMember, Server: server}
}

// TestAPrimaryThatWentBackDoesNotOpenByItsReplicas: it lacks what it had when it took writes, so it reports as after any other start, and
// the operator sees what it has lost.
func TestAPrimaryThatWentBackDoesNotOpenByItsReplicas(t *testing.T) {
	t.Parallel()
	a, seen := prepared(t)
	a.start, seen.Server.Executed = "second", transactions(t, "1-8")
	if a.beginReopening(seen) || a.receivers.known || a.isReopening(seen.Assignment) || letsIn(t, a.layout, 1, 2) {
		t.Errorf("it opens by its replicas: %+v", a.reopening)
	}
}

// TestReplicasAreLockedOutOfAStartThatIsCut: another member takes over before mysqld starts.
func TestReplicasAreLockedOutOfAStartThatIsCut(t *testing.T) {
	t.Parallel()
	a, seen := prepared(t)
	if !a.dropPrepared() || letsIn(t, a.layout, 1, 2) {
		t.Error("its replicas may follow it")
	}
	a.start = "second"
	if a.beginReopening(seen) {
		t.Error("it opens by its replicas")
	}
}

// TestANextAgentLocksReplicasOut: the agent that has let them in ended before mysqld answered.
func TestANextAgentLocksReplicasOut(t *testing.T) {
	t.Parallel()
	former, _ := prepared(t)
	next, err := New(former.layout, Identity{}, "", logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	if err := next.finishBootstrap(); err != nil || letsIn(t, next.layout, 1, 2) {
		t.Errorf("they may follow the next mysqld, too: %v", err)
	}
}

// TestAnOldConfirmationOpensNoCrashedPrimary: another member may have taken over since. Only replicas count.
func TestAnOldConfirmationOpensNoCrashedPrimary(t *testing.T) {
	t.Parallel()
	a, _ := newSupervised(t)
	order := ledOrder()
	a.assignment, a.confirmedAt = &order, clock(t)
	if err := a.leaseToOpen(t.Context(), order); err != nil {
		t.Fatal(err)
	}
	if err := a.leaseOfReplicas(t.Context(), order); err == nil || !strings.Contains(err.Error(), (replication.Shown{}).Lacks()) {
		t.Errorf("it opens: %v", err)
	}
	done := make(chan struct{})
	close(done)
	a.barrier = &barrier{start: a.start, epoch: 1, acks: 1, ended: done}
	if err := a.leaseOfReplicas(t.Context(), order); err == nil || !strings.Contains(err.Error(), (replication.Shown{Acknowledged: true}).Lacks()) {
		t.Errorf("it opens: %v", err)
	}
}
