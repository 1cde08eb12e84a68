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

// newBook has noted a page, of which mysqld had executed some transactions when it was looked at.
func newBook(t *testing.T, page string, executed replication.GTIDSet) *Logbook {
	t.Helper()
	book := &Logbook{}
	book.noteServers(ownSet(t, "1"))
	if err := book.note(t.Context(), nil, pageOf(events(page), true, book.of, executed).groups); err != nil {
		t.Fatal(err)
	}
	return book
}

// TestALogThatIsAheadOfTheLook: while a replica applies, a transaction of its own is logged after the look at what is executed, and another
// one behind it. What was found before it counts at once, it counts with the next look, and nothing is read again.
func TestALogThatIsAheadOfTheLook(t *testing.T) {
	t.Parallel()
	book := newBook(t, "G6|Q:FLUSH STATUS|G7|Q:FLUSH STATUS|O9|Q:BEGIN|Table_map|Write_rows|Xid", ownSet(t, "1-6"))
	book.files["binlog.000007"] = reading{next: 900_000_000}
	if got := book.Hollow(ownSet(t, "1-6")); !got.Equal(ownSet(t, "6")) {
		t.Errorf("hollow is %q", got)
	}
	if got := book.Hollow(ownSet(t, "1-7")); !got.Equal(ownSet(t, "6-7")) {
		t.Errorf("with the next look hollow is %q", got)
	}
	if book.files["binlog.000007"].next != 900_000_000 {
		t.Errorf("it is read again from %+v", book.files)
	}
}

// TestALogbookForgetsWhatWasReset: the same GTIDs name other transactions then, also those that were only in the log before.
func TestALogbookForgetsWhatWasReset(t *testing.T) {
	t.Parallel()
	book := newBook(t, "G6|Q:FLUSH STATUS|G7|Q:FLUSH STATUS|O9", ownSet(t, "1-6"))
	book.Hollow(ownSet(t, "1-6"))
	if got := book.Hollow(ownSet(t, "1-2")); !got.Empty() {
		t.Errorf("after a reset hollow is %q", got)
	}
	if got := book.Hollow(ownSet(t, "1-7")); !got.Empty() {
		t.Errorf("what has these GTIDs after a reset is taken for hollow: %q", got)
	}
}

// TestTheFirstJudgementStays: whoever may make tables could change it later.
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

// TestWhereAnEventEnds: mysqld tells it in 32 bits.
func TestWhereAnEventEnds(t *testing.T) {
	t.Parallel()
	const turn = int64(1) << 32
	for name, test := range map[string]struct{ from, told, want int64 }{
		"in a small file":            {4, 123, 123},
		"the last one below 4 GiB":   {turn - 100, turn - 1, turn - 1},
		"one that goes beyond":       {turn - 100, 50, turn + 50},
		"one behind":                 {turn + 1000, 9000, turn + 9000},
		"one far behind":             {3*turn + 1000, 9000, 3*turn + 9000},
		"one that is told in 64":     {turn + 1000, turn + 9000, turn + 9000},
		"no event ends there":        {5000, 0, 0},
		"nor is any larger than all": {turn + turn/2, turn/2 - 1, turn/2 - 1},
	} {
		if got := endOf(test.from, test.told); got != test.want {
			t.Errorf("%s: it ends at %d, want %d", name, got, test.want)
		}
	}
}

// TestReadingThatLeadsNowhereEnds: the same page would be read for ever.
func TestReadingThatLeadsNowhereEnds(t *testing.T) {
	t.Parallel()
	at := reading{next: 1000}
	if got := at.to(1000, false); !got.tooMuch {
		t.Error("it reads the same page again")
	}
	if got := at.to(1000, true); got.tooMuch || got.next != 1000 {
		t.Errorf("at the end of the log it gives up: %+v", got)
	}
	if got := at.to(3000, false); got.tooMuch || got.next != 3000 {
		t.Errorf("behind a page: %+v", got)
	}
	if got := at.lost(); got.tooMuch || got.next != 0 {
		t.Errorf("where mysqld finds no event it does not begin anew: %+v", got)
	}
	if got := at.lost().to(500, false).lost(); !got.tooMuch {
		t.Error("it begins anew again and again")
	}
}
