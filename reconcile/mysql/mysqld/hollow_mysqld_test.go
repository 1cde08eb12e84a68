package mysqld

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// flushed is a read-only mysqld, as a replica is, with tables of several kinds.
type flushed struct {
	*mysqld
	t           *testing.T
	root, agent *Server
	account     Bootstrap
}

func newFlushed(t *testing.T) *flushed {
	t.Helper()
	f := &flushed{mysqld: newMysqld(t, writeCertificates(t)), t: t, account: bootstrap("root's")}
	f.root = f.start(t, sqlOf(t, f.account), Account{User: "root", Password: "root's"}, withSemiSync()...)
	f.agent = f.connect(t, f.account.Agent)
	f.as(f.root, "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY)", "INSERT INTO shop.orders VALUES (1)",
		"CREATE DATABASE `a``b`", "CREATE USER monitor IDENTIFIED BY 'monitor'", "GRANT RELOAD ON *.* TO monitor")
	for _, table := range []string{"shop.first", "shop.second", "shop.third", "`a``b`.`c``; d`", "shop.gone"} {
		f.as(f.root, "CREATE TABLE "+table+" (id INT PRIMARY KEY) ENGINE=MEMORY", "INSERT INTO "+table+" VALUES (1)")
	}
	f.as(f.root, "SET GLOBAL super_read_only = ON")
	return f
}

