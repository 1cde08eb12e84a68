package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
)

// TestOnlyAReplacedPrimaryIsMarked: as long as it follows no other member, what it alone has may be unacknowledged.
func TestOnlyAReplacedPrimaryIsMarked(t *testing.T) {
	t.Parallel()
	const cluster = "uid"
	fence := replication.Record{Epoch: 2, Revision: 5, FormerPrimary: "db-0"}
	chosen := replication.Record{Epoch: 2, Revision: 6, Primary: "db-1"}
	assigned := func(cluster string, role replication.Role, record replication.Record) replication.Assignment {
		return replication.Assignment{Cluster: cluster, Role: role, Record: record}
	}
	led := assigned(cluster, replication.RolePrimary, replication.Record{Epoch: 1, Revision: 4, Primary: "db-0"})
	alone := assigned(cluster, replication.RolePrimary, replication.Record{Epoch: 1, Revision: 4, Primary: "db-0"})
	led.Acks = 1
	followed := assigned(cluster, replication.RoleReplica, led.Record)
	for name, test := range map[string]struct {
		last, next replication.Assignment
		want       bool
	}{
		"the primary is fenced":                     {led, assigned(cluster, replication.RoleReplica, fence), true},
		"the primary was away and follows the next": {led, assigned(cluster, replication.RoleReplica, chosen), true},
		"the primary was away for two of them":      {led, assigned(cluster, replication.RoleReplica, replication.Record{Epoch: 3, Revision: 9, Primary: "db-2"}), true},
		"a replica learns of it":                    {followed, assigned(cluster, replication.RoleReplica, fence), false},
		"the primary stays":                         {led, assigned(cluster, replication.RolePrimary, replication.Record{Epoch: 1, Revision: 5, Primary: "db-0"}), false},
		"its commits waited for no replica":         {alone, assigned(cluster, replication.RoleReplica, chosen), false},
		"the resource went back in time":            {led, assigned(cluster, replication.RoleReplica, replication.Record{Epoch: 2, Revision: 4, Primary: "db-1"}), false},
		"its resource was applied again":            {led, assigned("other", replication.RoleReplica, chosen), false},
		"nothing says whose volume it is":           {assigned("", replication.RolePrimary, led.Record), assigned("", replication.RoleReplica, chosen), false},
	} {
		if got := (state{Last: &test.last}).accepting(test.next); (got.Replaced != nil) != test.want {
			t.Errorf("%s: %+v", name, got.Replaced)
		}
	}
	marked := state{Last: &led}.accepting(assigned(cluster, replication.RoleReplica, fence))
	if got := marked.accepting(assigned(cluster, replication.RoleReplica, chosen)); got.Replaced != marked.Replaced {
		t.Errorf("another record changes the mark: %+v", got.Replaced)
	}
	if got := marked.accepting(assigned(cluster, replication.RolePrimary, replication.Record{Epoch: 2, Revision: 6, Primary: "db-0"})); got.Replaced != nil {
		t.Errorf("the primary continues, and is marked: %+v", got.Replaced)
	}
}

// TestSessionsAreEndedForABoundedTime: a user may want to look at the data of a former primary.
func TestSessionsAreEndedForABoundedTime(t *testing.T) {
	t.Parallel()
	began := time.Unix(50_000, 0)
	open, closed := &replaced{}, &replaced{IsKnown: true}
	const unnamed, named = "", "db-1"
	// A node may lead clients to a former primary for so long: two seconds until kube-proxy follows, then ten after a refused connection.
	const mostRemembered = 2*time.Second + 10*time.Second
	type look struct {
		after   time.Duration
		epoch   int64
		former  *replaced
		primary string
		want    bool
	}
	for name, looks := range map[string][]look{
		"no takeover":                     {{0, 2, nil, named, false}},
		"the next primary is chosen":      {{0, 2, closed, unnamed, true}, {30 * time.Second, 2, closed, unnamed, true}},
		"it is named":                     {{0, 2, closed, unnamed, true}, {straysFor, 2, closed, named, true}, {2 * straysFor, 2, closed, named, true}, {2*straysFor + 1, 2, closed, named, false}},
		"it is named, and follows":        {{0, 2, closed, unnamed, true}, {straysFor, 2, nil, named, true}, {straysFor + 1, 2, nil, named, false}},
		"it closes late":                  {{0, 2, open, named, true}, {straysFor, 2, open, named, true}, {2 * straysFor, 2, closed, named, true}},
		"mysqld answers after the naming": {{0, 2, closed, named, true}, {straysFor, 2, closed, named, true}, {straysFor + 1, 2, closed, named, false}},
		"a node remembers a refusal":      {{0, 2, closed, named, true}, {mostRemembered, 2, closed, named, true}},
		"no primary is named":             {{0, 2, closed, unnamed, true}, {mostStrays, 2, closed, unnamed, true}, {mostStrays + 1, 2, closed, unnamed, false}, {time.Hour, 2, closed, unnamed, false}},
		"the next one is replaced":        {{0, 2, closed, unnamed, true}, {1, 2, nil, named, true}, {2, 3, nil, unnamed, true}, {straysFor, 3, nil, named, true}, {straysFor + 1, 3, nil, named, false}},
		"it is named late":                {{0, 2, closed, unnamed, true}, {time.Hour, 2, closed, unnamed, false}, {time.Hour + 1, 2, closed, named, true}, {time.Hour + 1 + straysFor, 2, closed, named, true}, {time.Hour + 2 + straysFor, 2, closed, named, false}},
		"it leads again, and is replaced": {{0, 2, closed, unnamed, true}, {time.Hour, 4, closed, unnamed, true}, {time.Hour + mostStrays, 4, closed, unnamed, true}},
	} {
		now := strays{}
		for _, look := range looks {
			at := began.Add(look.after)
			former := look.former
			if former != nil {
				former = &replaced{Epoch: look.epoch, IsKnown: former.IsKnown}
			}
			now = now.at(at, former, replication.Record{Epoch: look.epoch, Primary: look.primary})
			if got := now.mayArrive(at); got != look.want {
				t.Errorf("%s, after %s: %t", name, look.after, got)
			}
		}
	}
}

