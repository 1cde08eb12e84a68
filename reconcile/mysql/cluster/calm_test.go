package cluster

import (
	"crypto/tls"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
)

// atRest returns a cluster that a full pass has found to be as it should be, after it had written its status.
func atRest(t *testing.T) (*scene, passResult) {
	t.Helper()
	s := healthy(t, 3)
	s.record.Revision = 1
	s.cluster.Status.Primary, s.cluster.Status.Epoch, s.cluster.Status.Revision = s.record.Primary, s.record.Epoch, s.record.Revision
	s.cluster.Status.InSync, s.cluster.Status.RequiredAcks = s.record.InSync, int32(s.record.RequiredAcks)
	for ordinal := range 3 {
		s.member(ordinal, true, func(status *replication.Status) {
			status.Protocol, status.Held, status.Origin, status.Boot = replication.Protocol, s.record, replication.OriginMember, "boot"
			status.Writable, status.Acknowledging, status.ServerUUID = ordinal == 0, ordinal > 0, serverUUID
			status.Received = status.Executed
		})
	}
	decision := replication.Decide(view(s.cluster, s.seen))
	for ordinal := range 3 {
		s.member(ordinal, true, func(status *replication.Status) {
			given := decision.Assignments[s.seen.members[ordinal].Name]
			status.Assignment, status.Last, status.HeldRole = &given, &given, given.Role
		})
	}
	found := passResult{cluster: s.cluster, seen: s.seen, decision: replication.Decide(view(s.cluster, s.seen))}
	found.cluster.Status = found.status()
	s.cluster = found.cluster
	return s, found
}

func TestOnlyAClusterWithNothingToDoIsSettled(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*passResult)
		want   bool
	}{
		"as it should be": {func(*passResult) {}, true},
		"a problem": {func(r *passResult) {
			r.problem = &report.Problem{Reason: report.ReasonForbidden, Message: "may not", Stalled: true}
		}, false},
		"the StatefulSet was made": {func(r *passResult) { r.children = applyResult{rolled: true, unsettled: true} }, false},
		"a child is going":         {func(r *passResult) { r.children.unsettled = true }, false},
		"it gets too few acknowledgements": {func(r *passResult) {
			r.seen.members[0].Status.AcksShortSeconds = 1
			r.cluster.Status = r.status()
		}, false},
		"the operator must confirm the primary again soon": {func(r *passResult) {
			r.seen.members[0].Status.Lease = &replication.Lease{Needs: 1, Lasts: time.Minute, Ends: true, IsHeard: true}
		}, false},
		"replicas have not been heard since the operator confirmed it": {func(r *passResult) {
			r.seen.members[0].Status.Lease = &replication.Lease{Needs: 1, Lasts: time.Minute, Left: time.Minute}
		}, false},
		"a replica is not heard": {func(r *passResult) {
			r.seen.members[0].Status.Lease = &replication.Lease{Needs: 1, Lasts: time.Minute, Left: time.Minute, IsHeard: true, Unheard: []string{"db-1"}}
		}, true}, // each look makes a full pass
		"mysqld of the primary takes long to answer": {func(r *passResult) {
			r.seen.members[0].Status.UnansweredFor = replication.AlarmAfter
		}, false},
		"a write to the primary's volume does not return": {func(r *passResult) {
			r.seen.members[0].Status.Probe = replication.VolumeProbe{IsKnown: true, StuckFor: replication.StuckLeast}
		}, false},
		"enough replicas are heard": {func(r *passResult) {
			r.seen.members[0].Status.Lease = &replication.Lease{Needs: 1, Lasts: time.Minute, Left: time.Minute, IsHeard: true}
		}, true},
		"its status is not written":     {func(r *passResult) { r.cluster.Status.ReadySummary = "2/3" }, false},
		"not Ready":                     {func(r *passResult) { r.seen.members[1].Status = nil; r.cluster.Status = r.status() }, false},
		"the record must change":        {func(r *passResult) { r.decision.Record.Revision++ }, false},
		"reads must go elsewhere":       {func(r *passResult) { r.decision.ReadFromPrimary = true }, true}, // the Service has changed already: the children have this version
		"members must be added":         {func(r *passResult) { r.decision.Scale++ }, false},
		"a member needs its assignment": {func(r *passResult) { r.seen.members[2].Status.Assignment = nil }, false},
		"the primary must match":        {func(r *passResult) { r.decision.Matching = &replication.Matching{} }, false},
		"it waits for something":        {func(r *passResult) { r.decision.Note = &replication.Note{Reason: replication.ReasonScalingIn} }, false},
	} {
		_, found := atRest(t)
		test.change(&found)
		if got := found.settle("7", found.status(), clusterMemory{}); (got != nil) != test.want {
			t.Errorf("%s: settled %t, want %t", name, got != nil, test.want)
		}
	}
}

