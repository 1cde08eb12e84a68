package replication

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// story is one observation of a cluster db-0, db-1, …, described step by step.
type story struct {
	t *testing.T
	c Cluster
}

// wanting begins without anything: no record, no StatefulSet, no reports.
func wanting(t *testing.T, replicas int) *story {
	t.Helper()
	s := &story{t: t, c: Cluster{Replicas: replicas, Port: 3306, Limits: usual(), Durability: Durability{Continue: true, Grace: 10 * time.Second}}}
	for ordinal := range replicas {
		s.grow(ordinal)
	}
	return s
}

func (s *story) grow(ordinal int) *Member {
	for len(s.c.Members) <= ordinal {
		n := len(s.c.Members)
		s.c.Members = append(s.c.Members, Member{Name: fmt.Sprintf("db-%d", n), Ordinal: n, Host: fmt.Sprintf("db-%d.pods", n), Address: fmt.Sprintf("10.0.0.%d", n+1)})
	}
	return &s.c.Members[ordinal]
}

// scaled sets the size of the StatefulSet; the Pods exist.
func (s *story) scaled(to int) *story {
	s.c.Scale = to
	for ordinal := range to {
		s.grow(ordinal).Pod = true
	}
	return s
}

// on sets the record: the first member in sync is the primary.
func (s *story) on(epoch int64, acks int, inSync ...string) *story {
	s.c.Record = rec(epoch, acks, inSync...)
	return s
}

// rec is a record whose primary is the first member named.
func rec(epoch int64, acks int, inSync ...string) Record {
	sorted := slices.Clone(inSync)
	sortMembers(sorted)
	return Record{Epoch: epoch, Revision: 1, Primary: inSync[0], InSync: sorted, RequiredAcks: acks}
}

type saying func(t *testing.T, s *Status)

// hears sets the status that a member reports.
func (s *story) hears(ordinal int, state State, says ...saying) *story {
	s.t.Helper()
	member := s.grow(ordinal)
	member.Status = &Status{State: state, Origin: OriginMember, Held: s.c.Record, ObservedUnder: s.c.Record.Version(), Boot: "boot-" + member.Name, Protocol: Protocol, Executed: gtids(s.t, "A:1-10"), Received: gtids(s.t, "A:1-10"), HasNoOthers: true}
	if s.c.Record.Primary != "" {
		member.Status.HeldRole = RoleReplica
	}
	for _, say := range says {
		say(s.t, member.Status)
	}
	return s
}

// older makes members' volumes older than the MySQLCluster.
func (s *story) older(ordinals ...int) *story {
	for _, ordinal := range ordinals {
		s.grow(ordinal).OlderData = true
	}
	return s
}

func (s *story) silent(ordinal int) *story {
	s.grow(ordinal).Status = nil
	return s
}

// lost is a member whose Pod exists and that has not answered for long.
func (s *story) lost(ordinal int) *story {
	member := s.silent(ordinal).grow(ordinal)
	member.UnheardFor = LostAfter
	return s
}

// joining names the members that may follow the primary and not acknowledge.
func (s *story) joining(members ...string) *story {
	s.c.Record.Joining = members
	return s
}

func (s *story) gone(ordinal int) *story {
	s.grow(ordinal).Pod, s.grow(ordinal).Status = false, nil
	return s
}

func (s *story) with(change func(*Cluster)) *story {
	change(&s.c)
	return s
}

func (s *story) blocking() *story {
	s.c.Durability.Continue, s.c.Durability.Least = false, FullAcks(s.c.Replicas)
	return s
}

// accepts is a replica that has accepted an assignment of this record.
func accepts(of Record, acknowledge bool) saying {
	return func(_ *testing.T, s *Status) {
		s.Last = &Assignment{Role: RoleReplica, Record: of, Acknowledge: acknowledge, SourceHost: "db-0.pods", SourceAddress: "10.0.0.1", SourcePort: 3306}
	}
}

func fresh(_ *testing.T, s *Status) {
	s.Origin, s.Executed, s.Received = OriginFresh, GTIDSet{}, GTIDSet{}
}
func acking(_ *testing.T, s *Status)     { s.Acknowledging = true }
func needsCopy(_ *testing.T, s *Status)  { s.NeedsCopy = true }
func wasPrimary(_ *testing.T, s *Status) { s.HeldRole = RolePrimary }
func holding(r Record) saying            { return func(_ *testing.T, s *Status) { s.Held = r } }
func has(set string) saying {
	return func(t *testing.T, s *Status) { t.Helper(); s.Executed, s.Received = gtids(t, set), gtids(t, set) }
}

