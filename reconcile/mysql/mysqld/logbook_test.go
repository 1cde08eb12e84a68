package mysqld

import (
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

func ownSet(t *testing.T, numbers string) replication.GTIDSet {
	t.Helper()
	set, err := replication.ParseGTIDSet(ownUUID + ":" + numbers)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// newBook returns a logbook that has recorded a page, when mysqld had executed the given transactions.
func newBook(t *testing.T, page string, executed replication.GTIDSet) *HollowJudge {
	t.Helper()
	book := &HollowJudge{}
	book.noteServers(ownSet(t, "1"))
	if err := book.note(t.Context(), nil, pageOf(events(page), true, book.of, executed).groups); err != nil {
		t.Fatal(err)
	}
	return book
}

// TestALogThatIsAheadOfTheLook: while a replica applies, it logs a transaction of its own, and another one after it, after the agent has
// read gtid_executed. Transactions found before count at once, this one counts at the next look, and nothing is read again.
func TestALogThatIsAheadOfTheLook(t *testing.T) {
	t.Parallel()
	book := newBook(t, "G6|Q:FLUSH STATUS|G7|Q:FLUSH STATUS|O9|Q:BEGIN|Table_map|Write_rows|Xid", ownSet(t, "1-6"))
	book.files["binlog.000007"] = readPosition{next: 900_000_000}
	if got := book.Hollow(ownSet(t, "1-6")); !got.Equal(ownSet(t, "6")) {
		t.Errorf("hollow is %q", got)
	}
	if got := book.Hollow(ownSet(t, "1-7")); !got.Equal(ownSet(t, "6-7")) {
		t.Errorf("at the next look hollow is %q", got)
	}
	if book.files["binlog.000007"].next != 900_000_000 {
		t.Errorf("the log is read again from %+v", book.files)
	}
}

// TestALogbookForgetsWhatWasReset: after a reset the same GTIDs name other transactions, also those that were only in the log before.
func TestALogbookForgetsWhatWasReset(t *testing.T) {
	t.Parallel()
	book := newBook(t, "G6|Q:FLUSH STATUS|G7|Q:FLUSH STATUS|O9", ownSet(t, "1-6"))
	book.Hollow(ownSet(t, "1-6"))
	if got := book.Hollow(ownSet(t, "1-2")); !got.Empty() {
		t.Errorf("after a reset hollow is %q", got)
	}
	if got := book.Hollow(ownSet(t, "1-7")); !got.Empty() {
		t.Errorf("after a reset other transactions with these GTIDs count as hollow: %q", got)
	}
}

// TestTheFirstJudgementStays: otherwise a user who may create tables could change it later.
func TestTheFirstJudgementStays(t *testing.T) {
	t.Parallel()
	book := newBook(t, "G6|Q:FLUSH STATUS|G7|Q:DROP TABLE t|Stop", ownSet(t, "1-7"))
	for range 2 {
		if got := book.Hollow(ownSet(t, "1-9")); !got.Equal(ownSet(t, "6")) || !book.others.Equal(ownSet(t, "7")) {
			t.Errorf("hollow is %q, and not hollow %q", got, book.others)
		}
		if err := book.note(t.Context(), nil, pageOf(events("G6|Q:DROP TABLE t|G7|Q:FLUSH STATUS|Stop"), true, book.of, ownSet(t, "1-7")).groups); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWhereAnEventEnds: mysqld prints the position in 32 bits.
func TestWhereAnEventEnds(t *testing.T) {
	t.Parallel()
	const turn = int64(1) << 32
	for name, test := range map[string]struct{ from, told, want int64 }{
		"in a small file":            {4, 123, 123},
		"the last one below 4 GiB":   {turn - 100, turn - 1, turn - 1},
		"the first one beyond 4 GiB": {turn - 100, 50, turn + 50},
		"one behind":                 {turn + 1000, 9000, turn + 9000},
		"one far beyond 4 GiB":       {3*turn + 1000, 9000, 3*turn + 9000},
		"one printed in 64 bits":     {turn + 1000, turn + 9000, turn + 9000},
		"no event ends there":        {5000, 0, 0},
		"no event is that large":     {turn + turn/2, turn/2 - 1, turn/2 - 1},
	} {
		if got := endOf(test.from, test.told); got != test.want {
			t.Errorf("%s: the event ends at %d, want %d", name, got, test.want)
		}
	}
}

// TestReadingThatLeadsNowhereEnds: otherwise the logbook would read the same page indefinitely.
func TestReadingThatLeadsNowhereEnds(t *testing.T) {
	t.Parallel()
	at := readPosition{next: 1000}
	if got := at.advance(1000, false); !got.tooMuch {
		t.Error("the logbook reads the same page again")
	}
	if got := at.advance(1000, true); got.tooMuch || got.next != 1000 {
		t.Errorf("at the end of the log reading stops for good: %+v", got)
	}
	if got := at.advance(3000, false); got.tooMuch || got.next != 3000 {
		t.Errorf("after a page: %+v", got)
	}
	if got := at.lost(); got.tooMuch || got.next != 0 {
		t.Errorf("if mysqld finds no event, the logbook does not read the file again: %+v", got)
	}
	if got := at.lost().advance(500, false).lost(); !got.tooMuch {
		t.Error("the logbook reads the file again more than once")
	}
}
