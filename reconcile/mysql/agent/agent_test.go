package agent

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
)

// assignment returns an assignment to a replica, for the start of mysqld that the member reports.
func assignment(member *Agent, epoch int64, primary string) replication.Assignment {
	return replication.Assignment{
		Protocol: replication.Protocol, Record: replication.Record{Epoch: epoch, Revision: 1, Primary: primary, InSync: []string{primary}},
		Role: replication.RoleReplica, Boot: member.Status().Boot, SourceHost: primary + ".pods", SourceAddress: "10.0.0.1", SourcePort: 3306,
	}
}

func TestStateSurvivesACrashWhileItIsWritten(t *testing.T) {
	t.Parallel()
	layout := newLayout(t)
	want := state{Data: replication.OriginMember, Held: replication.Record{Epoch: 7, Primary: "db-2", InSync: []string{"db-0", "db-2"}, RequiredAcks: 1}, HeldRole: replication.RoleReplica}
	if err := saveState(layout.stateFile(), want); err != nil {
		t.Fatal(err)
	}
	write(t, layout.stateFile()+".new", `{"data":"Fre`) // a crash before the rename leaves this
	if diff := cmp.Diff(want, stateOf(t, layout)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want.Held.Epoch = 8
	if err := saveState(layout.stateFile(), want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, stateOf(t, layout)); diff != "" {
		t.Errorf("the next write (-want +got):\n%s", diff)
	}
}

func TestStateIsAbsentOrAnError(t *testing.T) {
	t.Parallel()
	layout := newLayout(t)
	if _, found, err := loadState(layout.stateFile()); found || err != nil {
		t.Errorf("a new volume: found %t, %v", found, err)
	}
	if err := saveState(layout.stateFile()+"/nowhere/member.json", memberState()); err == nil {
		t.Error("saving a state that cannot be written succeeds")
	}
	write(t, layout.stateFile(), "")
	if _, _, err := loadState(layout.stateFile()); err == nil {
		t.Error("an empty file counts as a state")
	}
}

func TestAssignRefusesWhatIsStale(t *testing.T) {
	t.Parallel()
	held := replication.Record{Epoch: 3, Revision: 1, Primary: "db-0", InSync: []string{"db-0"}}
	tests := map[string]struct {
		held    replication.Record
		epoch   int64
		primary string
		refused bool
	}{
		"the first one ever":                {replication.Record{}, 1, "db-0", false},
		"the same again":                    {held, 3, "db-0", false},
		"a later epoch":                     {held, 4, "db-1", false},
		"an earlier epoch":                  {held, 2, "db-0", true},
		"an earlier epoch, another primary": {held, 2, "db-1", true},
		"this epoch, another primary":       {held, 3, "db-1", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			layout := newLayout(t)
			member := newAgent(t, layout, state{Data: replication.OriginMember, Held: test.held})
			offered := assignment(member, test.epoch, test.primary)
			err := member.Assign(offered)
			var stale *replication.StaleError
			if errors.As(err, &stale) != test.refused || (err != nil) != test.refused {
				t.Fatalf("got %v, want a refusal: %t", err, test.refused)
			}
			want := offered.Record
			if test.refused {
				want = test.held
			}
			if got := stateOf(t, layout).Held; !got.Equal(want) {
				t.Errorf("the member holds %+v, want %+v", got, want)
			}
			if taken := member.Status().Assignment != nil; taken == test.refused {
				t.Errorf("the member follows the assignment: %t, want %t", taken, !test.refused)
			}
		})
	}
}

func TestAssignIsKeptBeforeItTakesEffect(t *testing.T) {
	t.Parallel()
	layout := newLayout(t)
	member := newAgent(t, layout, memberState())
	if err := os.RemoveAll(layout.Volume); err != nil {
		t.Fatal(err)
	}
	err := member.Assign(assignment(member, 1, "db-0"))
	var stale *replication.StaleError
	if err == nil || errors.As(err, &stale) {
		t.Fatalf("got %v, want an error that the volume cannot be written", err)
	}
	if status := member.Status(); status.Assignment != nil || status.Held.Epoch != 0 {
		t.Errorf("the agent follows an assignment that it could not store: %+v", status)
	}
}

