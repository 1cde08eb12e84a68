package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// restingCluster is what a full pass over a cluster at rest saw when there was nothing to do. As long as neither the cluster nor a child
// has another version, it is enough to ask the members and decide again. If the decision is the same, and the members report nothing new to
// users, a full pass would change nothing.
type restingCluster struct {
	uid types.UID
	// version is the cluster's resourceVersion, children is a digest of those of its children.
	version  string
	children uint64
	agents   *agent.Client
	// view is the input of the decision, the members without their reports.
	view      replication.Cluster
	addresses []string
	// said are digests of the members' reports, as far as a status repeats them: the operator remembers thousands of clusters.
	said            []uint64
	readFromPrimary bool
	// note is what the decision waited for nevertheless, because of an update that is held back; nil for nothing.
	note *replication.Note
	// until is when the next full pass is due, which reads the Secrets again.
	until time.Time
}

// stableReport is what a status repeats of a member's report, except for what changes all the time.
type stableReport struct {
	heard            bool
	message, refused string
	told             replication.Told
}

func steadyOf(member replication.Member) stableReport {
	if member.Status == nil {
		return stableReport{refused: member.Unreachable}
	}
	return stableReport{heard: true, message: steadyMessage(*member.Status), told: member.Status.Told()}
}

func steadyOfAll(members []replication.Member) []uint64 {
	all := make([]uint64, 0, len(members))
	for _, member := range members {
		all = append(all, digest(fmt.Sprintf("%#v", steadyOf(member))))
	}
	return all
}

// CanSkip implements reconcile.SkipChecker: it looks at the members of a settled cluster, and reports whether that was enough.
func (r *reconciler) CanSkip(ctx context.Context, key types.NamespacedName, uid types.UID, version string) (again time.Duration, isEnough bool) {
	known := r.settledAs(key, uid, version)
	if known == nil {
		return jittered(calmEvery), false
	}
	began := r.now()
	members, isEnough := known.holds(ctx)
	if primary, found := memberNamed(members, known.view.Record.Primary); found && primary.Status == nil {
		r.memory.failures.Waited(key, unheard(primary.Name), began) // the pass that follows asks again
		r.memory.failures.Waited(key, missedLook(primary.Name), began)
	}
	r.memory.noteReported(key, uid, members)
	again = known.nextLook(members, r.now())
	if isEnough {
		known.agents.Rest(again)
	}
	return again, isEnough
}

// nextLook returns the time until the next look, if this one was enough.
func (s *restingCluster) nextLook(members []replication.Member, now time.Time) time.Duration {
	if !tellNews(members, s.view.Record) {
		return jittered(calmEvery)
	}
	return max(time.Millisecond, s.until.Sub(now))
}

// settledAs returns a settled cluster of which nothing has changed except perhaps its members' reports; nil for any other.
func (r *reconciler) settledAs(key types.NamespacedName, uid types.UID, version string) *restingCluster {
	known := r.memory.settled(key, uid)
	if known == nil || known.version != version || !r.now().Before(known.until) {
		return nil
	}
	if known.children != digest(r.versions(children.Names{Namespace: key.Namespace, Cluster: key.Name})) {
		return nil
	}
	return known
}

// lookTimeout bounds a look at all members of a settled cluster. The full pass that follows waits longer for a member that hangs, and this
// look must not delay that pass much.
const lookTimeout = agentTimeout / 4

// holds asks the members, and reports whether there is still nothing to do.
func (s *restingCluster) holds(ctx context.Context) (members []replication.Member, isEnough bool) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	members = slices.Clone(s.view.Members)
	limit := func(string) time.Duration { return lookTimeout }
	all := targets{agents: s.agents, primary: s.view.Record.Primary, inSync: s.view.Record.InSync, addresses: s.addresses, limit: limit, least: promptly}
	all.askPrimary(ctx, members)
	if primary, found := memberNamed(members, all.primary); found && (primary.Status == nil || lacksLease(*primary.Status) || primary.Status.IsLate() || primary.Status.Lease.LacksAny()) {
		return members, false // a pass is due: it may have to confirm the primary before it asks the others
	}
	all.askOthers(ctx, members)
	return members, s.stillHolds(members)
}

// stillHolds reports whether the members' reports leave nothing to do, and nothing to report.
func (s *restingCluster) stillHolds(members []replication.Member) bool {
	if !slices.Equal(steadyOfAll(members), s.said) {
		return false
	}
	now := s.view
	now.Members = members
	return s.nothingToDo(members, replication.Decide(now))
}

// nothingToDo reports whether a decision changes neither the record, nor a child, nor a member's assignment, and asks nothing of a member.
func (s *restingCluster) nothingToDo(members []replication.Member, decision replication.Decision) bool {
	if !sameNote(decision.Note, s.note) || decision.Matching != nil || !decision.Record.Equal(s.view.Record) {
		return false
	}
	if decision.Scale != s.view.Scale || decision.ReadFromPrimary != s.readFromPrimary {
		return false
	}
	return !slices.ContainsFunc(members, func(member replication.Member) bool {
		wanted, found := decision.Assignments[member.Name]
		return found && member.Status != nil && !wanted.Followed(*member.Status)
	})
}

func sameNote(one, other *replication.Note) bool {
	return one == nil && other == nil || one != nil && other != nil && *one == *other
}

// isAtRest reports whether everything is as it should be, or would be if an update were not held back: that may last for weeks.
func isAtRest(status v1.MySQLClusterStatus) bool {
	ready := meta.FindStatusCondition(status.Conditions, v1.ConditionReady)
	return ready != nil && (ready.Status == metav1.ConditionTrue || ready.Reason == reasonPrimaryFirst || ready.Reason == reasonUpgradeBlocked)
}

// settle returns what to remember of a cluster after a full pass that had nothing to do; nil if there was something.
func (r passResult) settle(version string, status v1.MySQLClusterStatus, known clusterMemory) *restingCluster {
	cluster, seen := r.cluster, r.seen
	if r.problem != nil || r.children.unsettled || !isAtRest(status) || r.lacks() || r.seen.suspect(cluster.Status) != "" ||
		!apiequality.Semantic.DeepEqual(status, cluster.Status) {
		return nil
	}
	s := &restingCluster{
		uid: cluster.UID, version: version, children: digest(seen.versions), agents: known.agents, view: view(cluster, seen),
		addresses: seen.addresses(), said: steadyOfAll(seen.members), readFromPrimary: r.decision.ReadFromPrimary,
		until: known.lookAgain(secretsEvery),
	}
	if r.isOver(r.note()) {
		s.note = r.decision.Note
	}
	if !s.nothingToDo(seen.members, r.decision) {
		return nil
	}
	s.view.Members = slices.Clone(seen.members)
	for i := range s.view.Members {
		s.view.Members[i].Status = nil
	}
	return s
}
