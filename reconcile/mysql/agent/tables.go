package agent

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

const (
	// tablesEvery is how often the agent looks for tables of other engines than InnoDB, tablesSoon how often while there are some that
	// users may have fixed.
	tablesEvery = time.Hour
	tablesSoon  = 5 * time.Minute
	// tablesTimeout bounds such a look.
	tablesTimeout = 30 * time.Second
	// reportedTables is how many tables a report names, keptTables how many member.json names.
	reportedTables = 5
	keptTables     = 20
)

// missingRows are the tables whose rows were missing when the data was copied or restored here. A member that created its data itself has
// none.
type missingRows struct {
	Tables replication.Tables `json:"tables,omitzero"`
	// Until is when the agent looked for them, or when the youngest of them was created if that is later: younger tables have their rows.
	// It is in UTC, in MySQL's format.
	Until string `json:"until,omitempty"`
}

// tableWatch records when to look at tables next.
type tableWatch struct {
	leads, busy bool
	due         time.Time
	// names are the tables at the last look, for the list of a replica in of. A table that is gone since then was dropped, unless there are
	// new tables, which it may have been renamed to.
	names nameSet
	of    *missingRows
	// tried reports whether the loop itself has looked once. Later looks run concurrently with it.
	tried bool
}

// tableTask describes one look: the tables whose rows are missing on this member, nil if unknown, and, on a primary, all of its tables.
type tableTask struct {
	lacking *missingRows
	leads   bool
	// names are all tables at the look before; nil if there was none for the same list.
	names nameSet
}

// tableFindings is the result of a look. It has names if they were needed, and other engines on a primary.
type tableFindings struct {
	lacking *missingRows
	names   nameSet
	other   *replication.Tables
}

// keepCopied completes a copy. It stores which tables miss their rows on the volume before replication adds any, and so before the operator
// counts on the data. If the look fails, the data still becomes a member's, with unknown tables, and the next look is due.
func (a *Agent) keepCopied(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, tablesTimeout)
	defer cancel()
	found, err := missingRowsNow(bounded, a.local)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		a.log.Info(notYetKnown, "error", err.Error())
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tables.tried, a.tables.due = true, time.Time{}
	kept := a.kept
	kept.Data, kept.IsCopied, kept.TablesWithoutRows = replication.OriginMember, false, found
	if err := a.storeState(kept); err != nil {
		return err
	}
	a.copies = copyBackoff{tried: a.copies.tried}
	return nil
}

const notYetKnown = "cannot find out which tables came without their rows, will try again"

// missingRowsNow returns the tables whose rows may be missing in data that came a short while ago: every table of another engine. The
// creation time of a table does not show whether it came with its rows, because the clock of another server may have set it.
func missingRowsNow(ctx context.Context, server *mysqld.Server) (*missingRows, error) {
	until, err := server.TablesUntil(ctx)
	if err != nil {
		return nil, err
	}
	tables, err := server.TablesWithoutRows(ctx, "", keptTables)
	if err != nil {
		return nil, err
	}
	return &missingRows{Tables: tables, Until: until}, nil
}

// findMissingRows finds out once which rows are missing in a member's data. In a restored backup the agent can know that only until clients
// write, so this comes before anything else. For data that a former release of the agent knew, MySQL's own record of the copy answers, and
// that record stays. So an error there is no reason to wait.
func (a *Agent) findMissingRows(ctx context.Context) error {
	a.mu.Lock()
	kept, isUnused := a.kept, a.kept.RestoredFrom != nil && a.kept.Held.Epoch == 0
	isKnown := kept.TablesWithoutRows != nil || a.tables.tried && !isUnused
	a.tables.tried = true
	a.mu.Unlock()
	if isKnown {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, tablesTimeout)
	defer cancel()
	look := func(ctx context.Context) (*missingRows, error) { return missingRowsOfCopy(ctx, a.local) }
	if isUnused {
		look = func(ctx context.Context) (*missingRows, error) { return missingRowsNow(ctx, a.local) }
	}
	found, err := look(bounded)
	if err == nil {
		err = a.storeMissingRows(nil, found)
	}
	if err != nil && !isUnused {
		a.log.Info(notYetKnown, "error", err.Error())
		return nil
	}
	if err != nil {
		return fmt.Errorf("find out which tables came without their rows, before clients write: %w", err)
	}
	return nil
}

// missingRowsOfCopy returns the tables whose rows may be missing in data that came as a copy earlier. It includes tables that were created
// since and have their rows. That may cause an unneeded rebuild, but leaving tables out could lose rows.
func missingRowsOfCopy(ctx context.Context, server *mysqld.Server) (*missingRows, error) {
	isCopy, err := server.CopyCompleted(ctx)
	if err != nil {
		return nil, err
	}
	if !isCopy {
		return &missingRows{}, nil
	}
	return missingRowsNow(ctx, server)
}

// storeMissingRows stores which rows the member misses, unless the former value has changed because the member was copied meanwhile.
func (a *Agent) storeMissingRows(before, found *missingRows) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kept.Data != replication.OriginMember || a.kept.TablesWithoutRows != before || reflect.DeepEqual(before, found) {
		return nil
	}
	kept := a.kept
	kept.TablesWithoutRows = found
	return a.storeState(kept)
}

// maintainTables looks at tables periodically, concurrently with the loop, because information_schema may take seconds.
func (a *Agent) maintainTables(ctx context.Context, where replication.State) {
	task, isDue := a.dueTables(where == replication.StateWriting, time.Now())
	if isDue {
		go a.lookAtTables(ctx, a.local, task)
	}
}