// TestAPrimaryWithoutAVolumeAcceptsThatItIsReplaced: its volume failed, and no other member may take over before.
func TestAPrimaryWithoutAVolumeAcceptsThatItIsReplaced(t *testing.T) {
	t.Parallel()
	layout := newLayout(t)
	leads := memberState()
	leads.Held, leads.HeldRole = replication.Record{Epoch: 1, Revision: 4, Primary: "db-0"}, replication.RolePrimary
	member := newAgent(t, layout, leads)
	if err := os.RemoveAll(layout.Volume); err != nil {
		t.Fatal(err)
	}
	fence := replication.Assignment{Role: replication.RoleReplica, Boot: member.Status().Boot, Record: replication.Record{Epoch: 2, Revision: 5, FormerPrimary: "db-0"}}
	if err := member.Assign(fence); err != nil {
		t.Fatal(err)
	}
	if status := member.Status(); status.Assignment == nil || !status.Held.Equal(fence.Record) {
		t.Errorf("the member does not follow the record: %+v", status)
	}
	follow := fence
	follow.Record = replication.Record{Epoch: 2, Revision: 6, Primary: "db-1"}
	if err := member.Assign(follow); err == nil {
		t.Error("the member accepts a primary that it cannot store")
	}
}

// counted returns an assignment of this release, for the member's start of mysqld.
func counted(revision int64, acks int, boot string) replication.Assignment {
	return replication.Assignment{
		Protocol: replication.Protocol, Record: replication.Record{Epoch: 1, Revision: revision, Primary: "db-0", InSync: []string{"db-0", "db-1"}},
		Role: replication.RolePrimary, Boot: boot, Acks: acks,
	}
}

func TestAssignRefusesWhatIsLateAlsoAfterARestart(t *testing.T) {
	t.Parallel()
	layout := newLayout(t)
	member := newAgent(t, layout, memberState())
	boot := func() string { return member.Status().Boot }
	if err := member.Assign(counted(7, 1, boot())); err != nil {
		t.Fatal(err)
	}
	late := map[string]func() replication.Assignment{
		"of an earlier revision":           func() replication.Assignment { return counted(6, 1, boot()) },
		"of this revision, but different":  func() replication.Assignment { return counted(7, 0, boot()) },
		"meant for another start":          func() replication.Assignment { return counted(8, 1, "another") },
		"of an operator that counts wrong": func() replication.Assignment { return counted(0, 0, boot()) },
	}
	for _, life := range []string{"before", "after"} {
		for name, assignment := range late {
			var stale *replication.StaleError
			if err := member.Assign(assignment()); !errors.As(err, &stale) {
				t.Errorf("%s the restart, an assignment %s: got %v, want a refusal", life, name, err)
			}
		}
		if status := member.Status(); status.Last == nil || status.Last.Acks != 1 || status.Held.Revision != 7 {
			t.Errorf("%s the restart the agent reports %+v", life, status)
		}
		restarted, err := New(layout, Identity{}, "", member.log)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = restarted.local.Close() })
		member = restarted
	}
	if err := member.Assign(counted(7, 1, boot())); err != nil {
		t.Errorf("the same assignment for the new start: %v", err)
	}
}

func TestAMemberThatWaitsSaysWhyItRefusesItsOperator(t *testing.T) {
	t.Parallel()
	member := newAgent(t, newLayout(t), state{Data: replication.OriginMember, Held: counted(7, 1, "").Record})
	look := func() string {
		observed := someObservation()
		local := member.localView(observed)
		member.publish(observed, local, replication.NextStep(local), followed{})
		return member.Status().Message
	}
	if err := member.Assign(counted(6, 1, member.Status().Boot)); err == nil {
		t.Fatal("the agent follows an operator whose record is older")
	}
	if message := look(); !strings.Contains(message, "revision 6") || !strings.Contains(message, "holds revision 7") {
		t.Errorf("the message is %q", message)
	}
	if err := member.Assign(counted(8, 1, member.Status().Boot)); err != nil {
		t.Fatal(err)
	}
	if message := look(); strings.Contains(message, "refuse") {
		t.Errorf("the message still complains: %q", message)
	}
	if protocol := member.Status().Protocol; protocol != replication.Protocol {
		t.Errorf("the agent reports protocol %d", protocol)
	}
}