// enforces is what a primary reports about acknowledgements: for how many commits wait, and how many connected replicas can give them.
func enforces(acks, connected int) saying {
	return func(_ *testing.T, s *Status) {
		s.AcksEnforced, s.AckClients, s.ConnectedReplicas, s.Writable = acks, connected, connected, true
		s.Assignment = &Assignment{Role: RolePrimary, Acks: acks}
	}
}

// knows is what a primary reports once it has observed itself after the operator sent it the silent members.
func knows(silent ...string) saying {
	return func(_ *testing.T, s *Status) { s.Silent = silent }
}

// told is the latest assignment that a primary accepted and may not have carried out yet.
func told(acks int) saying {
	return func(_ *testing.T, s *Status) { s.Assignment = &Assignment{Role: RolePrimary, Acks: acks} }
}

func shortFor(seconds int) saying {
	return func(_ *testing.T, s *Status) { s.AcksShortSeconds = seconds }
}

func wantRecord(t *testing.T, s *story, want Record) {
	t.Helper()
	got := Decide(s.c)
	if !want.Equal(s.c.Record) {
		want = want.after(Record{Revision: s.c.nextRevision() - 1})
	}
	if diff := cmp.Diff(want, got.Record); diff != "" {
		t.Errorf("the next record (-want +got):\n%s", diff)
	}
	if !want.Equal(s.c.Record) && got.Assignments != nil {
		t.Errorf("the operator assigns %v before the record is written", got.Assignments)
	}
}

func wantNote(t *testing.T, s *story, reason Reason, blocked bool, says ...string) {
	t.Helper()
	got := Decide(s.c)
	if got.Note == nil || got.Note.Reason != reason || got.Note.Blocked != blocked {
		t.Fatalf("the note is %+v, want %s (blocked: %t)", got.Note, reason, blocked)
	}
	for _, part := range says {
		if !strings.Contains(got.Note.Message, part) {
			t.Errorf("the note %q does not contain %q", got.Note.Message, part)
		}
	}
}

// healthy is a cluster in its normal state: db-0 takes writes, all others acknowledge.
func healthy(t *testing.T, replicas, acks int) *story {
	t.Helper()
	s := wanting(t, replicas).scaled(replicas)
	var inSync []string
	for ordinal := range replicas {
		inSync = append(inSync, s.c.Members[ordinal].Name)
	}
	s.on(1, acks, inSync...).hears(0, StateWriting, enforces(acks, replicas-1), wasPrimary)
	for ordinal := 1; ordinal < replicas; ordinal++ {
		s.hears(ordinal, StateReplicating, acking)
	}
	return s
}