// dueTables returns the look that is due now. A primary looks when it becomes primary, because what an earlier primary saw does not count
// then.
func (a *Agent) dueTables(leads bool, now time.Time) (task tableTask, isDue bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	watch := &a.tables
	leads = leads && a.kept.HeldRole == replication.RolePrimary // a user may make a replica writable
	if leads != watch.leads {
		watch.leads, watch.due, a.status.OtherEngines, a.measured.keyless = leads, time.Time{}, nil, nil
	}
	task = tableTask{lacking: a.kept.TablesWithoutRows, leads: leads}
	if watch.of == task.lacking {
		task.names = watch.names
	}
	isNeeded := leads || task.lacking == nil || !task.lacking.Tables.Empty()
	if !isNeeded || watch.busy || now.Before(watch.due) || a.kept.Data != replication.OriginMember {
		return task, false
	}
	watch.busy = true
	return task, true
}

// lookAtTables carries out one look and stores its result.
func (a *Agent) lookAtTables(ctx context.Context, server *mysqld.Server, task tableTask) {
	bounded, cancel := context.WithTimeout(ctx, tablesTimeout)
	defer cancel()
	found, err := task.look(bounded, server)
	if err == nil {
		err = a.storeMissingRows(task.lacking, found.lacking)
	}
	if err != nil && ctx.Err() == nil {
		a.log.Info("cannot look at tables, will try again", "error", err.Error())
	}
	keyless := a.countKeyless(bounded, server, task.leads)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tables.busy = false
	if task.leads != a.tables.leads {
		return // the next look is due
	}
	a.measured.keyless = keyless
	a.tables.due = time.Now().Add(tablesEvery)
	if err != nil || !found.lacking.Tables.Empty() || found.other != nil && !found.other.Empty() {
		a.tables.due = time.Now().Add(tablesSoon)
	}
	if err == nil {
		a.status.OtherEngines = found.other
		a.tables.names, a.tables.of = found.names, found.lacking
	}
}

// look finds which tables still miss their rows and, on a primary, its tables of other engines.
func (t tableTask) look(ctx context.Context, server *mysqld.Server) (tableFindings, error) {
	found := tableFindings{lacking: t.lacking}
	var err error
	switch {
	case t.lacking == nil:
		found.lacking, err = missingRowsOfCopy(ctx, server)
	case !t.lacking.Tables.Empty():
		err = t.lookAgain(ctx, server, &found)
	}
	if err != nil || !t.leads {
		return found, err
	}
	all, err := server.OtherEngines(ctx, reportedTables)
	found.other = &all
	return found, err
}

// lookAgain finds which of the listed tables still miss their rows.
func (t tableTask) lookAgain(ctx context.Context, server *mysqld.Server, found *tableFindings) error {
	var seen replication.TableSearch
	var err error
	if t.leads {
		seen.FromCopy, err = server.TablesWithoutRows(ctx, t.lacking.Until, keptTables)
	} else {
		found.names, seen.Dropped, err = t.findDropped(ctx, server)
	}
	if err != nil {
		return err
	}
	left := t.lacking.Tables.StillWithoutRows(seen, t.leads)
	if !reflect.DeepEqual(left, t.lacking.Tables) {
		found.lacking = &missingRows{Tables: left, Until: t.lacking.Until}
	}
	return nil
}

// findDropped returns the names of all tables, and a function that reports whether a listed table was certainly dropped since the look
// before. If a listed table seems to be gone, ALTER TABLE may only hide it. Another statement may rename it before HasNoTable answers, so
// the names are read again then.
func (t tableTask) findDropped(ctx context.Context, server *mysqld.Server) (names nameSet, dropped func(replication.Table) bool, err error) {
	names, err = readNames(ctx, server)
	if err != nil {
		return nil, nil, err
	}
	var gone []replication.Table
	for _, table := range t.lacking.Tables.Named {
		if !names.dropped(t.names)(table) {
			continue
		}
		isGone, err := server.HasNoTable(ctx, table)
		if err != nil {
			return nil, nil, err
		}
		if isGone {
			gone = append(gone, table)
		}
	}
	if len(gone) > 0 {
		names, err = readNames(ctx, server)
	}
	return names, func(table replication.Table) bool {
		return slices.Contains(gone, table) && names.dropped(t.names)(table)
	}, err
}

// nameSet maps the hash of each table's name to a hash of its other properties, because another table may have its name by now. A server
// may have many tables, so both are hashes. nil means unknown.
type nameSet map[uint64]uint64

// maxNames limits a nameSet. On a server with more tables the agent does not know which tables are new.
const maxNames = 100_000

func hash(parts ...string) uint64 {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return binary.BigEndian.Uint64(sum[:])
}

// add adds a table. RENAME TABLE changes the name but keeps engine and creation time. Any other statement that makes a table from another
// one's rows sets a new creation time.
func (n nameSet) add(table replication.Table, made string) {
	n[hash(table.Schema, table.Name)] = hash(table.Engine, made)
}

func (n nameSet) has(table replication.Table) bool {
	_, found := n[hash(table.Schema, table.Name)]
	return found
}

// isWithin reports whether all of these tables were there before, so that none is new. It is false if either set is unknown.
func (n nameSet) isWithin(before nameSet) bool {
	if n == nil || before == nil || len(n) > maxNames {
		return false
	}
	for name, now := range n {
		if was, found := before[name]; !found || was != now {
			return false
		}
	}
	return true
}

// dropped returns a function that reports whether a table was certainly dropped since the look before.
func (n nameSet) dropped(before nameSet) func(replication.Table) bool {
	nothingNew := n.isWithin(before)
	return func(table replication.Table) bool { return nothingNew && before.has(table) && !n.has(table) }
}

func readNames(ctx context.Context, server *mysqld.Server) (nameSet, error) {
	names := nameSet{}
	err := server.EachTable(ctx, maxNames+1, names.add)
	return names, err
}