func TestALookIsEnoughWhileMembersSayNothingNew(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		member int
		change func(*replication.Member)
		want   bool
	}{
		"the same": {0, func(*replication.Member) {}, true},
		"clients have written": {0, func(m *replication.Member) {
			m.Status.Executed = gtids(t, serverUUID+":1-99")
		}, true},
		"a replica lags":              {1, func(m *replication.Member) { lag := int64(4); m.Status.LagSeconds = &lag }, true},
		"a replica has lagged":        {1, func(m *replication.Member) { m.Status.BehindLately = 5 }, false},
		"a member is silent":          {1, func(m *replication.Member) { m.Status, m.Unreachable = nil, "no answer" }, false},
		"a member does not replicate": {1, func(m *replication.Member) { m.Status.State = replication.StateBroken }, false},
		"another release of MySQL":    {1, func(m *replication.Member) { m.Status.Version = "9.8.0" }, false},
		"root's password":             {0, func(m *replication.Member) { m.Status.RootError = "refused" }, false},
		"acknowledgements run short":  {0, func(m *replication.Member) { m.Status.AcksShortSeconds = 1 }, false},
		"mysqld has restarted":        {0, func(m *replication.Member) { m.Status.Boot = "another" }, false},
		"an agent has restarted":      {2, func(m *replication.Member) { m.Status.Assignment = nil }, false},
		"a later record":              {2, func(m *replication.Member) { m.Status.Held.Revision = 9 }, false},
		"a replica has hollow transactions": {2, func(m *replication.Member) {
			m.Status.Hollow = gtids(t, "4e11fa47-71ca-11e1-9e33-c80aa9429562:1")
		}, false},
		"a volume returns errors":  {1, func(m *replication.Member) { m.Status.Probe.FailingFor = time.Second }, false},
		"a member refuses clients": {1, func(m *replication.Member) { m.Status.RefusesClients = true }, false},
		"another agent":            {2, func(m *replication.Member) { m.Status.Protocol = 0 }, false},
	} {
		scene, found := atRest(t)
		known := found.settle("7", found.status(), clusterMemory{})
		if known == nil {
			t.Fatal("a cluster as it should be is not settled")
		}
		for _, member := range known.view.Members {
			if member.Status != nil {
				t.Fatal("it remembers what a member said")
			}
		}
		members := scene.seen.members
		test.change(&members[test.member])
		if got := known.stillHolds(members); got != test.want {
			t.Errorf("%s: a look is enough: %t, want %t", name, got, test.want)
		}
	}
}