func TestDecideKeepsTheRecord(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		story *story
		want  Record
	}{
		"a healthy cluster: nothing changes": {
			healthy(t, 3, 1), rec(1, 1, "db-0", "db-1", "db-2")},
		"admit: a member that accepts not to acknowledge may follow": {
			healthy(t, 2, 1).on(1, 0, "db-0").hears(0, StateWriting, enforces(0, 0)).hears(1, StateWaiting, accepts(rec(1, 0, "db-0"), false)), rec(1, 0, "db-0").joining("db-1")},
		"no admission: it has not accepted anything": {
			healthy(t, 2, 1).on(1, 0, "db-0").hears(0, StateWriting, enforces(0, 0)).hears(1, StateWaiting), rec(1, 0, "db-0")},
		"no admission: it has accepted that under an earlier record, and a later one may still reach it": {
			healthy(t, 2, 1).on(2, 0, "db-0").hears(0, StateWriting, enforces(0, 0)).hears(1, StateWaiting, accepts(rec(1, 0, "db-0"), false)), rec(2, 0, "db-0")},
		"no admission: it was allowed to acknowledge": {
			healthy(t, 2, 1).on(1, 0, "db-0").hears(0, StateWriting, enforces(0, 0)).hears(1, StateWaiting, accepts(rec(1, 0, "db-0"), true)), Record{Epoch: 1, Revision: 2, Primary: "db-0", InSync: []string{"db-0"}}},
		"no admission: it has not been observed since": {
			healthy(t, 2, 1).on(1, 0, "db-0").hears(0, StateWriting, enforces(0, 0)).hears(1, StateStarting, accepts(rec(1, 0, "db-0"), false), func(_ *testing.T, s *Status) { s.ObservedUnder = Version{} }), rec(1, 0, "db-0")},
		"no admission: it still acknowledges": {
			healthy(t, 2, 1).on(1, 0, "db-0").hears(0, StateWriting, enforces(0, 0)).hears(1, StateWaiting, accepts(rec(1, 0, "db-0"), false), acking), rec(1, 0, "db-0")},
		"no admission: the user does not want it": {
			healthy(t, 1, 0).hears(1, StateWaiting, accepts(rec(1, 0, "db-0"), false)), rec(1, 0, "db-0")},
		"dismiss: the user does not want it any more": {
			healthy(t, 1, 0).joining("db-1").hears(0, StateWriting, enforces(0, 0)).hears(1, StateReplicating), rec(1, 0, "db-0")},
		"join: a replica that follows closely": {
			healthy(t, 2, 1).on(1, 0, "db-0").joining("db-1").hears(0, StateWriting, enforces(0, 0)).hears(1, StateReplicating), rec(1, 0, "db-0", "db-1")},
		"no join: a replica that the primary does not allow to follow": {
			healthy(t, 2, 1).on(1, 0, "db-0").hears(0, StateWriting, enforces(0, 0)).hears(1, StateReplicating), rec(1, 0, "db-0")},
		"no join: a replica that is still catching up": {
			healthy(t, 2, 1).on(1, 0, "db-0").joining("db-1").hears(0, StateWriting, enforces(0, 0)).hears(1, StateCatchingUp), rec(1, 0, "db-0").joining("db-1")},
		"no join: a replica of another epoch": {
			healthy(t, 2, 1).on(2, 0, "db-0").joining("db-1").hears(0, StateWriting, enforces(0, 0)).hears(1, StateReplicating, holding(rec(1, 0, "db-0"))), rec(2, 0, "db-0").joining("db-1")},
		"no join: it has not compared its transactions with the primary's": {
			healthy(t, 2, 1).on(1, 0, "db-0").joining("db-1").hears(0, StateWriting, enforces(0, 0)).hears(1, StateReplicating, func(_ *testing.T, s *Status) { s.HasNoOthers = false }), rec(1, 0, "db-0").joining("db-1")},
		"no join: it has compared them with an earlier primary's": {
			healthy(t, 2, 1).on(2, 0, "db-0").joining("db-1").hears(0, StateWriting, enforces(0, 0)).hears(1, StateReplicating, func(_ *testing.T, s *Status) { s.ObservedUnder.Epoch = 1 }), rec(2, 0, "db-0").joining("db-1")},
		"no join: a member that is leaving": {
			healthy(t, 2, 1).on(1, 0, "db-0", "db-1").hears(0, StateWriting, enforces(0, 1)).hears(1, StateReplicating).hears(2, StateReplicating), rec(1, 0, "db-0", "db-1")},
		"raise: the primary enforces more, and the replica has everything that the primary had": {
			healthy(t, 2, 1).on(1, 0, "db-0", "db-1").hears(0, StateWriting, enforces(1, 1)).hears(1, StateReplicating, acking), rec(1, 1, "db-0", "db-1")},
		"no raise: the primary does not enforce it yet": {
			healthy(t, 2, 1).on(1, 0, "db-0", "db-1").hears(0, StateWriting, enforces(0, 1)).hears(1, StateReplicating, acking), rec(1, 0, "db-0", "db-1")},
		"no raise: an earlier commit is missing on the replica": {
			healthy(t, 2, 1).on(1, 0, "db-0", "db-1").hears(0, StateWriting, enforces(1, 1), has("A:1-11")).hears(1, StateReplicating, acking), rec(1, 0, "db-0", "db-1")},
		"no raise: a commit in progress is missing on the replica, and a member that has left since may have acknowledged it": {
			healthy(t, 2, 1).on(1, 0, "db-0", "db-1").hears(0, StateWriting, enforces(1, 1), func(t *testing.T, s *Status) { t.Helper(); s.Pending = gtids(t, "A:11") }).hears(1, StateReplicating, acking), rec(1, 0, "db-0", "db-1")},
		"no raise: it is not certain that the primary does not write": {
			healthy(t, 2, 1).on(1, 0, "db-0", "db-1").hears(0, StatePromoting, enforces(1, 1)).hears(1, StateReplicating, acking), rec(1, 0, "db-0", "db-1")},
		"no raise: the replica has everything but is no longer connected to the primary": {
			healthy(t, 2, 1).on(1, 0, "db-0", "db-1").hears(0, StateWriting, enforces(1, 0), shortFor(60)).hears(1, StateReplicating), rec(1, 0, "db-0", "db-1")},
		"no raise: the primary has just been assigned fewer acknowledgements": {
			healthy(t, 2, 1).on(1, 0, "db-0", "db-1").hears(0, StateWriting, enforces(1, 1), told(0)).hears(1, StateReplicating, acking), rec(1, 0, "db-0", "db-1")},
		"no raise: it has not locked out the others yet": {
			healthy(t, 2, 1).on(1, 0, "db-0", "db-1").hears(0, StateWriting, enforces(1, 1), func(_ *testing.T, s *Status) { s.ObservedUnder = Version{} }).hears(1, StateReplicating, acking), rec(1, 0, "db-0", "db-1")},
		"no raise: its agent restarted and has no assignment yet": {
			healthy(t, 2, 1).on(1, 0, "db-0", "db-1").hears(0, StateWriting, enforces(1, 1), func(_ *testing.T, s *Status) { s.Assignment = nil }).hears(1, StateReplicating, acking), rec(1, 0, "db-0", "db-1")},
		"no raise: the size of the cluster requires no more": {
			healthy(t, 3, 1).hears(0, StateWriting, enforces(2, 2)), rec(1, 1, "db-0", "db-1", "db-2")},
		"degrade: the replica is away for longer than the grace period": {
			healthy(t, 2, 1).hears(0, StateWriting, enforces(1, 0), shortFor(10)).silent(1), rec(1, 0, "db-0", "db-1")},
		"degrade: it is away, and the primary waits for it before it opens to clients": {
			healthy(t, 2, 1).hears(0, StatePromoting, enforces(1, 0), shortFor(10)).silent(1), rec(1, 0, "db-0", "db-1")},
		"no degrade: the primary is not open to replicas yet": {
			healthy(t, 2, 1).hears(0, StatePromoting, enforces(1, 0), shortFor(10), func(_ *testing.T, s *Status) { s.Writable = false }).silent(1), rec(1, 1, "db-0", "db-1")},
		"fewer members: it waits for replicas before it opens to clients": {
			healthy(t, 3, 1).with(func(c *Cluster) { c.Replicas = 1 }).hears(0, StatePromoting, enforces(1, 0)), rec(1, 0, "db-0", "db-1", "db-2")},
		"no degrade: the grace period has not passed yet": {
			healthy(t, 2, 1).hears(0, StateWriting, enforces(1, 0), shortFor(9)).silent(1), rec(1, 1, "db-0", "db-1")},
		"no degrade: the user prefers to wait": {
			healthy(t, 2, 1).blocking().hears(0, StateWriting, enforces(1, 0), shortFor(9999)).silent(1), rec(1, 1, "db-0", "db-1")},
		"no degrade: the primary itself does not answer": {
			healthy(t, 2, 1).silent(0).silent(1), rec(1, 1, "db-0", "db-1")},
		"degrade only as much as necessary: two of four replicas are left, one acknowledges": {
			healthy(t, 5, 2).hears(0, StateWriting, enforces(2, 1), shortFor(60)).silent(2).silent(3).silent(4), rec(1, 1, "db-0", "db-1", "db-2", "db-3", "db-4")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantRecord(t, test.story, test.want)
		})
	}
}

