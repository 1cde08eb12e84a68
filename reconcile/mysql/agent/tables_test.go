package agent

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// tablesAt returns tables of the schema shop, such as "orders:MyISAM" or, created at another time, "orders:MyISAM:later".
func tablesAt(texts ...string) nameSet {
	all := nameSet{}
	for _, text := range texts {
		parts := append(strings.Split(text, ":"), "InnoDB", "")
		all.add(replication.Table{Schema: "shop", Name: parts[0], Engine: parts[1]}, parts[2])
	}
	return all
}

func lackingTables(names ...string) *missingRows {
	found := &missingRows{Until: "2026-11-24 12:00:00"}
	for _, name := range names {
		found.Tables.Named = append(found.Tables.Named, replication.Table{Schema: "shop", Name: name, Engine: "MyISAM"})
	}
	return found
}

// TestALookThatIsOvertakenChangesNothing: while the look was in progress a copy replaced the member's data, so that rows are missing again
// in tables that were dropped before.
func TestALookThatIsOvertakenChangesNothing(t *testing.T) {
	t.Parallel()
	layout, before := newLayout(t), lackingTables("log", "visits")
	a := newAgent(t, layout, state{Data: replication.OriginMember, TablesWithoutRows: before})
	known := a.kept.TablesWithoutRows
	if err := a.storeMissingRows(known, lackingTables("visits")); err != nil {
		t.Fatal(err)
	}
	if kept := stateOf(t, layout).TablesWithoutRows; kept.Tables.Count() != 1 || a.Status().KnownTablesWithoutRows().Count() != 1 {
		t.Errorf("the stored state is %+v, the report %s", kept, a.Status().TablesWithoutRows)
	}
	known = a.kept.TablesWithoutRows
	if err := a.keepOrigin(replication.OriginFresh); err != nil {
		t.Fatal(err)
	}
	if err := a.storeMissingRows(known, lackingTables()); err != nil {
		t.Fatal(err)
	}
	if kept := stateOf(t, layout); kept.TablesWithoutRows != nil || kept.Data != replication.OriginFresh {
		t.Errorf("during a copy the stored state is %+v", kept)
	}
	a.kept.Data, a.kept.TablesWithoutRows = replication.OriginMember, lackingTables("visits")
	if err := a.storeMissingRows(known, lackingTables()); err != nil {
		t.Fatal(err)
	}
	if a.kept.TablesWithoutRows.Tables.Count() != 1 {
		t.Error("a look from before the copy has changed the result of a look after it")
	}
}

// TestWhenTablesAreLookedAt: when a member becomes primary, periodically after that, and one look at a time.
func TestWhenTablesAreLookedAt(t *testing.T) {
	t.Parallel()
	now := time.Now()
	a := newAgent(t, newLayout(t), state{Data: replication.OriginMember, HeldRole: replication.RoleReplica, TablesWithoutRows: &missingRows{}})
	due := func(leads bool, at time.Time) bool {
		t.Helper()
		_, isDue := a.dueTables(leads, at)
		return isDue
	}
	ended := func(next time.Time) { a.tables.busy, a.tables.due = false, next }
	if due(false, now) {
		t.Error("a replica without missing rows looks")
	}
	if due(true, now) {
		t.Error("a replica that a user made writable looks as a primary")
	}
	a.kept.TablesWithoutRows = lackingTables("log")
	if !due(false, now) || due(false, now) {
		t.Error("a replica with missing rows does not look, or looks twice at once")
	}
	ended(now.Add(tablesSoon))
	a.kept.HeldRole = replication.RolePrimary
	if !due(true, now) {
		t.Error("a member becomes primary, but does not look")
	}
	ended(now.Add(tablesEvery))
	if due(true, now.Add(tablesEvery-time.Second)) || !due(true, now.Add(tablesEvery)) {
		t.Error("the primary looks too often, or not at all")
	}
	ended(now.Add(tablesEvery))
	a.status.OtherEngines = &replication.Tables{}
	due(false, now)
	if a.Status().OtherEngines != nil {
		t.Error("the count of a former primary still counts")
	}
	a.kept.Data = replication.OriginFresh
	if due(true, now) {
		t.Error("the agent looks at data that no client has used")
	}
}