// TestAFormerPrimaryReportsThatItRefusesClients as long as clients may arrive, or mysqld refuses them.
func TestAFormerPrimaryReportsThatItRefusesClients(t *testing.T) {
	t.Parallel()
	const epoch = 2
	follows, leads := &replication.Assignment{Role: replication.RoleReplica}, &replication.Assignment{Role: replication.RolePrimary}
	closed, open := replication.Server{SuperReadOnly: true}, replication.Server{}
	for name, test := range map[string]struct {
		former             *replaced
		assigned           *replication.Assignment
		seen               mysqld.Observed
		refuses, isToldNow bool
	}{
		"a former primary":                       {&replaced{Epoch: epoch, IsKnown: true}, follows, mysqld.Observed{Server: closed}, true, true},
		"one that still takes writes":            {&replaced{Epoch: epoch}, follows, mysqld.Observed{Server: open}, true, false},
		"one that leads again":                   {&replaced{Epoch: epoch, IsKnown: true}, leads, mysqld.Observed{Server: closed}, false, false},
		"one whose agent has restarted":          {nil, follows, mysqld.Observed{Server: closed, RefusesClients: true}, true, true},
		"one that leads, and refuses until now":  {nil, leads, mysqld.Observed{Server: closed, RefusesClients: true}, true, false},
		"a member that has never been a primary": {nil, follows, mysqld.Observed{Server: closed}, false, false},
	} {
		member := &Agent{kept: state{Held: replication.Record{Epoch: epoch, Primary: "db-1"}, Replaced: test.former}}
		if mayArrive := member.noteStrays(test.seen, replication.Observed{Assignment: test.assigned}); mayArrive != test.isToldNow {
			t.Errorf("%s: clients may arrive: %t", name, mayArrive)
		}
		if got := member.Status().RefusesClients; got != test.refuses {
			t.Errorf("%s: it reports that it refuses clients: %t", name, got)
		}
	}
}

// TestAFormerPrimaryRefusesClientsAtOnce: it does not wait for its next look, because the operator may lead readers to it before.
func TestAFormerPrimaryRefusesClientsAtOnce(t *testing.T) {
	t.Parallel()
	led := replication.Assignment{Cluster: "uid", Role: replication.RolePrimary, Acks: 1, Record: replication.Record{Epoch: 1, Revision: 1, Primary: "db-0", RequiredAcks: 1}}
	next := replication.Assignment{Cluster: "uid", Role: replication.RoleReplica, Record: replication.Record{Epoch: 2, Revision: 2, FormerPrimary: "db-0", RequiredAcks: 1}}
	followed := led
	followed.Role = replication.RoleReplica
	for name, test := range map[string]struct {
		last replication.Assignment
		want bool
	}{
		"the primary is replaced":     {led, true},
		"a replica of it hears of it": {followed, false},
	} {
		member := newAgent(t, newLayout(t), state{Data: replication.OriginMember, Held: test.last.Record, HeldRole: test.last.Role, Last: &test.last})
		next.Boot = member.Status().Boot
		if err := member.Assign(next); err != nil {
			t.Fatal(err)
		}
		if got := member.Status().RefusesClients; got != test.want {
			t.Errorf("%s: it reports that it refuses clients: %t", name, got)
		}
	}
}