// as runs statements over one separate connection.
func (f *flushed) as(who *Server, statements ...string) {
	f.t.Helper()
	apart := sql.OpenDB(who.connector)
	defer apart.Close()
	one, err := apart.Conn(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	for _, statement := range statements {
		if _, err := one.ExecContext(f.t.Context(), statement); err != nil {
			f.t.Fatalf("%.200s: %v", statement, err)
		}
	}
	_ = one.Close()
}

func (f *flushed) executed() replication.GTIDSet {
	f.t.Helper()
	observed, err := f.agent.Observe(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	return observed.Server.Executed
}

// makes runs statements and returns the transactions that they made.
func (f *flushed) makes(who *Server, statements ...string) replication.GTIDSet {
	f.t.Helper()
	before := f.executed()
	f.as(who, statements...)
	made := f.executed().Subtract(before)
	if made.Empty() {
		f.t.Errorf("%q makes no transaction, so this test proves nothing", statements)
	}
	return made
}

// judged reads the binary log as the agent does, call after call, until all wanted transactions are judged.
func (f *flushed) judged(book *HollowJudge, wanted replication.GTIDSet) replication.GTIDSet {
	f.t.Helper()
	for range 100 {
		ctx, cancel := context.WithTimeout(f.t.Context(), time.Second)
		err := book.Judge(ctx, f.agent, wanted, f.executed())
		isLate := ctx.Err() != nil // on a busy machine; the agent looks again as well
		cancel()
		if err != nil && !isLate && !strings.Contains(err.Error(), errTooMuch.Error()) {
			f.t.Fatal(err)
		}
		if book.unjudged(wanted).Empty() {
			return book.Hollow(f.executed()).Both(wanted)
		}
	}
	f.t.Fatalf("%s is not judged after a hundred looks", book.unjudged(wanted))
	return replication.GTIDSet{}
}

// TestHollowTransactionsAreRecognisedMysqld makes the transactions that a replica makes without a client's write, and others that look
// similar.
func TestHollowTransactionsAreRecognisedMysqld(t *testing.T) {
	t.Parallel()
	f := newFlushed(t)
	hollow, written := map[string]replication.GTIDSet{}, map[string]replication.GTIDSet{}
	monitor := f.connect(t, Account{User: "monitor", Password: "monitor"})
	for _, statement := range []string{"FLUSH STATUS", "FLUSH TABLES", "FLUSH USER_RESOURCES", "/* a tool */ flush status"} {
		hollow[statement] = f.makes(monitor, statement)
	}
	for _, statement := range []string{"FLUSH PRIVILEGES", "FLUSH OPTIMIZER_COSTS", "FLUSH ENGINE LOGS", "FLUSH TABLES shop.orders"} {
		hollow[statement] = f.makes(f.root, statement)
	}
	f.as(f.root, "SET GLOBAL super_read_only = OFF")
	for _, statement := range []string{"ANALYZE TABLE shop.orders", "ANALYZE TABLE shop.nowhere", "REPAIR TABLE shop.orders", "OPTIMIZE TABLE shop.orders"} {
		hollow[statement] = f.makes(f.root, statement)
	}
	hollow["with a default database"] = f.makes(f.root, "USE `a``b`", "FLUSH STATUS")
	book, behind := &HollowJudge{}, f.executed()
	f.judged(book, f.executed())

	f.stop(t)
	f.account.NewData = false
	f.root = f.start(t, sqlOf(t, f.account), Account{User: "root", Password: "root's"}, append(withSemiSync(), "--super-read-only=ON")...)
	f.agent = f.connect(t, f.account.Agent)
	hollow["an emptied table"] = f.makes(f.root, "SET sql_quote_show_create = 0", "SELECT * FROM shop.first")
	hollow["one with quotes"] = f.makes(f.root, "SET sql_mode = ANSI_QUOTES", "SELECT * FROM shop.second")
	hollow["one of another name"] = f.makes(f.root, "SELECT * FROM `a``b`.`c``; d`")
	goes := f.makes(f.root, "SELECT * FROM shop.gone")
	if got := f.judged(book, goes); !got.Equal(goes) {
		t.Errorf("the emptied table exists: %q of %s is hollow", got, goes)
	}
	hollow["an empty transaction"] = f.makes(f.root, "SET gtid_next = '"+otherUUID+":7'", "BEGIN", "COMMIT")

	f.as(f.root, "SET GLOBAL super_read_only = OFF")
	written["a dropped table"] = f.makes(f.root, "DROP TABLE shop.gone")
	written["a row"] = f.makes(f.root, "INSERT INTO shop.orders VALUES (2)")
	written["a row of a MEMORY table"] = f.makes(f.root, "INSERT INTO shop.first VALUES (2)")
	written["a forged comment"] = f.makes(f.root, "TRUNCATE TABLE `shop`.`orders`"+generated)
	written["a forged comment with a default database"] = f.makes(f.root, "USE `a``b`", "TRUNCATE TABLE `shop`.`orders`"+generated)
	written["a histogram"] = f.makes(f.root, "ANALYZE TABLE shop.orders UPDATE HISTOGRAM ON id")
	written["a tag"] = f.makes(f.root, "SET gtid_next = 'AUTOMATIC:tag'", "FLUSH STATUS")
	written["a comment that is executed"] = f.makes(f.root, "/*! FLUSH */ STATUS")
	hollow["after all that"] = f.makes(f.root, "FLUSH STATUS")

	for name, one := range map[string]*HollowJudge{"a new logbook": {}, "the same logbook": book} {
		got := f.judged(one, f.executed())
		if isKnown := one == book; got.Contains(goes) != isKnown {
			t.Errorf("%s: a table is gone, so whether %s is hollow must follow from an earlier judgement only", name, goes)
		}
		for what, set := range hollow {
			if !got.Contains(set) {
				t.Errorf("%s: %s (%s) is not hollow", name, what, set)
			}
		}
		for what, set := range written {
			if !got.Both(set).Empty() {
				t.Errorf("%s: %s (%s) is hollow", name, what, set)
			}
		}
	}
	last, err := f.agent.BinaryLogs(t.Context())
	if err != nil || len(last) < 2 {
		t.Fatalf("binary logs %v: %v", last, err)
	}
	f.as(f.root, "PURGE BINARY LOGS TO '"+last[len(last)-1].Name+"'")
	if got := f.judged(&HollowJudge{}, behind); !got.Empty() {
		t.Errorf("purged transactions are hollow: %s", got)
	}
	if t.Failed() {
		t.Log(f.logged())
	}
}

// logged returns the binary log in readable form.
func (f *flushed) logged() string {
	files, _ := f.agent.BinaryLogs(f.t.Context())
	var text strings.Builder
	for _, file := range files {
		events, err := f.agent.binlogEvents(f.t.Context(), file.Name, logHeader, mostEvents)
		fmt.Fprintf(&text, "%s (%v):\n", file.Name, err)
		for _, event := range events {
			fmt.Fprintf(&text, "  %6d %-20s %s\n", event.from, event.kind, event.info)
		}
	}
	return text.String()
}

// TestManyTransactionsAreReadInPagesMysqld: one page is not enough, and the logbook continues in a file that it has begun.
func TestManyTransactionsAreReadInPagesMysqld(t *testing.T) {
	t.Parallel()
	f := newFlushed(t)
	book := &HollowJudge{}
	for round := range 3 {
		made := f.makes(f.root, repeated("FLUSH STATUS", mostEvents)...)
		if got := f.judged(book, f.executed()); !got.Contains(made) {
			t.Errorf("round %d: %s of %s is hollow", round, got.Both(made), made)
		}
		if round == 1 {
			f.as(f.root, "FLUSH BINARY LOGS")
		}
	}
}

// TestOnlyWhatIsNewIsReadMysqld: events before the last mark but one are read only if a transaction is not found after that mark.
func TestOnlyWhatIsNewIsReadMysqld(t *testing.T) {
	t.Parallel()
	f := newFlushed(t)
	early := f.makes(f.root, "FLUSH STATUS")
	book := &HollowJudge{}
	mark := func() int64 {
		t.Helper()
		if err := book.Mark(t.Context(), f.agent); err != nil {
			t.Fatal(err)
		}
		return book.mark.Size
	}
	first := mark()
	between := f.makes(f.root, "FLUSH STATUS")
	mark()
	late := f.makes(f.root, "FLUSH STATUS")
	if got := f.judged(book, late); !got.Equal(late) {
		t.Errorf("%s is hollow, want %s", got, late)
	}
	if known := book.Hollow(f.executed()); book.since.Size != first || !known.Equal(late.Union(between)) {
		t.Errorf("%s was read from position %d; want everything after the first mark, %d", known, book.since.Size, first)
	}
	if got := f.judged(book, early); !got.Equal(early) {
		t.Errorf("%s is hollow, want %s", got, early)
	}
}

// TestAPositionWhereNoEventBeginsMysqld: the file is then read again from its beginning, once.
func TestAPositionWhereNoEventBeginsMysqld(t *testing.T) {
	t.Parallel()
	f := newFlushed(t)
	made := f.makes(f.root, "FLUSH STATUS", "FLUSH STATUS")
	book := &HollowJudge{}
	f.judged(book, made)
	for file, at := range book.files {
		at.next -= 7
		book.files[file] = at
	}
	more := f.makes(f.root, "FLUSH STATUS")
	if err := book.Judge(t.Context(), f.agent, more, f.executed()); !hasNumber(err, errNoSuchEvent) {
		t.Errorf("in the middle of an event: %v", err)
	}
	if got := f.judged(book, more); !got.Equal(more) {
		t.Errorf("%q is hollow, want %s", got, more)
	}
}

func repeated(statement string, times int) []string {
	all := make([]string, times)
	for i := range all {
		all[i] = statement
	}
	return all
}

// TestAnEventThatIsTooLargeMysqld: a client's statement must not fill the agent's memory. The events after it in that file are not judged,
// those of other files are.
func TestAnEventThatIsTooLargeMysqld(t *testing.T) {
	t.Parallel()
	f := newFlushed(t)
	before := f.makes(f.root, "FLUSH STATUS")
	f.as(f.root, repeated("FLUSH STATUS", leastEvents)...) // events close to the large one are not judged either
	large := f.makes(f.root, "FLUSH STATUS /* "+strings.Repeat("x", 2*pageBytes)+" */")
	after := f.makes(f.root, "FLUSH STATUS")
	f.as(f.root, "FLUSH BINARY LOGS")
	another := f.makes(f.root, "FLUSH STATUS")
	got := f.judged(&HollowJudge{}, f.executed())
	if !got.Contains(before) || !got.Contains(another) {
		t.Errorf("hollow are %s; want %s and %s among them", got, before, another)
	}
	if !got.Both(large.Union(after)).Empty() {
		t.Errorf("%s is hollow, but the logbook cannot know that", got.Both(large.Union(after)))
	}
}

// TestHollowTransactionsAreMatchedMysqld: empty transactions on the primary make both sets equal, also if commits wait for the replica.
func TestHollowTransactionsAreMatchedMysqld(t *testing.T) {
	t.Parallel()
	certificates, b := writeCertificates(t), bootstrap("root's")
	primary, replica := newMysqld(t, certificates), newMysqld(t, certificates)
	agent := primary.start(t, sqlOf(t, b), b.Agent, withSemiSync()...)
	allowReceiver(t, agent)
	follower := replica.start(t, sqlOf(t, b), b.Agent, append(withSemiSync(), "--rpl-semi-sync-replica-enabled=ON", "--super-read-only=ON")...)
	if err := follower.PointToSource(t.Context(), sourceAt(primary, certificates, b.Replication)); err != nil {
		t.Fatal(err)
	}
	if err := follower.StartReplica(t.Context(), b.Replication); err != nil {
		t.Fatal(err)
	}
	awaitReplication(t, follower, replica)
	root := replica.connect(t, Account{User: "root", Password: "root's"})
	f := &flushed{mysqld: replica, t: t, root: root, agent: follower, account: b}
	made := f.makes(root, "FLUSH STATUS", "FLUSH TABLES", "FLUSH STATUS")
	if err := agent.EnforceAcks(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the replica acknowledges", func() error {
		if observed := briefly(t, agent); !observed.EnoughAcknowledge() {
			return fmt.Errorf("%d replicas acknowledge", observed.AckClients)
		}
		return nil
	}, primary.messages)
	for range 2 { // the second time, all are executed already
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		count, err := agent.CommitEmpty(ctx, made.All())
		cancel()
		if err != nil || int64(count) != made.Count() {
			t.Errorf("%d of %d are committed: %v", count, made.Count(), err)
		}
	}
	if got := briefly(t, agent).Server.Executed; !got.Equal(f.executed()) {
		t.Errorf("the primary has %s, the replica %s", got, f.executed())
	}

	t.Log("a waiting commit is not disturbed, and is seen by its GTID")
	if err := follower.StopReceiver(t.Context()); err != nil {
		t.Fatal(err)
	}
	more := f.makes(root, "FLUSH STATUS")
	brief, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := agent.CommitEmpty(brief, more.All()); err == nil {
		t.Error("the commit did not wait, so this test proves nothing")
	}
	if pending := briefly(t, agent).Server.Pending; !pending.Contains(more) {
		t.Errorf("pending is %q, want %s", pending, more)
	}
	if err := agent.StopEnforcingAcks(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is committed", func() error {
		if executed := briefly(t, agent).Server.Executed; !executed.Contains(more) {
			return fmt.Errorf("executed is %s", executed)
		}
		return nil
	}, primary.messages)
}