// TestTheOperatorLooksSeldomWhileAlarmsArrive: when the next full pass is due.
func TestTheOperatorLooksSeldomWhileAlarmsArrive(t *testing.T) {
	t.Parallel()
	now := time.Unix(5000, 0)
	scene, found := atRest(t)
	known := found.settle("7", found.status(), clusterMemory{})
	members := scene.seen.members
	looksWithin := func(when string, fullPassIn, least, most time.Duration) {
		t.Helper()
		known.until = now.Add(fullPassIn)
		if got := known.nextLook(members, now); got < least || got > most {
			t.Errorf("%s: the next look is in %s, want %s to %s", when, got, least, most)
		}
	}
	looksWithin("it is not known whether alarms arrive", time.Hour, calmEvery/2, calmEvery)
	for i := range members {
		members[i].Status.AlarmsArrive = true
	}
	members[0].Status.Lease = &replication.Lease{Needs: 1, Lasts: time.Minute, Left: time.Minute, IsHeard: true}
	looksWithin("all alarms arrive", secretsEvery, secretsEvery, secretsEvery)
	members[2].Status.AlarmsArrive = false
	looksWithin("those of one member do not", time.Hour, calmEvery/2, calmEvery)
}

func TestASettledClusterIsLookedAtAgainWhenAnythingHasAnotherVersion(t *testing.T) {
	t.Parallel()
	s := newShop(t, 2)
	owner := s.client(t, "db1").Owner()
	n, now := children.Names{Namespace: "shop", Cluster: "db1"}, time.Unix(5000, 0)
	s.now = func() time.Time { return now }
	key := types.NamespacedName{Namespace: "shop", Name: "db1"}
	settle := func(change func(*restingCluster)) {
		known := &restingCluster{uid: owner.GetUID(), version: owner.GetResourceVersion(), children: digest(s.versions(n)), until: now.Add(time.Minute)}
		change(known)
		s.memory.settle(key, known)
	}
	for name, test := range map[string]struct {
		change func(*restingCluster)
		want   bool
	}{
		"nothing":                       {func(*restingCluster) {}, true},
		"the cluster":                   {func(k *restingCluster) { k.version = "4" }, false},
		"a child":                       {func(k *restingCluster) { k.children++ }, false},
		"the time for a full pass":      {func(k *restingCluster) { k.until = now }, false},
		"the cluster was created again": {func(k *restingCluster) { k.uid = "another" }, false},
	} {
		settle(test.change)
		if got := s.settledAs(key, owner.GetUID(), owner.GetResourceVersion()) != nil; got != test.want {
			t.Errorf("changed %s: settled %t, want %t", name, got, test.want)
		}
	}
	s.Forget(key)
	if s.settledAs(key, owner.GetUID(), owner.GetResourceVersion()) != nil {
		t.Error("a cluster that was forgotten is remembered")
	}
}

func TestChildrenAreComparedAgainOnlyAfterAChange(t *testing.T) {
	t.Parallel()
	m, key := newMemory(), types.NamespacedName{Namespace: "shop", Name: "db"}
	if m.isMade(key, childInputs{"a", 1}) {
		t.Error("children count as applied before the first look")
	}
	m.noteMade(key, childInputs{"a", 1})
	if !m.isMade(key, childInputs{"a", 1}) || m.isMade(key, childInputs{"a", 2}) || m.isMade(key, childInputs{"b", 1}) {
		t.Error("it remembers something else than was noted")
	}
	m.forget(key)
	if m.isMade(key, childInputs{"a", 1}) {
		t.Error("a cluster that is gone is remembered")
	}
}

// The look before the full pass must not delay the detection of a member whose node is gone.
func TestALookIsShortWhereAMemberHangs(t *testing.T) {
	t.Parallel()
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort("127.0.77.1", strconv.Itoa(agent.Port)))
	if err != nil {
		t.Skip(err)
	}
	defer silent.Close()
	_, found := atRest(t)
	known := found.settle("7", found.status(), clusterMemory{agents: agent.NewClient((&tls.Config{MinVersion: tls.VersionTLS12}).Clone, agentTimeout)})
	known.addresses = slices.Repeat([]string{"127.0.77.1"}, 3)
	began := time.Now()
	if _, isEnough := known.holds(t.Context()); isEnough {
		t.Error("a look is enough although no member answers")
	}
	if took := time.Since(began); took >= agentTimeout {
		t.Errorf("the look took %s", took)
	}
}