func TestDecideLetsMembersLeaveOnlyWhenTheyAreCertainlySilent(t *testing.T) {
	t.Parallel()
	all := rec(1, 1, "db-0", "db-1", "db-2")
	tests := map[string]struct {
		story *story
		want  Record
	}{
		"a member that does not answer stays: it may still acknowledge": {
			healthy(t, 3, 1).silent(2), all},
		"a member whose Pod is gone stays: the StatefulSet creates it again": {
			healthy(t, 3, 1).gone(2), all},
		"a member beyond the size of the StatefulSet stays while its Pod exists": {
			func() *story { s := healthy(t, 3, 1); s.c.Replicas, s.c.Scale = 2, 2; return s }(), all},
		"when its Pod is gone, the primary is informed first, because its last status may be older": {
			func() *story { s := healthy(t, 3, 1).gone(2); s.c.Replicas, s.c.Scale = 2, 2; return s }(), all},
		"it leaves once the primary has reported since, and what the others hold keeps the promise": {
			func() *story {
				s := healthy(t, 3, 1).gone(2).hears(0, StateWriting, enforces(1, 2), knows("db-2"))
				s.c.Replicas, s.c.Scale = 2, 2
				return s
			}(), rec(1, 1, "db-0", "db-1")},
		"it leaves later if the others will soon hold what only it may have had": {
			func() *story {
				s := healthy(t, 3, 1).gone(2).hears(0, StateWriting, enforces(1, 1), has("A:1-11"), knows("db-2"))
				s.c.Replicas, s.c.Scale = 2, 2
				return s
			}(), all},
		"the promise shrinks if no other member will hold it soon": {
			func() *story {
				s := healthy(t, 3, 1).gone(2).hears(0, StateWriting, enforces(1, 0), has("A:1-11"), knows("db-2"))
				s.c.Replicas, s.c.Scale = 2, 2
				return s
			}(), rec(1, 0, "db-0", "db-1")},
		"a commit in progress counts: the acknowledgement of the leaving member may complete it": {
			func() *story {
				s := healthy(t, 3, 1).gone(2).hears(0, StateWriting, enforces(2, 0), knows("db-2"), func(t *testing.T, s *Status) { t.Helper(); s.Pending = gtids(t, "A:11") })
				s.c.Replicas, s.c.Scale = 2, 2
				return s
			}(), rec(1, 0, "db-0", "db-1")},
		"a member that came back with an empty volume leaves": {
			healthy(t, 3, 1).hears(0, StateWriting, enforces(1, 2), knows("db-2")).hears(2, StateWaiting, fresh), rec(1, 1, "db-0", "db-1")},
		"a member that needs a copy leaves": {
			healthy(t, 3, 1).hears(0, StateWriting, enforces(1, 2), knows("db-2")).hears(2, StateWaiting, needsCopy), rec(1, 1, "db-0", "db-1")},
		"a member that came back in time stays": {
			healthy(t, 3, 1).hears(0, StateWriting, enforces(1, 2), knows("db-2")), all},
		"but not while it acknowledges": {
			healthy(t, 3, 1).hears(0, StateWriting, enforces(1, 2), knows("db-2")).hears(2, StateWaiting, needsCopy, acking), all},
		"and not while the primary does not answer: it is unknown what the others must hold": {
			healthy(t, 3, 1).silent(0).hears(2, StateWaiting, fresh), all},
		"not on a report under an earlier record: the primary may have been sent since that it may follow": {
			healthy(t, 3, 1).hears(0, StateWriting, enforces(1, 2), knows("db-2"), func(_ *testing.T, s *Status) { s.ObservedUnder.Revision-- }).hears(2, StateWaiting, fresh), all},
		"a member that has not answered for long leaves once the primary refuses it: the others keep the promise without it": {
			healthy(t, 3, 1).lost(2).hears(0, StateWriting, enforces(1, 1), knows("db-2")), rec(1, 1, "db-0", "db-1")},
		"not before": {
			healthy(t, 3, 1).lost(2).hears(0, StateWriting, enforces(1, 1)), all},
		"nor if the promise would shrink: the other one does not have everything yet": {
			healthy(t, 3, 1).lost(2).hears(0, StateWriting, enforces(1, 0), has("A:1-11"), knows("db-2")), all},
		"the primary never leaves": {
			healthy(t, 3, 1).hears(0, StateWriting, enforces(1, 2), needsCopy), all},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantRecord(t, test.story, test.want)
		})
	}
}

