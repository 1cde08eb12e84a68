package cluster

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// TestHowLongAPassWaitsForAMember: for one that has always answered, longer than for one that did not. A takeover waits least for the
// member that it replaces.
func TestHowLongAPassWaitsForAMember(t *testing.T) {
	t.Parallel()
	now := time.Now()
	r := &reconciler{memory: newMemory(), now: func() time.Time { return now }}
	cluster := aCluster(3)
	cluster.Status.Primary = "db-0"
	for _, member := range []string{"db-0", "db-1"} {
		r.memory.failures.Waited(keyOf(cluster), unheard(member), now)
	}
	waits := func(what, member string, want time.Duration) {
		t.Helper()
		if got := r.limits(cluster, now)(member); got != want {
			t.Errorf("%s: a pass waits %s for %s, want %s", what, got, member, want)
		}
	}
	waits("at rest", "db-0", time.Second)
	waits("at rest", "db-1", time.Second)
	waits("at rest", "db-2", 2*time.Second)
	if least := r.leastFor(cluster); least != promptly {
		t.Errorf("a pass waits %s for a primary that did not answer the last time, and that no replica hears", least)
	}
	if least := r.leastFor(aCluster(3)); least != atLeast {
		t.Errorf("a pass waits %s for a primary that no replica hears", least)
	}
	cluster.Status.Takeovers = []v1.Takeover{{From: "db-0", StartTime: v1.NewMicroTime(now)}}
	waits("during a takeover", "db-0", 50*time.Millisecond)
	waits("during a takeover", "db-1", time.Second)
	waits("during a takeover", "db-2", 2*time.Second)
	cluster.Status.Primary, cluster.Status.FormerPrimary = "", "db-0"
	waits("during a takeover that needs its answer", "db-0", time.Second)
	cluster.Status.LeaseMilliseconds = 2500
	waits("during one that waits for the end of its lease", "db-0", 50*time.Millisecond)
}

// TestAPrimaryThatMissesALookIsSoonAskedAgain: one request may be lost, and a takeover waits for the second. The same if it has no Pod.
func TestAPrimaryThatMissesALookIsSoonAskedAgain(t *testing.T) {
	t.Parallel()
	_, found := atRest(t)
	found.cluster.Status.Primary = found.seen.members[0].Name
	found.seen.members[0].Status, found.seen.members[0].Pod = nil, false
	if due := found.prospect(found.cluster.Status).due; due != missedEvery {
		t.Errorf("the next look is due in %s", due)
	}
	found.seen.suspectedFor = suspectsFor
	if due := found.prospect(found.cluster.Status).due; due == missedEvery {
		t.Error("it is asked that often without end")
	}
	found.seen.suspectedFor = 0
	found.seen.members[0].Status = &replication.Status{State: replication.StateStarting, StartHeld: true}
	if due := found.prospect(found.cluster.Status).due; due != heldEvery {
		t.Errorf("it has crashed, and waits for a replica: the next look is due in %s", due)
	}
}

// slowAgents answer after some time, each with its report.
type slowAgents map[string]slowAgent

type slowAgent struct {
	after  time.Duration
	report replication.Status
	// deafAt is when it has got nothing for so long that it says so; zero for never.
	deafAt time.Time
	// goneAt is when it answers no more; zero for never.
	goneAt time.Time
}

func (s slowAgents) Status(ctx context.Context, target agent.Target) (replication.Status, error) {
	select {
	case <-ctx.Done():
		return replication.Status{}, ctx.Err()
	case <-time.After(s[target.Address].after):
	}
	report := s[target.Address].report
	if goneAt := s[target.Address].goneAt; !goneAt.IsZero() && !time.Now().Before(goneAt) {
		<-ctx.Done()
		return replication.Status{}, ctx.Err()
	}
	if deafAt := s[target.Address].deafAt; !deafAt.IsZero() && !time.Now().Before(deafAt) {
		report.SourceSilentFor = replication.AlarmAfter
	}
	return report, nil
}