// TestAFormerPrimaryStartsWithoutClients, if the agent knows before the start of mysqld that another member leads.
func TestAFormerPrimaryStartsWithoutClients(t *testing.T) {
	t.Parallel()
	const epoch = 2
	for name, test := range map[string]struct {
		former *replaced
		want   bool
	}{
		"it is still the primary":            {nil, false},
		"another member takes over":          {&replaced{Epoch: epoch}, true},
		"a user has made another one lead":   {&replaced{Epoch: epoch, IsForced: true}, true},
		"it was replaced in an epoch before": {&replaced{Epoch: epoch - 1}, false},
	} {
		layout := newLayout(t)
		write(t, layout.bootstrapFile(), "")
		member := newAgent(t, layout, state{Data: replication.OriginMember, Held: replication.Record{Epoch: epoch}, Replaced: test.former})
		hasStarted := false
		member.hold.unlock = func() { hasStarted = true }
		member.reportHeld()
		member.mindHeldStart(t.Context())
		if refuses := strings.Contains(read(t, layout.bootstrapFile()), "offline_mode"); !hasStarted || refuses != test.want {
			t.Errorf("%s: mysqld starts: %t, and refuses clients: %t", name, hasStarted, refuses)
		}
	}
}

// TestAnUnconfirmedPrimaryServesNoReaders: if it had a lease, another member may have taken over since mysqld ended.
func TestAnUnconfirmedPrimaryServesNoReaders(t *testing.T) {
	t.Parallel()
	led := replication.Assignment{Role: replication.RolePrimary, Boot: "first", Lease: 1, Record: replication.Record{LeaseLasts: 20 * time.Second}}
	free, follows, again := led, led, led
	free.Lease, follows.Role, again.Boot = 0, replication.RoleReplica, "second"
	for name, test := range map[string]struct {
		last, now *replication.Assignment
		want      bool
	}{
		"mysqld has started again":                   {&led, &led, true},
		"the operator has confirmed it":              {&led, &again, false},
		"the agent has started again, too":           {&led, nil, true},
		"it needed no lease":                         {&free, &free, false},
		"it was a replica":                           {&follows, nil, false},
		"it is a replica now":                        {&follows, &follows, false},
		"a new member, which was never assigned yet": {nil, nil, false},
	} {
		if got := mayBeReplaced(test.last, replication.Observed{Assignment: test.now, Boot: "second"}); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestPartsOfBinaryLogsAreSetAside(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		content string
		change  func(t *testing.T, layout Layout)
		extents []mysqld.Extent
		want    string // the copy, or a part of the error
	}{
		"parts":                   {"\xfebin.head.one.two.three", nil, []mysqld.Extent{{File: "binlog.1", To: 9}, {File: "binlog.1", From: 13, To: 17}}, "\xfebin.head.two"},
		"an encrypted log":        {"\xfd\x62in.head", nil, []mysqld.Extent{{File: "binlog.1", To: 9}}, "encrypted"},
		"an empty file":           {"", nil, []mysqld.Extent{{File: "binlog.1", To: 9}}, "binary log"},
		"a log that is too short": {"\xfebin.head", nil, []mysqld.Extent{{File: "binlog.1", To: 10}}, "shorter"},
		"a file elsewhere":        {"\xfebin.head", nil, []mysqld.Extent{{File: "../member.json", To: 9}}, "not the name"},
		"a link instead of the log": {"", func(t *testing.T, layout Layout) {
			t.Helper()
			link(t, "../member.json", filepath.Join(layout.DataDir(), "binlog.1"))
		}, []mysqld.Extent{{File: "binlog.1", To: 9}}, "symbolic links"},
		"a link instead of the folder": {"\xfebin.head", func(t *testing.T, layout Layout) {
			t.Helper()
			link(t, layout.Run, filepath.Dir(layout.setAsideDir(7)))
		}, []mysqld.Extent{{File: "binlog.1", To: 9}}, "not a folder"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			layout := newLayout(t)
			if err := os.MkdirAll(layout.DataDir(), 0o750); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(layout.DataDir(), "binlog.1"), test.content)
			if test.change != nil {
				test.change(t, layout)
			}
			err := layout.copyExtents(test.extents, layout.setAsideDir(7))
			got := fmt.Sprint(err)
			if err == nil {
				got = read(t, filepath.Join(layout.setAsideDir(7), "binlog.1"))
			}
			if !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// link replaces a file by a link.
func link(t *testing.T, to, file string) {
	t.Helper()
	if err := os.RemoveAll(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, file); err != nil {
		t.Fatal(err)
	}
}

// TestAMemberSaysForHowLongItStarts: a mysqld that ends because its container stops is not late.
func TestAMemberSaysForHowLongItStarts(t *testing.T) {
	t.Parallel()
	a, long := &Agent{log: logr.Discard()}, time.Now().Add(-time.Minute)
	a.status.State, a.startingSince = replication.StateStarting, long
	a.mysqld = supervisor.State{Start: "one", Running: true}
	a.unanswered(errors.New("refused"), followed{version: replication.Version{Epoch: 3}})
	if got := a.Status(); got.UnansweredFor < time.Minute || got.Closed == nil || got.Closed.Epoch != 3 {
		t.Errorf("a mysqld that does not answer: %s, closed %v", got.UnansweredFor, got.Closed)
	}
	a.mysqld.Stopping = true
	a.unanswered(errors.New("refused"), followed{})
	if got := a.Status(); got.UnansweredFor > time.Second {
		t.Errorf("a mysqld that stops: %s", got.UnansweredFor)
	}
	a.mysqld.Open = true
	a.unanswered(errors.New("refused"), followed{})
	if got := a.Status(); got.Closed != nil {
		t.Errorf("a mysqld that may take writes is closed: %v", got.Closed)
	}
}

// TestAHangCountsFromTheBeginningOfTheLook, which got no answer. A mysqld that refuses connections has just ended.
func TestAHangCountsFromTheBeginningOfTheLook(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		want time.Duration
	}{
		"it does not answer": {context.DeadlineExceeded, lookTimeout},
		"it has ended":       {errors.New("connection refused"), 0},
	} {
		a := newAgent(t, newLayout(t), memberState())
		observed := someObservation()
		local := a.localView(observed)
		a.publish(observed, local, replication.NextStep(local), followed{})
		a.unanswered(test.err, followed{})
		a.unanswered(test.err, followed{})
		if got := a.Status().UnansweredFor.Truncate(time.Second); got != test.want {
			t.Errorf("%s: the report says %s, want %s", name, got, test.want)
		}
	}
}

// TestAMysqldThatTakesLongToAnswerIsNews: the operator may have a replica take over, and then the agent ends mysqld.
func TestAMysqldThatTakesLongToAnswerIsNews(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAgent(t, newLayout(t), memberState())
		a.publish(someObservation(), a.localView(someObservation()), replication.Step{State: replication.StateWriting}, followed{})
		a.mysqld.Open, a.assignment = true, &replication.Assignment{Role: replication.RoleReplica}
		<-a.changed
		before := a.Status().News()
		a.asks()()
		<-time.After(lookEvery / 4)
		answered := a.asks()
		<-time.After(slowAfter - 1)
		if now := a.Status(); now.UnansweredFor != 0 {
			t.Errorf("it has just been asked, and has not answered for %s", now.UnansweredFor)
		}
		<-time.After(replication.AlarmAfter - lookEvery/4 - slowAfter)
		if now := a.Status(); now.News() != before || a.cannotClose() {
			t.Errorf("it has not answered for %s, which is news", now.UnansweredFor)
		}
		<-a.changed
		if now := a.Status(); now.News() == before || now.UnansweredFor != replication.AlarmAfter || now.State != replication.StateWriting || !a.cannotClose() {
			t.Errorf("it has not answered for %s, %s: news %t", now.UnansweredFor, now.State, now.News() != before)
		}
		answered()
		if now := a.Status(); now.News() != before || now.UnansweredFor != 0 || a.cannotClose() {
			t.Errorf("it has answered, and not for %s", now.UnansweredFor)
		}
		<-time.After(time.Hour)
		defer a.asks()()
		<-time.After(slowAfter)
		if now := a.Status(); now.UnansweredFor != lookEvery+slowAfter {
			t.Errorf("it has not been asked for long, and has not answered for %s", now.UnansweredFor)
		}
	})
}

