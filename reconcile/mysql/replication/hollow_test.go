package replication

import (
	"slices"
	"strings"
	"testing"
)

// hollow makes a member report this set as hollow. The first transaction of the set began on this member.
func hollow(set string) saying {
	return func(t *testing.T, s *Status) {
		t.Helper()
		s.Hollow = gtids(t, set)
		s.ServerUUID = s.Hollow.Servers()[0]
	}
}

// judged sets the transactions that the agent has found to change no row.
func (s *scene) judged(set string) *scene {
	s.local.Hollow = gtids(s.t, set)
	return s
}

func TestHollowTransactionsAreNoWrites(t *testing.T) {
	t.Parallel()
	running := func() *scene { return member(t).asReplica().following() }
	tellSteps(t, map[string]stepStory{
		"a replica that made only hollow ones continues to serve": {
			scene: running().having("A:1-10,B:1-2").judged("B:1-2").source("A:1-10", ""), verb: VerbNone, state: StateReplicating},
		"an additional row makes it errant, and the message names only the row": {
			scene: running().having("A:1-10,B:1-3").judged("B:1-2").source("A:1-10", ""), verb: VerbNone, state: StateErrant, says: "has 1 transactions that the primary db-0 does not have: " + uuidB + ":3;"},
		"until they are judged it is errant": {
			scene: running().having("A:1-10,B:1").source("A:1-10", ""), verb: VerbNone, state: StateErrant},
		"while it cannot query the primary, it continues to serve": {
			scene: running().having("A:1-10,B:1").knowing("A:1-10", "B:1").judged("B:1").with(func(l *Observed) { l.Source = &Source{Err: "no route"} }), verb: VerbNone, state: StateReplicating},
		"after a restart it follows its primary": {
			scene: member(t).asReplica().source("A:1-20", "").judged("B:1").with(func(l *Observed) { l.Server.Executed = gtids(t, "A:1-10,B:1") }),
			verb:  VerbPointToSource, state: StateCatchingUp},
		"they do not prevent that a copy replaces its data": {
			scene: member(t).asReplica().source("A:1-90", "A:1-50").judged("B:1-3").with(func(l *Observed) { l.Server.Executed = gtids(t, "A:1-10,B:1-3") }),
			verb:  VerbClone, state: StateCloning, needsCopy: true},
		"a row among them prevents that": {
			scene: member(t).asReplica().source("A:1-90", "A:1-50").judged("B:1-2").with(func(l *Observed) { l.Server.Executed = gtids(t, "A:1-10,B:1-3") }),
			verb:  VerbNone, state: StateErrant},
	})
}

// TestAReplicaThatRestartsWhileItsTransactionIsMatched: the primary's commit may wait for this very member, so the member must follow the
// primary.
func TestAReplicaThatRestartsWhileItsTransactionIsMatched(t *testing.T) {
	t.Parallel()
	restarted := func(purged string) *scene {
		s := member(t).asReplica().acknowledging().having("A:1-10,B:1").source("A:1-10", purged)
		return s.with(func(l *Observed) { l.Source.Pending, l.Server.ReplicaAcks = gtids(t, "B:1"), true })
	}
	if got := ToInspect(restarted("").local); !got.Equal(gtids(t, "B:1")) {
		t.Errorf("%q is judged, want what is in progress on the primary", got)
	}
	tellSteps(t, map[string]stepStory{
		"it follows its primary": {
			scene: restarted("").judged("B:1"), verb: VerbPointToSource, state: StateCatchingUp},
		"also before it is judged, or if it is a row of another server that both got": {
			scene: restarted(""), verb: VerbPointToSource, state: StateCatchingUp},
		"not if the primary does not have the row in progress": {
			scene: restarted("").having("A:1-10,B:1-2"), verb: VerbNone, state: StateErrant, says: "has 1 transactions that the primary db-0 does not have: " + uuidB + ":2;"},
		"if it needs a copy, a row must be on the primary first": {
			scene: restarted("A:1-11"), verb: VerbNone, state: StateErrant, says: uuidB + ":1;"},
		"a hollow transaction need not be on the primary": {
			scene: restarted("A:1-11").judged("B:1"), verb: VerbNone, state: StateWaiting, needsCopy: true},
	})
}

