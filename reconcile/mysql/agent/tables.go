package agent

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

const (
	// tablesEvery is how often tables of other engines than InnoDB are looked for, tablesSoon while there are some that people may have
	// mended.
	tablesEvery = time.Hour
	tablesSoon  = 5 * time.Minute
	// tablesTimeout bounds such a look.
	tablesTimeout = 30 * time.Second
	// reportedTables are named in a report, keptTables in member.json.
	reportedTables = 5
	keptTables     = 20
)

// lacking are the tables that came without their rows when the data was copied or restored here. A member that made its data itself has
// none.
type lacking struct {
	Tables replication.Tables `json:"tables,omitzero"`
	// Until is when they were looked for, or when the youngest of them was made if that is later: tables that are younger came with their
	// rows. In UTC, as MySQL writes it.
	Until string `json:"until,omitempty"`
}

// tableWatch says when tables are looked at next.
type tableWatch struct {
	leads, busy bool
	due         time.Time
	// names are those of the tables at the last look, for the list that a replica has in of: what is gone since was dropped, if nothing is
	// new.
	names nameSet
	of    *lacking
	// tried says that the loop itself has looked once; what it did not find out is found out beside it.
	tried bool
}

// tableTask is what one look is about: the tables that the member lacks rows of, nil where that is not known, and, on a primary, all of its
// tables.
type tableTask struct {
	lacking *lacking
	leads   bool
	// names are those of all tables at the look before; nil where there was none for the same list.
	names nameSet
}

// tableFindings is what a look has found; names where they were needed, other engines on a primary.
type tableFindings struct {
	lacking *lacking
	names   nameSet
	other   *replication.Tables
}

// keepCopied ends a copy: of which tables the rows are not here is on the volume before replication brings any, and so before anybody
// counts on the data. Where the look fails, it is a member's data of which that is not known, and the next look is due.
func (a *Agent) keepCopied(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, tablesTimeout)
	defer cancel()
	found, err := lackingNow(bounded, a.local)
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
	kept.Data, kept.IsCopied, kept.Lacking = replication.OriginMember, false, found
	if err := a.keep(kept); err != nil {
		return err
	}
	a.copies = copies{}
	return nil
}

const notYetKnown = "it is not known yet which tables came without their rows, will look again"

// lackingNow is what data may lack that came a short while ago: whatever table of another engine there is. When a table was made does not
// tell whether it came with its rows, since that is by the clock of the server where it was made.
func lackingNow(ctx context.Context, server *mysqld.Server) (*lacking, error) {
	until, err := server.TablesUntil(ctx)
	if err != nil {
		return nil, err
	}
	tables, err := server.TablesWithoutRows(ctx, "", keptTables)
	if err != nil {
		return nil, err
	}
	return &lacking{Tables: tables, Until: until}, nil
}

// settleTables finds out once what a member's data lacks. In a restored backup that is known only until somebody writes, so it comes before
// anything else. Data that an agent of before knew is told by MySQL's own word about the copy, which stays: an error is no reason to wait.
func (a *Agent) settleTables(ctx context.Context) error {
	a.mu.Lock()
	kept, isUnused := a.kept, a.kept.RestoredFrom != nil && a.kept.Held.Epoch == 0
	isKnown := kept.Lacking != nil || a.tables.tried && !isUnused
	a.tables.tried = true
	a.mu.Unlock()
	if isKnown {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, tablesTimeout)
	defer cancel()
	look := func(ctx context.Context) (*lacking, error) { return lackingSince(ctx, a.local) }
	if isUnused {
		look = func(ctx context.Context) (*lacking, error) { return lackingNow(ctx, a.local) }
	}
	found, err := look(bounded)
	if err == nil {
		err = a.keepLacking(nil, found)
	}
	if err != nil && !isUnused {
		a.log.Info(notYetKnown, "error", err.Error())
		return nil
	}
	if err != nil {
		return fmt.Errorf("learn which tables came without their rows, before anybody writes: %w", err)
	}
	return nil
}

// lackingSince is what data may lack that came as a copy before. Tables that were made since came with their rows and are named as well:
// that asks for a rebuild that nobody needs, and the other way round rows could be lost.
func lackingSince(ctx context.Context, server *mysqld.Server) (*lacking, error) {
	isCopy, err := server.CopyCompleted(ctx)
	if err != nil {
		return nil, err
	}
	if !isCopy {
		return &lacking{}, nil
	}
	return lackingNow(ctx, server)
}