func TestAPrimaryIsLookedAtAgainOnlyForWhatIsNewThere(t *testing.T) {
	t.Parallel()
	member := newAgent(t, newLayout(t), memberState())
	told := assignment(member, 1, "db-0")
	if err := member.Assign(told); err != nil {
		t.Fatal(err)
	}
	observed := someObservation()
	observed.Server.Channel = replication.Channel{Configured: true, SourceHost: told.SourceAddress, SourcePort: told.SourcePort, IO: "Yes", SQL: "Yes"}
	own, err := replication.ParseGTIDSet(observed.Server.ServerUUID + ":1")
	if err != nil {
		t.Fatal(err)
	}
	look := func(at *replication.Source) replication.Observed {
		local := member.localView(observed)
		local.Source = at
		member.learn(local, replication.NextStep(local))
		return member.localView(observed)
	}
	if !replication.NeedsSource(member.localView(observed)) {
		t.Error("an agent that knows nothing about the primary does not ask it")
	}
	if replication.NeedsSource(look(&replication.Source{ServerUUID: "primary"})) {
		t.Error("the agent asks again although nothing here is new")
	}
	observed.Server.Executed = own
	if !replication.NeedsSource(member.localView(observed)) {
		t.Error("a transaction was written here, but the agent does not ask whether the primary has it")
	}
	if local := look(&replication.Source{ServerUUID: "primary"}); !local.Errant.Equal(own) {
		t.Errorf("the agent found %q, but remembers %q", own, local.Errant)
	}
	if local := look(&replication.Source{Err: "no route"}); !local.Errant.Equal(own) {
		t.Error("the agent forgot the primary after a failed look")
	}
	if err := member.Assign(assignment(member, 2, "db-2")); err != nil {
		t.Fatal(err)
	}
	if local := member.localView(observed); local.Known != nil || !local.Errant.Empty() {
		t.Error("the agent judges by the transactions of another primary")
	}
}

func TestAssignWakesTheLoopOnce(t *testing.T) {
	t.Parallel()
	member := newAgent(t, newLayout(t), memberState())
	for range 3 {
		if err := member.Assign(assignment(member, 1, "db-0")); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-member.wake:
	default:
		t.Fatal("the loop is not woken")
	}
	select {
	case <-member.wake:
		t.Error("the loop is woken twice for one change")
	default:
	}
}

func TestNewNeedsThePreparedVolume(t *testing.T) {
	t.Parallel()
	layout := newLayout(t)
	if _, err := New(layout, Identity{}, "", newAgent(t, newLayout(t), memberState()).log); err == nil {
		t.Error("an agent starts with a volume that the init container has not prepared")
	}
}

func TestEveryStartOfMysqldNeedsANewConfirmation(t *testing.T) {
	t.Parallel()
	member := newAgent(t, newLayout(t), memberState())
	boot := func() string { return member.Status().Boot }
	writing := someObservation()
	writing.Server.SuperReadOnly = false
	see := func() {
		observed := writing
		local := member.localView(observed)
		member.publish(observed, local, replication.NextStep(local), followed{})
	}

	first := boot()
	see()
	if boot() != first {
		t.Error("a look at a healthy mysqld changed the token")
	}
	member.unanswered(context.DeadlineExceeded, followed{})
	if boot() != first {
		t.Error("a slow look changed the token")
	}
	see()
	runs(t, member, supervisor.State{Start: "first", Starts: 1})
	gone := boot()
	if gone == first {
		t.Error("mysqld has ended, but the old confirmation is still valid")
	}
	if status := member.Status(); status.State != replication.StateStarting || status.Writable || status.Serves() {
		t.Errorf("the agent reports %+v for a mysqld that has ended", status)
	}
	runs(t, member, supervisor.State{Start: "second", Starts: 2, Running: true})
	runs(t, member, supervisor.State{Start: "third", Starts: 3, Running: true})
	early := boot()
	if early == gone {
		t.Error("mysqld restarted between two looks, but the old confirmation is still valid")
	}
	see()
	third := boot()
	if third == early {
		t.Error("a confirmation from before mysqld answered is valid")
	}
	see()
	runs(t, member, supervisor.State{Start: "third", Starts: 3, Running: true, Open: true})
	if boot() != third {
		t.Error("the token changes while nothing happens")
	}
	if local := member.localView(someObservation()); local.Boot == third {
		t.Error("a user closed mysqld, but the old confirmation is still valid")
	}
	member.unsupervised(errors.New("connection refused"))
	if boot() == third || member.currentStart() != "" {
		t.Error("the container of mysqld has ended, but the old confirmation is still valid")
	}
}