// TestWhatIsOnlyReceivedIsAppliedAndThenJudged: a replica received B:1 from a former primary, and has restarted before it applied that. It
// cannot tell yet whether B:1 changes rows, and the new primary does not have it.
func TestWhatIsOnlyReceivedIsAppliedAndThenJudged(t *testing.T) {
	t.Parallel()
	// restarted is the replica after a restart. The new primary has the address of the former one, or another.
	restarted := func() *scene {
		return member(t).asReplica().following().stopped().received("A:1-10,B:1").source("A:1-20", "")
	}
	another := func(l *Observed) { l.Server.Channel.SourceHost = "10.0.0.2" }
	applies := func(l *Observed) { l.Server.Channel.SQL = "Yes" }
	applied := func(l *Observed) { l.Server.Executed = gtids(t, "A:1-10,B:1") }
	unasked := func(l *Observed) { l.Known, l.Errant, l.Source = l.Source, gtids(t, "B:1"), nil }
	tellSteps(t, map[string]stepStory{
		"it applies what it received, and receives no more": {
			scene: restarted(), verb: VerbApplyReceived, state: StateErrant, says: "resolved (applies what it received)"},
		"also if the new primary has another address": {
			scene: restarted().with(another), verb: VerbApplyReceived, state: StateErrant},
		"it waits for the applier": {
			scene: restarted().with(applies), verb: VerbNone, state: StateErrant},
		"also if it could not ask the primary again": {
			scene: restarted().with(applies).with(unasked), verb: VerbNone, state: StateErrant},
		"and with the other address": {
			scene: restarted().with(another).with(applies), verb: VerbNone, state: StateErrant},
		"all is applied, and not judged yet: it does not follow": {
			scene: restarted().with(applies).with(applied), verb: VerbStopReplica, state: StateErrant},
		"nor at the other address": {
			scene: restarted().with(another).with(applies).with(applied), verb: VerbNone, state: StateErrant},
		"B:1 changes no row: it follows": {
			scene: restarted().with(applied).judged("B:1"), verb: VerbStartReplica, state: StateCatchingUp},
		"also if its applier runs": {
			scene: restarted().with(applies).with(applied).judged("B:1"), verb: VerbStartReplica, state: StateCatchingUp},
		"and at the other address": {
			scene: restarted().with(another).with(applies).with(applied).judged("B:1"), verb: VerbTurnToSource, state: StateCatchingUp},
		"B:1 has rows: a user must decide": {
			scene: restarted().with(applied), verb: VerbNone, state: StateErrant, says: uuidB + ":1"},
		"what cannot be applied needs a user, too": {
			scene: restarted().with(func(l *Observed) { l.Server.Channel.SQLErrno = 1062 }), verb: VerbNone, state: StateBroken},
		"no copy replaces it before it is judged": {
			scene: restarted().source("A:1-90", "A:1-50"), verb: VerbApplyReceived, state: StateErrant},
		"then a copy may": {
			scene: restarted().source("A:1-90", "A:1-50").with(applied).judged("B:1"), verb: VerbClone, state: StateCloning, needsCopy: true},
		"what a user wrote here while it replicated does not stop it": {
			scene: restarted().received("A:1-10").with(applies).with(applied).with(unasked), verb: VerbStartReplica, state: StateErrant},
	})
}

func TestAMemberTellsTheHollowOnesThatItsPrimaryLacks(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		scene *scene
		want  string
	}{
		"those that are missing on the primary":        {member(t).asReplica().following().having("A:1-10,B:1-5").judged("B:1-5").source("A:1-10,B:1-3", ""), "B:4-5"},
		"none once it has them":                        {member(t).asReplica().following().having("A:1-10,B:1-5").judged("B:1-5").source("A:1-10,B:1-5", ""), ""},
		"none that the primary has in progress":        {member(t).asReplica().following().having("A:1-10,B:1").judged("B:1").source("A:1-10", "").with(func(l *Observed) { l.Source.Pending = gtids(t, "B:1") }), ""},
		"a stopped replica reports them, too":          {member(t).asReplica().having("A:1-10,B:1").judged("B:1").source("A:1-10", ""), "B:1"},
		"while the primary was never reached, its own": {member(t).asReplica().having("A:1-10,B:1-2").judged("B:1").with(func(l *Observed) { l.Source = &Source{Err: "no route"} }), "B:1"},
		"before it knows its primary, its own":         {member(t).having("A:1-10,B:1-2").judged("B:1").with(func(l *Observed) { l.HeldRole, l.Server.ServerUUID = RoleReplica, uuidB }), "B:1"},
		"a primary has none":                           {member(t).asPrimary(0).judged("B:1"), ""},
	} {
		if got := NextStep(test.scene.local).Hollow; !got.Equal(gtids(t, test.want)) {
			t.Errorf("%s: the member reports %q, want %q", name, got, test.want)
		}
	}
}