// TestAMysqldThatMayHaveStartedDoesNotHang: its supervisor has ended for a moment, so that nothing is known. The time before that, in which
// it certainly took no writes, counts for the longer limit only.
func TestAMysqldThatMayHaveStartedDoesNotHang(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAgent(t, newLayout(t), memberState())
		refused := errors.New("connection refused")
		a.mysqld = supervisor.State{Start: "one", Running: true}
		a.unanswered(refused, followed{})
		<-time.After(8 * time.Second)
		a.unanswered(refused, followed{})
		if got := a.Status(); got.Closed == nil || got.UnansweredFor != 8*time.Second {
			t.Errorf("it is not ready: closed %v, for %s", got.Closed, got.UnansweredFor)
		}
		a.unsupervised(io.EOF)
		<-time.After(time.Second)
		if got := a.Status(); got.Closed != nil || got.UnansweredFor != time.Second {
			t.Errorf("its supervisor has ended: closed %v, for %s", got.Closed, got.UnansweredFor)
		}
		a.isGone = true
		a.unanswered(refused, followed{})
		if got := a.Status(); got.Closed == nil || got.UnansweredFor != 9*time.Second {
			t.Errorf("it is gone: closed %v, for %s", got.Closed, got.UnansweredFor)
		}
	})
}