// TestWhatIsNewAmongTables: a missing table was certainly dropped only if no table is new.
func TestWhatIsNewAmongTables(t *testing.T) {
	t.Parallel()
	set := tablesAt
	for name, test := range map[string]struct {
		before, now nameSet
		want        bool
	}{
		"the same":               {set("a", "b"), set("b", "a"), true},
		"one is gone":            {set("a", "b"), set("b"), true},
		"one is new":             {set("a"), set("a", "b"), false},
		"one has another name":   {set("a", "b"), set("a", "c"), false},
		"one has another's name": {set("a", "b:InnoDB:later"), set("a:InnoDB:later"), false},
		"one has another engine": {set("a"), set("a:MyISAM"), false},
		"no look before":         {nil, set("a"), false},
		"all are gone":           {set("a"), set(), true},
	} {
		if got := test.now.isWithin(test.before); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	many := nameSet{}
	for number := range maxNames + 1 {
		many[uint64(number)] = 1
	}
	if many.isWithin(many) {
		t.Error("with more tables than are read, isWithin claims to know which are new")
	}
	if hash("a", "bc") == hash("ab", "c") {
		t.Error("two names have the same hash")
	}
}

// TestATableThatTakesAnothersPlaceIsNotDropped: DROP TABLE orders; RENAME TABLE orders_new TO orders. The table without rows still exists
// under the other's name.
func TestATableThatTakesAnothersPlaceIsNotDropped(t *testing.T) {
	t.Parallel()
	lacks := lackingTables("orders_new").Tables
	before := tablesAt("orders:MyISAM:long ago", "orders_new:MyISAM:tonight", "visits")
	for name, test := range map[string]struct {
		now  nameSet
		want int
	}{
		"the new table took the old name":             {tablesAt("orders:MyISAM:tonight", "visits"), 1},
		"it took the name, and is InnoDB now":         {tablesAt("orders:InnoDB:right now", "visits"), 1},
		"the new table was dropped":                   {tablesAt("orders:MyISAM:long ago", "visits"), 0},
		"both were dropped":                           {tablesAt("visits"), 0},
		"nothing changed":                             {before, 1},
		"it was dropped, and another one was created": {tablesAt("orders:MyISAM:long ago", "visits", "more"), 1},
	} {
		left := lacks.StillWithoutRows(replication.TableSearch{Dropped: test.now.dropped(before)}, false)
		if left.Count() != test.want {
			t.Errorf("%s: rows are missing in %d tables, want %d", name, left.Count(), test.want)
		}
	}
}

// TestACopyIsKeptThoughItsTablesCannotBeLookedAt: the data still becomes a member's, and a later look finds the tables without rows.
func TestACopyIsKeptThoughItsTablesCannotBeLookedAt(t *testing.T) {
	t.Parallel()
	layout := newLayout(t)
	a := newAgent(t, layout, state{Data: replication.OriginFresh})
	a.tables.due = time.Now().Add(tablesEvery)
	if err := a.keepCopied(t.Context()); err != nil {
		t.Fatal(err)
	}
	if kept := stateOf(t, layout); kept.Data != replication.OriginMember || kept.TablesWithoutRows != nil || a.Status().TablesWithoutRows != nil {
		t.Errorf("the stored state is %+v, the report %v", kept, a.Status().TablesWithoutRows)
	}
	if task, isDue := a.dueTables(false, time.Now()); !isDue || task.lacking != nil {
		t.Errorf("no look is due: %+v", task)
	}
}

// TestARestoredBackupWaitsUntilItIsKnownWhatItLacks: after a client has written, the agent cannot find it out. The report has the reason,
// and nothing is restarted for it.
func TestARestoredBackupWaitsUntilItIsKnownWhatItLacks(t *testing.T) {
	t.Parallel()
	a := newAgent(t, newLayout(t), state{Data: replication.OriginMember, RestoredFrom: &RestoredFrom{UID: "1"}})
	for range 2 {
		err := a.findMissingRows(t.Context())
		if err == nil || !strings.Contains(err.Error(), "tables") {
			t.Fatalf("the member continues: %v", err)
		}
		a.looked = time.Now().Add(-2 * stuckAfter)
		a.reportUnrecorded(someObservation(), err, followed{})
	}
	now, status := time.Now(), a.Status()
	if status.State != replication.StateStarting || !strings.Contains(status.Message, "mysqld answers") || !strings.Contains(status.Message, "tables") {
		t.Errorf("the member is %s: %s", status.State, status.Message)
	}
	if err := errors.Join(a.loopRunning(now), a.alive(now), a.started()); err != nil {
		t.Errorf("kubelet would restart a container: %v", err)
	}
	if status.IsRestarting {
		t.Error("mysqld has answered, and its container still restarts")
	}
	a.mysqld.Stopping = true
	a.reportUnrecorded(someObservation(), errors.New("no space left on device"), followed{})
	if !a.Status().IsRestarting {
		t.Error("its container stops, and it does not restart")
	}
}