func TestWhatIsJudged(t *testing.T) {
	t.Parallel()
	own := func(role Role, set string) *scene {
		return member(t).having(set).with(func(l *Observed) { l.HeldRole, l.Server.ServerUUID = role, uuidB })
	}
	shares := func(set string) func(*Observed) { return func(l *Observed) { l.WasShared = gtids(t, set) } }
	lonely := func(l *Observed) { l.DisconnectedFor = judgeShared }
	for name, test := range map[string]struct {
		scene *scene
		want  string
	}{
		"what is missing on the primary":                           {member(t).asReplica().following().having("A:1-10,B:1-2").source("A:1-10", ""), "B:1-2"},
		"if it has never queried the primary, its own":             {member(t).asReplica().following().having("A:1-10,B:1-2"), "B:1-2"},
		"also if that failed":                                      {member(t).asReplica().having("A:1-10,B:1-2").with(func(l *Observed) { l.Source = &Source{Err: "no route"} }), "B:1-2"},
		"what the primary has in progress, too":                    {member(t).asReplica().having("A:1-10,B:1").source("A:1-10", "").with(func(l *Observed) { l.Source.Pending = gtids(t, "B:1") }), "B:1"},
		"what an earlier query found":                              {member(t).asReplica().following().having("A:1-10,B:1-2").knowing("A:1-10", "B:1"), "B:1"},
		"not what is only received":                                {member(t).asReplica().following().received("B:1").source("A:1-10", ""), ""},
		"nothing on a primary":                                     {member(t).asPrimary(0), ""},
		"nothing while clients can write":                          {own(RoleReplica, "B:1").with(func(l *Observed) { l.Server.SuperReadOnly = false }), ""},
		"a replica without a primary: its own":                     {own(RoleReplica, "A:1-10,B:1-3"), "B:1-3"},
		"not what its primary had, until it is elected":            {own(RoleReplica, "A:1-10,B:1-3").with(shares("B:1-2")), "B:3"},
		"that, too, if no member is elected for long":              {own(RoleReplica, "A:1-10,B:1-3").with(shares("B:1-2")).with(lonely), "B:1-3"},
		"the latest of many":                                       {own(RoleReplica, "B:1-5000"), "B:4001-5000"},
		"nothing on a former primary, which may take writes again": {own(RolePrimary, "B:1-3"), ""},
		"unless it gets no assignment for a while":                 {own(RolePrimary, "B:1-3").with(func(l *Observed) { l.Unassigned = judgeUnassigned }), "B:1-3"},
		"a volume of unknown role, after a while":                  {own("", "B:1-3").with(func(l *Observed) { l.Unassigned = judgeUnassigned }), "B:1-3"},
		"a running replica whose agent restarted, at once: none":   {own(RoleReplica, "A:1-3"), ""},
	} {
		if got := ToInspect(test.scene.local); !got.Equal(gtids(t, test.want)) {
			t.Errorf("%s: %q is judged, want %q", name, got, test.want)
		}
	}
}