// TestReplicasSayHowLongToWaitForThePrimary: a takeover must not wait for a primary that no replica hears.
func TestReplicasSayHowLongToWaitForThePrimary(t *testing.T) {
	t.Parallel()
	hears, silent := replication.Status{}, replication.Status{SourceSilentFor: replication.AlarmAfter}
	const never = time.Hour
	for what, test := range map[string]struct {
		primary    time.Duration
		one, other slowAgent
		want       time.Duration
		answers    bool
		// deafAfter is when the first replica says that it has got nothing for a while; 0 for never.
		deafAfter time.Duration
	}{
		"it answers":      {time.Millisecond, slowAgent{report: silent}, slowAgent{report: silent}, time.Millisecond, true, 0},
		"it answers late": {time.Second, slowAgent{report: hears}, slowAgent{report: silent}, time.Second, true, 0},
		"it does not answer, and a replica hears it":    {never, slowAgent{report: hears}, slowAgent{report: silent}, agentTimeout, false, 0},
		"no replica hears it":                           {never, slowAgent{after: time.Millisecond, report: silent}, slowAgent{report: silent}, atLeast, false, 0},
		"a replica does not answer, the other is deaf":  {never, slowAgent{after: never, report: silent}, slowAgent{report: silent}, promptly + atLeast, false, 0},
		"nothing answers":                               {never, slowAgent{after: never, report: silent}, slowAgent{after: never, report: silent}, agentTimeout, false, 0},
		"no replica hears it, and it answers meanwhile": {300 * time.Millisecond, slowAgent{after: time.Second, report: silent}, slowAgent{report: silent}, 300 * time.Millisecond, true, 0},
		"a replica says later that it does not hear it": {never, slowAgent{report: hears}, slowAgent{report: silent}, 3 * promptly, false, 2*promptly + 1},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				if test.deafAfter > 0 {
					test.one.deafAt = time.Now().Add(test.deafAfter)
				}
				agents := slowAgents{"10.0.0.1": {after: test.primary, report: hears}, "10.0.0.2": test.one, "10.0.0.3": test.other}
				members := []replication.Member{{Name: "db-0", Pod: true}, {Name: "db-1", Pod: true}, {Name: "db-2", Pod: true}}
				all := targets{agents: agents, primary: "db-0", addresses: []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}, inSync: []string{"db-0", "db-1", "db-2"}, limit: func(string) time.Duration { return agentTimeout }, least: atLeast}
				began := time.Now()
				all.askPrimary(t.Context(), members)
				if took := time.Since(began); took != test.want || (members[0].Status != nil) != test.answers {
					t.Errorf("after %s, it has answered: %t (%s)", took, members[0].Status != nil, members[0].Unreachable)
				}
				if members[1].Status != nil || members[2].Status != nil {
					t.Error("what replicas said before the primary answered counts")
				}
			})
		})
	}
}

// TestAPassDoesNotWaitLongForAReplicaThatThePrimaryLacks: the others soon do without it.
func TestAPassDoesNotWaitLongForAReplicaThatThePrimaryLacks(t *testing.T) {
	t.Parallel()
	for _, lacking := range [][]string{{"db-1", "db-2"}, {"db-4"}, nil} {
		isLacking := len(lacking) == 2
		synctest.Test(t, func(t *testing.T) {
			agents := slowAgents{"10.0.0.2": {after: time.Hour}}
			primary := replication.Status{Lease: &replication.Lease{Needs: 1, Unheard: lacking}}
			members := []replication.Member{{Name: "db-0", Pod: true, Status: &primary}, {Name: "db-1", Pod: true}}
			all := targets{agents: agents, primary: "db-0", addresses: []string{"10.0.0.1", "10.0.0.2"}, limit: func(string) time.Duration { return agentTimeout }, least: atLeast}
			began := time.Now()
			all.askOthers(t.Context(), members)
			if took := time.Since(began); took >= agentTimeout == isLacking {
				t.Errorf("the primary lacks a replica: %t; the pass has waited %s", isLacking, took)
			}
		})
	}
	_, found := atRest(t)
	found.cluster.Status.Primary, found.cluster.Status.InSync = "db-0", []string{"db-0", "db-1", "db-2"}
	found.seen.members[2].Status, found.seen.members[2].Pod = nil, true
	for _, lacking := range [][]string{{"db-1", "db-2"}, {"db-4"}, nil} {
		isLacking := len(lacking) == 2
		found.seen.members[0].Status.Lease = &replication.Lease{Needs: 1, Unheard: lacking}
		if due := found.prospect(found.cluster.Status).due; due == missedEvery != isLacking {
			t.Errorf("the primary lacks a replica: %t; the next look is due in %s", isLacking, due)
		}
	}
}

// TestMembersCannotKeepTheOperatorBusy: however often they begin not to answer. Another member, and a later failure, have their own time.
func TestMembersCannotKeepTheOperatorBusy(t *testing.T) {
	t.Parallel()
	r, cluster := &reconciler{memory: newMemory()}, aCluster(3)
	now, suspects := time.Now(), map[bool]string{true: "db-0"}
	var hurried time.Duration
	for after := time.Duration(0); after < 5*suspectsAgain; after += missedEvery {
		now = now.Add(missedEvery)
		suspect := suspects[after/time.Second%2 == 0]
		if r.noteSuspicion(cluster, suspect, now) < suspectsFor && suspect != "" {
			hurried += missedEvery
		}
	}
	if hurried > suspectsFor {
		t.Errorf("in %s, it looks more often for %s", 5*suspectsAgain, hurried)
	}
	if long := r.noteSuspicion(cluster, "db-1", now); long != 0 {
		t.Errorf("another member has been suspected for %s", long)
	}
	if long := r.noteSuspicion(cluster, "db-0", now.Add(2*suspectsAgain)); long != 0 {
		t.Errorf("after a while without suspicion, it has been suspected for %s", long)
	}
}