func TestPublishReportsWhatIsCertain(t *testing.T) {
	t.Parallel()
	member := newAgent(t, newLayout(t), memberState())
	primary := assignment(member, 1, "db-0")
	primary.Role, primary.Silent = replication.RolePrimary, []string{"db-2"}
	before := member.follows()
	if err := member.Assign(primary); err != nil {
		t.Fatal(err)
	}
	observed := someObservation()
	observed.Server.SuperReadOnly, observed.Server.SourceAcks = false, 1
	local := member.localView(observed)
	step := replication.NextStep(local)
	if step.Verb != replication.VerbStopEnforcingAcks {
		t.Fatalf("the step is %s", step.Verb)
	}
	member.publish(observed, local, step, before)
	if status := member.Status(); status.AcksEnforced != 0 || status.Silent != nil {
		t.Errorf("the agent reports %d acknowledgements and the silent %v, though it is about to require none and looked before the assignment arrived", status.AcksEnforced, status.Silent)
	}
	member.publish(observed, local, step, member.follows())
	if status := member.Status(); status.Silent != nil || status.ObservedUnder != (replication.Version{}) {
		t.Errorf("the agent reports the silent %v under %v, whose accounts it has not locked", status.Silent, status.ObservedUnder)
	}
	member.receivers = receivers{start: member.start, known: true}
	member.publish(observed, local, step, member.follows())
	if got := member.Status().ObservedUnder; got != primary.Record.Version() {
		t.Errorf("the agent observed itself under %v, want %v", got, primary.Record.Version())
	}
	if diff := cmp.Diff([]string{"db-2"}, member.Status().Silent); diff != "" {
		t.Errorf("the silent members at its next look (-want +got):\n%s", diff)
	}
}

// TestALookAtAPrimaryHoldsForItsEpoch: another member may have led meanwhile, and this one may have copied its data.
func TestALookAtAPrimaryHoldsForItsEpoch(t *testing.T) {
	t.Parallel()
	a := newAgent(t, newLayout(t), memberState())
	order := replication.Assignment{Role: replication.RoleReplica, SourceHost: "db-0.pods", Record: replication.Record{Epoch: 1, Primary: "db-0"}}
	a.learn(replication.Observed{Assignment: &order, Source: &replication.Source{ServerUUID: "before"}}, replication.Step{})
	for epoch, isKnown := range map[int64]bool{1: true, 3: false} {
		order.Record.Epoch = epoch
		a.assignment = &order
		if local := a.localView(someObservation()); (local.Known != nil) != isKnown {
			t.Errorf("epoch %d: the last look is %+v", epoch, local.Known)
		}
	}
}