func TestDecideAssignsAcknowledgements(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		story *story
		acks  int
		// allowed are the replicas that may acknowledge.
		allowed []string
	}{
		"one member requires none": {healthy(t, 1, 0), 0, nil},
		"two require one":          {healthy(t, 2, 1), 1, []string{"db-1"}},
		"three require one":        {healthy(t, 3, 1), 1, []string{"db-1", "db-2"}},
		"five require two":         {healthy(t, 5, 2), 2, []string{"db-1", "db-2", "db-3", "db-4"}},
		"a replica that has just joined may acknowledge, none required": {healthy(t, 2, 0).hears(0, StateWriting, enforces(0, 0)).hears(1, StateReplicating), 0, []string{"db-1"}},
		"it acknowledges: one is required":                              {healthy(t, 2, 0).hears(0, StateWriting, enforces(0, 1)), 1, []string{"db-1"}},
		"not before the primary sees the replica":                       {healthy(t, 2, 0).hears(0, StateWriting, enforces(0, 0)), 0, []string{"db-1"}},
		"the promised number is required even without replicas":         {healthy(t, 2, 1).hears(0, StateWriting, enforces(1, 0)).silent(1), 1, nil},
		"Block requires them although the record can promise nothing":   {healthy(t, 2, 0).blocking().on(1, 0, "db-0").hears(0, StateWriting, enforces(0, 0)).hears(1, StateWaiting, fresh), 1, nil},
		"Block requires none of a single member":                        {healthy(t, 1, 0).blocking(), 0, nil},
		"a replica that is not in sync may not acknowledge": {
			healthy(t, 3, 1).on(1, 1, "db-0", "db-1").hears(0, StateWriting, enforces(1, 1)).hears(1, StateReplicating, acking).hears(2, StateCatchingUp), 1, []string{"db-1"}},
		"a replica that is leaving may no longer acknowledge": {
			func() *story { s := healthy(t, 3, 1); s.c.Replicas = 2; return s }(), 1, []string{"db-1"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Decide(test.story.c)
			if !got.Record.Equal(test.story.c.Record) {
				t.Fatalf("the record changes first: %+v", got.Record)
			}
			if acks := got.Assignments["db-0"].Acks; acks != test.acks {
				t.Errorf("commits wait for %d, want %d", acks, test.acks)
			}
			var allowed []string
			for _, member := range test.story.c.Members {
				if got.Assignments[member.Name].Acknowledge {
					allowed = append(allowed, member.Name)
				}
			}
			if diff := cmp.Diff(test.allowed, allowed); diff != "" {
				t.Errorf("members that may acknowledge (-want +got):\n%s", diff)
			}
		})
	}
}

