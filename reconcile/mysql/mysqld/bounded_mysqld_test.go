package mysqld

import (
	"database/sql"
	"strings"
	"testing"
)

// TestTransactionsAreJudgedWhileNoConnectionIsFreeMysqld: a replica must not become Errant by its own statements because clients use all
// connections. An answer that is too large costs the observing connection, and the next connection gets its place.
func TestTransactionsAreJudgedWhileNoConnectionIsFreeMysqld(t *testing.T) {
	t.Parallel()
	f := newFlushed(t)
	monitor := f.connect(t, Account{User: "monitor", Password: "monitor"})
	flushed := f.makes(monitor, "FLUSH STATUS")
	f.as(f.root, "SET GLOBAL max_connections = 10")
	f.executed()
	clients := sql.OpenDB(f.root.connector)
	defer clients.Close()
	for {
		_, err := clients.Conn(t.Context())
		if hasNumber(err, errTooManyConnections) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	book := &HollowJudge{}
	if got := f.judged(book, flushed); !got.Equal(flushed) {
		t.Errorf("hollow are %s, want %s", got, flushed)
	}
	one, err := monitor.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	before := f.executed()
	if _, err := one.ExecContext(t.Context(), "FLUSH STATUS /* "+strings.Repeat("x", pageBytes)+" */"); err != nil {
		t.Fatal(err)
	}
	large := f.executed().Subtract(before)
	if got := f.judged(book, large); large.Empty() || !got.Empty() {
		t.Errorf("of %s the logbook judged %s, whose answer is larger than allowed", large, got)
	}
	f.executed()
}