// TestPublishReportsAllThatAMemberHas: a channel that was set up again has received nothing yet. What the member executed before counts all
// the same, or no member could take over soon after another one.
func TestPublishReportsAllThatAMemberHas(t *testing.T) {
	t.Parallel()
	set := func(text string) replication.GTIDSet {
		t.Helper()
		found, err := replication.ParseGTIDSet(text)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	const primary, before = "4e11fa47-71ca-11e1-9e33-c80aa9429562", "5e11fa47-71ca-11e1-9e33-c80aa9429562"
	for name, test := range map[string]struct{ executed, retrieved, want string }{
		"nothing":                        {"", "", ""},
		"the channel was set up again":   {before + ":1-9", "", before + ":1-9"},
		"some of it is not applied":      {primary + ":1-7", primary + ":5-9", primary + ":1-9"},
		"it follows the second primary":  {before + ":1-9," + primary + ":1-2", primary + ":1-3", before + ":1-9," + primary + ":1-3"},
		"nothing that came is applied":   {"", primary + ":1-3", primary + ":1-3"},
		"all that it received is there":  {primary + ":1-9", primary + ":4-9", primary + ":1-9"},
		"a gap of the second one's logs": {before + ":1-9", primary + ":2-3", before + ":1-9," + primary + ":2-3"},
	} {
		member := newAgent(t, newLayout(t), memberState())
		observed := someObservation()
		observed.Server.Executed, observed.Server.Channel.Retrieved = set(test.executed), set(test.retrieved)
		local := member.localView(observed)
		member.publish(observed, local, replication.NextStep(local), followed{})
		if got := member.Status().Received; !got.Equal(set(test.want)) {
			t.Errorf("%s: it reports that it has %s, want %s", name, got, test.want)
		}
	}
}

func TestPublishReportsWhetherAReplicaMayStillAcknowledge(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		on, active bool
		io         string
		want       bool
	}{
		"on and connected":              {true, true, "Yes", true},
		"on, and about to connect":      {true, false, "Connecting", true},
		"on, with no receiver":          {true, false, "No", false},
		"off":                           {false, false, "Yes", false},
		"off, but the connection lasts": {false, true, "Yes", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			member := newAgent(t, newLayout(t), memberState())
			observed := someObservation()
			observed.Server.ReplicaAcks, observed.Server.Channel = test.on, replication.Channel{Configured: true, IO: test.io, SQL: "Yes", AckActive: test.active}
			local := member.localView(observed)
			member.publish(observed, local, replication.NextStep(local), followed{})
			if got := member.Status().Acknowledging; got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestAcksShortCountsFromTheFirstLookThatFoundTooFew(t *testing.T) {
	t.Parallel()
	member := newAgent(t, newLayout(t), memberState())
	begin := time.Unix(1000, 0)
	observed := someObservation()
	observed.AskedAcks, observed.AckClients = 2, 0
	if got := member.acksShort(begin.Add(-time.Minute), observed); got != 0 || !member.shortSince.IsZero() {
		t.Errorf("before mysqld opens, no replica can connect: %d seconds", got)
	}
	observed.Server.SuperReadOnly = false
	for _, look := range []struct {
		after time.Duration
		there int
		want  int
	}{{0, 2, 0}, {time.Second, 1, 0}, {4 * time.Second, 1, 3}, {9 * time.Second, 0, 8}, {10 * time.Second, 2, 0}, {11 * time.Second, 1, 0}} {
		observed.AckClients = look.there
		if got := member.acksShort(begin.Add(look.after), observed); got != look.want {
			t.Errorf("after %s: %d seconds, want %d", look.after, got, look.want)
		}
	}
}

func TestOriginIsKeptBeforeTheFirstWrite(t *testing.T) {
	t.Parallel()
	layout := newLayout(t)
	member := newAgent(t, layout, state{Data: replication.OriginFresh})
	if err := member.acceptWrites(t.Context(), replication.Assignment{}, nil); err == nil {
		t.Fatal("there is no mysqld, but the agent accepted writes")
	}
	if got := stateOf(t, layout).Data; got != replication.OriginMember {
		t.Errorf("the data still counts as %s after the first write", got)
	}
	if got := member.Status().Origin; got != replication.OriginMember {
		t.Errorf("the agent reports %s", got)
	}
}

// TestAReplicaTakesNoPasswordsThatItHas: the replica was primary before, and admitted members with other passwords. The agent has no
// password to try, so it needs no mysqld here.
func TestAReplicaTakesNoPasswordsThatItHas(t *testing.T) {
	t.Parallel()
	member := newAgent(t, newLayout(t), memberState())
	member.admittedDiffer = true
	if err := member.refreshPasswords(t.Context(), mayTry); err != nil {
		t.Error(err)
	}
	if err := member.refreshPasswords(t.Context(), maySet); err == nil {
		t.Error("as the primary it sets no passwords for all members, or there is a mysqld, so this test proves nothing")
	}
}

// TestTheFirstStartOfRestoredDataIsSettled: the file for mysqld's next start no longer creates root, also while the operator sends an
// assignment.
func TestTheFirstStartOfRestoredDataIsSettled(t *testing.T) {
	t.Parallel()
	layout := newLayout(t)
	member := newAgent(t, layout, state{Data: replication.OriginMember, RestoredFrom: &RestoredFrom{UID: "1"}})
	if err := prepareBootstrap(layout, false, false); err != nil || !strings.Contains(read(t, layout.bootstrapFile()), "has_root") {
		t.Fatalf("mysqld's first start does not create root (%v), so this test proves nothing", err)
	}
	assigned := make(chan error, 1)
	go func() { assigned <- member.Assign(assignment(member, 1, "db-0")) }() // for the race detector
	if err := member.finishBootstrap(); err != nil {
		t.Fatal(err)
	}
	if err := <-assigned; err != nil {
		t.Fatal(err)
	}
	if got := read(t, layout.bootstrapFile()); strings.Contains(got, "has_root") || !strings.Contains(got, mysqld.AgentUser) {
		t.Errorf("mysqld's next start runs:\n%s", got)
	}
}