// downFor is a member whose mysqld has not answered for so long.
func downFor(long time.Duration) saying {
	return func(_ *testing.T, s *Status) { s.UnansweredFor = long }
}

// unheardBy is the same cluster, whose replica db-2 has not answered for so long. The primary, which has a lease, does not hear some.
func unheardBy(s *story, unheard time.Duration, lacking ...string) *story {
	return s.lost(2).with(func(c *Cluster) {
		c.Members[2].UnheardFor, c.Members[2].MissingFor = unheard, unheard
		c.Members[0].Status.Lease = &Lease{Needs: 1, IsHeard: true, Unheard: lacking}
	})
}

func TestDecideTellsThePrimaryWhoIsSilent(t *testing.T) {
	t.Parallel()
	s := healthy(t, 3, 1).hears(2, StateWaiting, fresh)
	if diff := cmp.Diff([]string{"db-2"}, Decide(s.c).Assignments["db-0"].Silent); diff != "" {
		t.Errorf("silent members (-want +got):\n%s", diff)
	}
	for name, test := range map[string]struct {
		story *story
		want  []string
	}{
		"a replica that has not answered for long":   {healthy(t, 3, 1).lost(2), []string{"db-2"}},
		"not one that has not answered for a moment": {healthy(t, 3, 1).silent(2), nil},
		"one that the primary does not hear either":  {unheardBy(healthy(t, 3, 1), UnheardAfter, "db-2"), []string{"db-2"}},
		"not at once":                         {unheardBy(healthy(t, 3, 1), UnheardAfter-1, "db-2"), nil},
		"not so soon if the primary hears it": {unheardBy(healthy(t, 3, 1), LostAfter-1), nil},
		"not one that the primary hears, although it misses another":   {unheardBy(healthy(t, 5, 2), LostAfter-1, "db-1"), nil},
		"not the only one that the primary hears":                      {unheardBy(healthy(t, 3, 1), LostAfter, "db-1"), nil},
		"not so soon while its Pod starts or ends":                     {unheardBy(healthy(t, 3, 1), LostAfter-1, "db-2").with(func(c *Cluster) { c.Members[2].MissingFor = 0 }), nil},
		"not before a primary would be replaced":                       {unheardBy(healthy(t, 3, 1), UnheardAfter, "db-2").with(func(c *Cluster) { c.Limits.Unreachable = 30 * time.Second }), nil},
		"one whose mysqld has been down for long":                      {unheardBy(healthy(t, 3, 1), 0, "db-2").hears(2, StateStarting, downFor(LostAfter)), []string{"db-2"}},
		"one whose mysqld hangs":                                       {unheardBy(healthy(t, 3, 1), 0).hears(2, StateStarting, downFor(LostAfter)), []string{"db-2"}},
		"not one whose mysqld starts":                                  {unheardBy(healthy(t, 3, 1), 0, "db-2").hears(2, StateStarting, downFor(LostAfter-1)), nil},
		"not if the promise needs it: the other one is catching up":    {healthy(t, 3, 1).lost(2).hears(1, StateCatchingUp, acking), nil},
		"not the only replica: the record rather promises nothing":     {healthy(t, 2, 1).lost(1), nil},
		"not if the record promises nothing":                           {healthy(t, 3, 0).lost(2), nil},
		"one of two: the promise needs two of the three that are left": {healthy(t, 5, 2).lost(3), []string{"db-3"}},
		"not if the primary does not write":                            {healthy(t, 3, 1).lost(2).hears(0, StatePromoting, enforces(1, 2)), nil},
	} {
		if diff := cmp.Diff(test.want, Decide(test.story.c).Assignments["db-0"].Silent); diff != "" {
			t.Errorf("%s: silent members (-want +got):\n%s", name, diff)
		}
	}
	back := healthy(t, 3, 1).hears(0, StateWriting, enforces(1, 2), func(_ *testing.T, s *Status) { s.Assignment.Silent = []string{"db-2"} })
	got := Decide(back.c).Assignments
	if got["db-0"].Silent != nil || got["db-2"].Acknowledge || !got["db-1"].Acknowledge {
		t.Errorf("a member that the primary knows as silent acknowledges before the primary is informed: %+v", got)
	}
}