func TestAReplicaThatHasNothingOfItsOwn(t *testing.T) {
	t.Parallel()
	running := func() *scene { return member(t).asReplica().following() }
	for name, test := range map[string]struct {
		scene *scene
		want  bool
	}{
		"everything is from the primary":           {running().source("A:1-10", ""), true},
		"or was at the last query":                 {running().having("A:1-99").knowing("A:1-10", ""), true},
		"it has a transaction of its own":          {running().having("A:1-10,B:1").source("A:1-10", ""), false},
		"also if the primary has it in progress":   {running().having("A:1-10,B:1").source("A:1-10", "").with(func(l *Observed) { l.Source.Pending = gtids(t, "B:1") }), false},
		"it has never queried the primary":         {running(), false},
		"it cannot query the primary":              {running().knowing("A:1-10", "").with(func(l *Observed) { l.Source = &Source{Err: "no route"} }), false},
		"it is not receiving now":                  {running().source("A:1-10", "").with(func(l *Observed) { l.Server.Channel.IO = "Connecting" }), false},
		"it follows another primary than assigned": {running().source("A:1-10", "").with(func(l *Observed) { l.Server.Channel.SourceHost = "10.0.0.2" }), false},
		"a primary": {member(t).asPrimary(0), false},
	} {
		if got := HasNothingOwn(test.scene.local); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// matched is a healthy cluster with a revision and confirmed members, whose primary knows its UUID.
func matched(t *testing.T, replicas int) *story {
	t.Helper()
	s := healthy(t, replicas, FullAcks(replicas))
	primary := s.c.Members[0].Status
	primary.ServerUUID = uuidA
	primary.Assignment.Boot, primary.Assignment.Record = primary.Boot, s.c.Record
	return s
}

func TestThePrimaryIsAskedToMatch(t *testing.T) {
	t.Parallel()
	tell := func(s *story, ordinal int, says ...saying) *story {
		for _, say := range says {
			say(t, s.c.Members[ordinal].Status)
		}
		return s
	}
	for name, test := range map[string]struct {
		story *story
		want  string
	}{
		"no member reports any":            {matched(t, 3), ""},
		"one member reports two":           {tell(matched(t, 3), 1, hollow("B:1-2")), "B:1-2"},
		"two members report one each":      {tell(tell(matched(t, 3), 1, hollow("B:1")), 2, hollow("B:5")), "B:1:5"},
		"two members report the same one":  {tell(tell(matched(t, 3), 1, has("A:1-10,B:1"), hollow("B:1")), 2, has("A:1-10,B:1"), hollow("B:1")), "B:1"},
		"not what the primary already has": {tell(tell(matched(t, 3), 1, hollow("B:1-2")), 0, has("A:1-10,B:1")), "B:2"},
		"nor what it has in progress": {tell(tell(matched(t, 3), 1, hollow("B:1-2")), 0, func(t *testing.T, s *Status) {
			t.Helper()
			s.Pending = gtids(t, "B:1-2")
		}), ""},
		"nor what began there": {tell(matched(t, 3), 1, hollow("A:99")), ""},
		"1,000 at a time":      {tell(matched(t, 3), 1, hollow("B:1-5000")), "B:4001-5000"},
		"nor GTIDs under which another member may have rows": {tell(tell(matched(t, 3), 1, hollow("B:1-2")), 2, has("A:1-10,B:1")), "B:2"},
		"not of a member whose data is replaced":             {tell(matched(t, 3), 1, hollow("B:1"), needsCopy), ""},
		"not while too few acknowledge":                      {tell(tell(matched(t, 3), 1, hollow("B:1")), 0, func(_ *testing.T, s *Status) { s.AckClients = 0 }), ""},
		"not while the primary does not take writes":         {tell(tell(matched(t, 3), 1, hollow("B:1")), 0, func(_ *testing.T, s *Status) { s.State, s.Writable = StatePromoting, false }), ""},
		"not while the primary does not answer":              {tell(matched(t, 3), 1, hollow("B:1")).silent(0), ""},
	} {
		got := Decide(test.story.c).Matching
		if test.want == "" {
			if got != nil {
				t.Errorf("%s: the request is %+v", name, *got)
			}
			continue
		}
		if got == nil || !got.GTIDs.Equal(gtids(t, test.want)) || got.Primary != "db-0" || got.Boot != "boot-db-0" || got.Epoch != 1 {
			t.Errorf("%s: the request is %+v, want %s of db-0", name, got, test.want)
		}
	}
}

func TestAMemberMatchesOnlyAsThePrimaryThatIsMeant(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(now *Status, asked *Matching)
		says   string
	}{
		"the primary that the request names": {func(*Status, *Matching) {}, ""},
		"a replica":                          {func(now *Status, _ *Matching) { now.HeldRole = RoleReplica }, "not the primary"},
		"a later epoch":                      {func(now *Status, _ *Matching) { now.Held.Epoch++ }, "not the primary"},
		"an epoch of another primary":        {func(_ *Status, asked *Matching) { asked.Primary = "db-1" }, "not the primary"},
		"another start":                      {func(_ *Status, asked *Matching) { asked.Boot = "before" }, "restarted"},
		"not confirmed":                      {func(now *Status, _ *Matching) { now.Assignment = nil }, "restarted"},
		"read-only":                          {func(now *Status, _ *Matching) { now.Writable = false }, "does not take writes"},
		"too few acknowledge":                {func(now *Status, _ *Matching) { now.AcksEnforced = 3 }, "too few"},
		"too many":                           {func(_ *Status, asked *Matching) { asked.GTIDs = gtids(t, "B:1-1001") }, "more than 1000"},
		"its own":                            {func(_ *Status, asked *Matching) { asked.GTIDs = gtids(t, "A:7") }, "of this server"},
		"a server without a name":            {func(now *Status, _ *Matching) { now.ServerUUID = "" }, "of this server"},
		"its own under a tag, among others":  {func(_ *Status, asked *Matching) { asked.GTIDs = gtids(t, "B:1,"+uuidA+":tag:7") }, "of this server"},
	} {
		now := *matched(t, 3).c.Members[0].Status
		asked := Matching{Epoch: 1, Primary: "db-0", Boot: now.Boot, GTIDs: gtids(t, "B:1-1000")}
		test.change(&now, &asked)
		err := AcceptMatching(now, asked)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", name, err, test.says)
		}
	}
}