// TestTheOperatorHurriesAtASecondTakeover: a primary fails, leads again a moment later, and fails again.
func TestTheOperatorHurriesAtASecondTakeover(t *testing.T) {
	t.Parallel()
	r, leads, isReplaced, now := &reconciler{memory: newMemory()}, aCluster(3), aCluster(3), time.Now()
	isReplaced.Status.FormerPrimary = "db-0"
	r.noteSuspicion(leads, "db-0", now)
	if long := r.noteSuspicion(leads, "db-0", now.Add(suspectsFor)); long != suspectsFor {
		t.Fatalf("it has been suspected for %s", long)
	}
	r.noteSuspicion(isReplaced, "", now.Add(suspectsFor))
	if long := r.noteSuspicion(leads, "db-0", now.Add(2*suspectsFor)); long != 0 {
		t.Errorf("since its replacement, it has been suspected for %s", long)
	}
}

// TestAPrimaryIsUnheardSinceItWasFirstAsked: the look at a settled cluster asks first. The pass that follows asks again, and knows then
// that there was no answer since. One question alone says nothing.
func TestAPrimaryIsUnheardSinceItWasFirstAsked(t *testing.T) {
	t.Parallel()
	s := newShop(t, 2)
	owner := s.client(t, "db1").Owner()
	n, now := children.Names{Namespace: "shop", Cluster: "db1"}, time.Unix(5000, 0)
	s.now = func() time.Time { return now }
	key := n.NamespacedName()
	passes := func(answers bool) time.Duration {
		seen := observed{now: now, members: []replication.Member{{Name: "db1-0", Pod: true}}}
		now = now.Add(atLeast)
		if answers {
			seen.members[0].Status = &replication.Status{}
		}
		s.noteUnheard(key, replication.Record{Primary: "db1-0"}, &seen)
		return seen.members[0].UnheardFor
	}
	is := func(what string, got, want time.Duration) {
		t.Helper()
		if got != want {
			t.Errorf("%s: unheard for %s, want %s", what, got, want)
		}
	}
	is("one question without an answer", passes(false), 0)
	is("the next one", passes(false), 2*atLeast)
	is("it answers", passes(true), 0)
	s.memory.settle(key, &restingCluster{
		uid: owner.GetUID(), version: owner.GetResourceVersion(), children: digest(s.versions(n)), until: now.Add(time.Minute),
		view: replication.Cluster{Record: replication.Record{Primary: "db1-0"}, Members: []replication.Member{{Name: "db1-0", Pod: true}}}, addresses: []string{""},
	})
	if _, isEnough := s.CanSkip(t.Context(), key, owner.GetUID(), owner.GetResourceVersion()); isEnough {
		t.Fatal("a look is enough although the primary does not answer")
	}
	cluster := v1.MySQLCluster{ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: n.Cluster}}
	if got := s.limits(cluster, now)("db1-0"); got != agentTimeout {
		t.Errorf("after a short look, the pass waits %s for it, want %s", got, agentTimeout)
	}
	now = now.Add(atLeast)
	is("a look and a pass", passes(false), 2*atLeast)
	if got := s.limits(cluster, now)("db1-0"); got >= agentTimeout {
		t.Errorf("the next pass waits %s", got)
	}
	is("it answers again", passes(true), 0)
	is("one question later", passes(false), 0)
}

// TestAReplicaThatAnswersNoMoreDoesNotProlongAPass: what it said before counts no more.
func TestAReplicaThatAnswersNoMoreDoesNotProlongAPass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		agents := slowAgents{"10.0.0.1": {after: time.Hour}, "10.0.0.2": {goneAt: began.Add(promptly + 1)}, "10.0.0.3": {report: replication.Status{SourceSilentFor: replication.AlarmAfter}}}
		members := []replication.Member{{Name: "db-0", Pod: true}, {Name: "db-1", Pod: true}, {Name: "db-2", Pod: true}}
		all := targets{agents: agents, primary: "db-0", addresses: []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}, inSync: []string{"db-0", "db-1", "db-2"}, limit: func(string) time.Duration { return agentTimeout }, least: atLeast}
		all.askPrimary(t.Context(), members)
		if took, want := time.Since(began), 2*promptly+agentTimeout/4; took != want {
			t.Errorf("the pass waited %s, want %s", took, want)
		}
	})
}