func TestDecideScales(t *testing.T) {
	t.Parallel()
	asking := func(s *story, replicas int) *story {
		s.c.Replicas = replicas
		return s
	}
	tests := map[string]struct {
		story  *story
		want   int
		reason Reason
	}{
		"unchanged":                                 {healthy(t, 3, 1), 3, ""},
		"out from 1 to 2":                           {asking(healthy(t, 1, 0), 2), 2, ""},
		"out from 2 to 3":                           {asking(healthy(t, 2, 1), 3), 3, ""},
		"out from 3 to 5, all at once":              {asking(healthy(t, 3, 1), 5), 5, ""},
		"out although the primary does not answer":  {asking(healthy(t, 2, 1).silent(0), 3), 3, ""},
		"in from 3 to 2: no fewer acknowledgements": {asking(healthy(t, 3, 1), 2), 2, ""},
		"in from 5 to 3 waits for the primary to require fewer": {
			asking(healthy(t, 5, 2).on(1, 1, "db-0", "db-1", "db-2", "db-3", "db-4"), 3), 5, ReasonScalingIn},
		"then continues": {
			asking(healthy(t, 5, 1), 3), 3, ""},
		"in waits for a primary that does not answer": {
			asking(healthy(t, 3, 1).silent(0), 2), 3, ReasonScalingIn},
		"in waits for a primary that does not take writes yet": {
			asking(healthy(t, 3, 1).hears(0, StatePromoting), 2), 3, ReasonScalingIn},
		"in waits while the replica that stays does not acknowledge": {
			asking(healthy(t, 3, 1).on(1, 1, "db-0", "db-2").hears(1, StateCatchingUp), 2), 3, ReasonScalingIn},
		"in waits while the replica that stays does not answer": {
			asking(healthy(t, 3, 1).silent(1), 2), 3, ReasonScalingIn},
		"in to a single member waits for none": {
			asking(healthy(t, 2, 0).on(1, 0, "db-0").silent(1), 1), 1, ""},
		"in waits also after commits have continued without replicas": {
			asking(healthy(t, 3, 0).silent(1), 2), 3, ReasonScalingIn},
		"in would remove the primary": {
			asking(healthy(t, 3, 1).on(1, 0, "db-2", "db-0", "db-1").hears(2, StateWriting), 1), 3, ReasonPrimaryWouldLeave},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Decide(test.story.c)
			if !got.Record.Equal(test.story.c.Record) {
				t.Fatalf("the record changes first: %+v", got.Record)
			}
			if got.Scale != test.want {
				t.Errorf("got scale %d, want %d", got.Scale, test.want)
			}
			if reason := noted(got); reason != test.reason {
				t.Errorf("the note's reason is %q, want %q", reason, test.reason)
			}
		})
	}
}