// keepLacking notes what the member lacks, unless what was known before is not what it is now: it was copied over meanwhile.
func (a *Agent) keepLacking(before, found *lacking) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kept.Data != replication.OriginMember || a.kept.Lacking != before || reflect.DeepEqual(before, found) {
		return nil
	}
	kept := a.kept
	kept.Lacking = found
	return a.keep(kept)
}

// maintainTables looks at tables from time to time, beside the loop: information_schema may take seconds.
func (a *Agent) maintainTables(ctx context.Context, where replication.State) {
	task, isDue := a.dueTables(where == replication.StateWriting, time.Now())
	if isDue {
		go a.lookAtTables(ctx, a.local, task)
	}
}

// dueTables says what is to be looked at now. A primary looks at the beginning of its term; what an earlier one was told says nothing then.
func (a *Agent) dueTables(leads bool, now time.Time) (task tableTask, isDue bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	watch := &a.tables
	leads = leads && a.kept.HeldRole == replication.RolePrimary // somebody may open a replica by hand
	if leads != watch.leads {
		watch.leads, watch.due, a.status.OtherEngines, a.measured.keyless = leads, time.Time{}, nil, nil
	}
	task = tableTask{lacking: a.kept.Lacking, leads: leads}
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

// lookAtTables takes one look and keeps what it found.
func (a *Agent) lookAtTables(ctx context.Context, server *mysqld.Server, task tableTask) {
	bounded, cancel := context.WithTimeout(ctx, tablesTimeout)
	defer cancel()
	found, err := task.look(bounded, server)
	if err == nil {
		err = a.keepLacking(task.lacking, found.lacking)
	}
	if err != nil && ctx.Err() == nil {
		a.log.Info("tables could not be looked at, will try again", "error", err.Error())
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

// look finds what the member still lacks and, on a primary, its tables of other engines.
func (t tableTask) look(ctx context.Context, server *mysqld.Server) (tableFindings, error) {
	found := tableFindings{lacking: t.lacking}
	var err error
	switch {
	case t.lacking == nil:
		found.lacking, err = lackingSince(ctx, server)
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

// lookAgain finds what is left of the tables that the member lacked rows of.
func (t tableTask) lookAgain(ctx context.Context, server *mysqld.Server, found *tableFindings) error {
	var seen replication.Present
	var err error
	if t.leads {
		seen.Came, err = server.TablesWithoutRows(ctx, t.lacking.Until, keptTables)
	} else if found.names, err = readNames(ctx, server); err == nil {
		seen.Dropped = found.names.dropped(t.names)
	}
	if err != nil {
		return err
	}
	left := t.lacking.Tables.StillLacking(seen, t.leads)
	if !reflect.DeepEqual(left, t.lacking.Tables) {
		found.lacking = &lacking{Tables: left, Until: t.lacking.Until}
	}
	return nil
}

// nameSet says of tables, by the hash of each name, what else there is to tell it by: another table may have its name by now. A server may
// have many tables, so that both are hashes. nil is not known.
type nameSet map[uint64]uint64

// maxNames bounds a nameSet. Of a server with more tables it is not known which are new.
const maxNames = 100_000

func hash(parts ...string) uint64 {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return binary.BigEndian.Uint64(sum[:])
}

// add notes a table. RENAME TABLE gives another name to the same engine and time, and whatever else makes a table of another one's rows
// gives it a new time.
func (n nameSet) add(table replication.Table, made string) {
	n[hash(table.Schema, table.Name)] = hash(table.Engine, made)
}

func (n nameSet) has(table replication.Table) bool {
	_, found := n[hash(table.Schema, table.Name)]
	return found
}

// isWithin says whether all of these were there before, so that none is new; not where one of both is not known.
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

// dropped says which tables were dropped for certain since the look before.
func (n nameSet) dropped(before nameSet) func(replication.Table) bool {
	nothingNew := n.isWithin(before)
	return func(table replication.Table) bool { return nothingNew && before.has(table) && !n.has(table) }
}

func readNames(ctx context.Context, server *mysqld.Server) (nameSet, error) {
	names := nameSet{}
	err := server.EachTable(ctx, maxNames+1, names.add)
	return names, err
}