// TestHollowTransactionsDecideNoElection: after everything was deleted, members with different hollow transactions do not count as volumes
// that have diverged.
func TestHollowTransactionsDecideNoElection(t *testing.T) {
	t.Parallel()
	last := rec(4, 1, "db-0", "db-1", "db-2")
	retained := func(says1, says2 []saying) *story {
		s := wanting(t, 3).scaled(3).older(0, 1, 2).hears(0, StateWaiting, holding(last), wasPrimary)
		return s.hears(1, StateWaiting, append([]saying{holding(last)}, says1...)...).hears(2, StateWaiting, append([]saying{holding(last)}, says2...)...)
	}
	wantRecord(t, retained([]saying{has("A:1-10,B:1-2"), hollow("B:1-2")}, []saying{has("A:1-10," + strings.Replace(uuidB, "4", "5", 1) + ":1"), hollow(strings.Replace(uuidB, "4", "5", 1) + ":1")}),
		rec(5, 0, "db-0"))
	wantRecord(t, retained([]saying{has("A:1-10,B:1-2"), hollow("B:1-2")}, []saying{has("A:1-10,B:1")}), rec(5, 0, "db-0"))
	wantNote(t, retained([]saying{has("A:1-10,B:1-2"), hollow("B:1")}, []saying{has("A:1-11")}), ReasonAdoptionBlocked, true, "no member holds every transaction") // B:2 is a row
	rows := func(_ *testing.T, s *Status) { s.ServerUUID = uuidB }
	notItsOwn := func(t *testing.T, s *Status) { t.Helper(); s.Hollow, s.ServerUUID = gtids(t, "B:1"), uuidA }
	wantRecord(t, retained([]saying{has("A:1-10,B:1"), notItsOwn}, []saying{has("A:1-10,B:1"), rows}), rec(5, 0, "db-1")) // what db-2 made is missing on db-0
}

func TestSetsInParts(t *testing.T) {
	t.Parallel()
	set := gtids(t, "A:1-3:7,B:backup:2-3")
	if got, want := slices.Collect(set.All()), []string{uuidA + ":1", uuidA + ":2", uuidA + ":3", uuidA + ":7", uuidB + ":backup:2", uuidB + ":backup:3"}; !slices.Equal(got, want) {
		t.Errorf("all of it: %v, want %v", got, want)
	}
	if got, want := set.Servers(), []string{uuidA, uuidB}; !slices.Equal(got, want) {
		t.Errorf("its servers: %v, want %v", got, want)
	}
	for most, want := range map[int64]string{0: "", 1: "A:7", 2: "A:3:7", 4: "A:1-3:7", 5: "A:1-3:7,B:backup:3", 99: "A:1-3:7,B:backup:2-3"} {
		if got := set.Latest(most); !got.Equal(gtids(t, want)) {
			t.Errorf("the latest %d: %q, want %q", most, got, want)
		}
	}
	if got := set.Both(gtids(t, "A:2-8,B:1-9")); !got.Equal(gtids(t, "A:2-3:7")) {
		t.Errorf("what both have: %q", got)
	}
}
