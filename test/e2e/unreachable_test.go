package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
	"github.com/mysql-operator/mysql-operator/test/sample"
)

// TestUnreachablePrimaryIsReplaced: all of the primary's Pod is frozen, as if its machine were, and a replica takes over. When the
// machine runs again, the supervisor ends the former primary's mysqld, and the member becomes a replica. Then the network around the new
// primary fails. Its mysqld ends without a connection to anybody, and the other member takes over.
func TestUnreachablePrimaryIsReplaced(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 3)
	p := newPlace(t)
	p.start(2)
	p.isLeased()
	w := p.startWriter()
	p.goesOn(w)

	first := processes(t, p.cluster+"-0", "mysqld")
	thaw := p.freeze(p.cluster + "-0")
	began := time.Now()
	p.leads(1, 2)
	p.goesOn(w)
	t.Logf("frozen: clients write again after %s", time.Since(began))
	p.hasEvent("ReplacingPrimary", "the primary "+p.cluster+"-0 does not answer")
	thaw()
	p.hasAnother(p.cluster+"-0", first)
	p.settled(2)
	p.isLeased()

	second := processes(t, p.cluster+"-1", "mysqld")
	mend := p.isolate(p.cluster + "-1")
	began = time.Now()
	p.hasAnother(p.cluster+"-1", second)
	t.Logf("cut off: its mysqld ended after %s", time.Since(began))
	p.leads(0, 3)
	p.goesOn(w)
	t.Logf("cut off: clients write again after %s", time.Since(began))
	mend()
	p.settled(2)
	w.end()
	db := p.open(p.cluster, p.password)
	p.nothingLost(w, db)
	p.replicaHasAll(db)
	p.pausedRunsOn()
}

// TestTwoMembersAreLostInSequence: the network around one of two replicas fails, and it leaves the record. So the other one can take over
// when mysqld of the primary hangs. Its commits wait for another member, until the user asks it to continue alone.
func TestTwoMembersAreLostInSequence(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 0)
	p := newPlace(t)
	p.start(3)
	p.isLeased()
	w := p.startWriter()
	p.goesOn(w)

	mend := p.isolate(p.cluster + "-2")
	began := time.Now()
	p.wait("the replica to leave the record", changeLimit, func(ctx context.Context) (bool, string) {
		seen := p.field(ctx, "{.status.inSync} {.status.requiredAcks}")
		return seen == fmt.Sprintf(`["%s-0","%s-1"] 1`, p.cluster, p.cluster), seen
	})
	t.Logf("cut off: the replica has left after %s", time.Since(began))
	p.goesOn(w)

	began = time.Now()
	signal(t, p.cluster+"-0", "mysqld", syscall.SIGSTOP)
	p.leads(1, 2)
	p.wait("commits to wait for another member", changeLimit, func(ctx context.Context) (bool, string) {
		seen := p.field(ctx, `{.status.conditions[?(@.type=="Durable")].reason}`)
		return seen == "CommitsBlocked", seen
	})
	p.mustApply(p.manifest("replicas: 3", "durability: {whenReplicasLost: Continue}"))
	p.goesOn(w)
	t.Logf("hung: the last replica takes writes after %s", time.Since(began))
	mend()
	p.settled(3)
	w.end()
	db := p.open(p.cluster, p.password)
	p.nothingLost(w, db)
	p.replicaHasAll(db)
}

// pausedRunsOn pauses the cluster, whose primary is the first member, and freezes the replica: the primary runs on without a lease.
func (p *place) pausedRunsOn() {
	p.t.Helper()
	p.isLeased()
	p.mustApply(p.manifest("replicas: 2", "paused: true"))
	p.wait("the cluster to be paused", changeLimit, func(ctx context.Context) (bool, string) {
		seen := p.field(ctx, `{.status.phase} {.status.leaseMilliseconds} {.status.conditions[?(@.type=="Reconciling")].message}`)
		return seen == "Paused  ", seen
	})
	running := processes(p.t.T, p.cluster+"-0", "mysqld")
	thaw := p.freeze(p.cluster + "-1")
	<-time.After(replication.LongLease + 5*time.Second)
	if now := processes(p.t.T, p.cluster+"-0", "mysqld"); !slices.Equal(now, running) {
		p.t.Errorf("a paused cluster's mysqld is %v, was %v", now, running)
	}
	thaw()
}

// isLeased waits until the primary has a lease.
func (p *place) isLeased() {
	p.t.Helper()
	p.wait("the primary to have a lease", changeLimit, func(ctx context.Context) (bool, string) {
		seen := p.field(ctx, "{.status.leaseMilliseconds}")
		return seen != "", seen
	})
}

// freeze stops all programs of a member, and returns what lets them run on.
func (p *place) freeze(pod string) (thaw func()) {
	p.t.Helper()
	programs := []string{supervisor.Program, "mysqld", agent.Program}
	for _, program := range programs {
		signal(p.t.T, pod, program, syscall.SIGSTOP)
	}
	thaw = sync.OnceFunc(func() {
		for _, program := range programs {
			for _, number := range processes(p.t.T, pod, program) { // the supervisor may end mysqld first
				_ = syscall.Kill(number, syscall.SIGCONT)
			}
		}
	})
	p.t.Cleanup(thaw)
	return thaw
}

// hasAnother waits until a member has another mysqld.
func (p *place) hasAnother(pod string, former []int) {
	p.t.Helper()
	p.wait("another mysqld", changeLimit, func(context.Context) (bool, string) {
		now := processes(p.t.T, pod, "mysqld")
		return len(now) == 1 && now[0] != former[0], fmt.Sprint(now)
	})
}

// isolate drops all packets that arrive at a Pod, and returns what ends that.
func (p *place) isolate(pod string) (mend func()) {
	p.t.Helper()
	running := processes(p.t.T, pod, supervisor.Program)
	if len(running) != 1 {
		p.t.Fatalf("supervisors of %s: %v", pod, running)
	}
	commands := [][]string{{"--target", fmt.Sprint(running[0]), "--net", "iptables", "-w", "10", "INPUT", "!", "-i", "lo", "-j", "DROP"}}
	p.filter("-I", commands)
	return func() { p.filter("-D", commands) }
}