func noted(decision Decision) Reason {
	if decision.Note == nil {
		return ""
	}
	return decision.Note.Reason
}

func TestDecideAsksForFewerAcknowledgementsBeforeMembersLeave(t *testing.T) {
	t.Parallel()
	s := healthy(t, 5, 2)
	s.c.Replicas = 3
	wantRecord(t, s, rec(1, 1, "db-0", "db-1", "db-2", "db-3", "db-4"))
	if got := Decide(s.c); got.Scale != 5 {
		t.Errorf("members leave before the record allows it: scale %d", got.Scale)
	}
}

func TestDecideRoutesReads(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		story       *story
		fromPrimary bool
	}{
		"replicas serve reads":                                     {healthy(t, 2, 1), false},
		"a single member serves reads itself":                      {healthy(t, 1, 0), true},
		"no replica serves: the primary must":                      {healthy(t, 2, 1).hears(1, StateCatchingUp), true},
		"no replica lets clients in":                               {healthy(t, 2, 1).says(1, func(_ *testing.T, s *Status) { s.RefusesClients = true }), true},
		"also while the record changes":                            {func() *story { s := healthy(t, 1, 0); s.c.Record.InSync = nil; return s }(), true},
		"while the primary is replaced, they stay at the replicas": {awaiting(t, 2, 1, 0), false},
		"a replica that is leaving does not count":                 {func() *story { s := healthy(t, 2, 0); s.c.Replicas = 1; return s }(), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Decide(test.story.c); got.ReadFromPrimary != test.fromPrimary {
				t.Errorf("reads go to the primary: %t, want %t", got.ReadFromPrimary, test.fromPrimary)
			}
		})
	}
}

func TestRelaxes(t *testing.T) {
	t.Parallel()
	primary := Assignment{Role: RolePrimary, Acks: 1}
	replica := Assignment{Role: RoleReplica, InSync: true, Acknowledge: true}
	tests := map[string]struct {
		assignment Assignment
		now        Status
		want       bool
	}{
		"a primary that begins to take writes":             {primary, Status{AcksEnforced: 1}, true},
		"a primary that takes writes, as strict as before": {primary, Status{State: StateWriting, Writable: true, AcksEnforced: 1}, false},
		"stricter":                                         {primary, Status{State: StateWriting, Writable: true}, false},
		"less strict":                                      {primary, Status{State: StateWriting, Writable: true, AcksEnforced: 2}, true},
		"a primary that has opened half way":               {primary, Status{State: StatePromoting, Writable: true, AcksEnforced: 1}, true},
		"a replica that begins to acknowledge":             {replica, Status{}, true},
		"a replica that already acknowledges":              {replica, Status{Acknowledging: true}, false},
		"a replica that stops acknowledging":               {Assignment{Role: RoleReplica, InSync: true}, Status{Acknowledging: true}, false},
		"a replica whose data may be replaced from now on": {Assignment{Role: RoleReplica}, Status{}, true},
		"a replica that knows that already":                {Assignment{Role: RoleReplica}, Status{Assignment: &Assignment{}}, false},
		"a replica that is no longer in sync":              {Assignment{Role: RoleReplica}, Status{Assignment: &Assignment{InSync: true}}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := test.assignment.Relaxes(test.now); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestFullAcksIsAMajorityWithThePrimary(t *testing.T) {
	t.Parallel()
	for members, want := range map[int]int{1: 0, 2: 1, 3: 1, 4: 2, 5: 2, 6: 3, 9: 4} {
		if got := FullAcks(members); got != want || 2*(got+1) <= members {
			t.Errorf("%d members require %d acknowledgements, want %d", members, got, want)
		}
	}
}

func TestSortMembersByOrdinal(t *testing.T) {
	t.Parallel()
	names := []string{"db-10", "db-2", "db-0", "db-11", "db-9"}
	sortMembers(names)
	if diff := cmp.Diff([]string{"db-0", "db-2", "db-9", "db-10", "db-11"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
