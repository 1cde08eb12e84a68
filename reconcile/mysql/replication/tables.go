package replication

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// A copy that CLONE makes, for a replica or for a backup, has only the rows of InnoDB tables (manual, "Cloning Remote Data"). Tables of
// other engines are there and empty. Their rows are missing on a member whose data is such a copy, and its GTID set does not show that.

// Table is a base table and its storage engine.
type Table struct {
	Schema string `json:"schema"`
	Name   string `json:"name"`
	Engine string `json:"engine"`
}

// Tables are tables of a server: some by name, and the number of further ones. The zero value is none.
type Tables struct {
	Named []Table `json:"named,omitempty"`
	More  int     `json:"more,omitempty"`
}

// Empty reports whether there are no tables.
func (t Tables) Empty() bool { return t.Count() == 0 }

// Count is the number of all tables.
func (t Tables) Count() int { return len(t.Named) + t.More }

// First limits the named tables to the first most; the rest is only counted.
func (t Tables) First(most int) Tables {
	if len(t.Named) <= most {
		return t
	}
	return Tables{Named: t.Named[:most:most], More: t.More + len(t.Named) - most}
}

// longestTables limits the names in a text, in bytes. One name may have 64 characters, of any kind.
const longestTables = 600

// String formats the tables for users. Names are quoted, because every account that may create tables chooses them.
func (t Tables) String() string {
	var text strings.Builder
	for at, table := range t.Named {
		one := fmt.Sprintf("%q.%q (%s)", table.Schema, table.Name, strings.Trim(strconv.Quote(table.Engine), `"`))
		if at > 0 && text.Len()+len(one) > longestTables {
			return fmt.Sprintf("%s and %d more", text.String(), t.Count()-at)
		}
		if at > 0 {
			text.WriteString(", ")
		}
		text.WriteString(one)
	}
	if t.More > 0 && len(t.Named) > 0 {
		fmt.Fprintf(&text, " and %d more", t.More)
	} else if t.More > 0 {
		fmt.Fprintf(&text, "%d tables", t.More)
	}
	return text.String()
}

// TableSearch is what a later search finds about tables whose rows are missing on a member.
type TableSearch struct {
	// Dropped reports whether the table was there in the previous search and is gone, and whether no other table can be the same one,
	// renamed.
	Dropped func(Table) bool
	// FromCopy are tables that are not InnoDB and as old as the copy.
	FromCopy Tables
}

// StillWithoutRows returns the tables whose rows are still missing on a member. On the primary these are the tables that came with the copy
// and are not InnoDB: what the primary has is what its cluster has. On a replica, rows are missing until the table is certainly dropped. A
// change to InnoDB copies only the rows that are here, and the replica may receive it under another name. Tables that are counted and not
// named cannot be recognized later, so only another copy removes them from the count.
func (t Tables) StillWithoutRows(found TableSearch, leads bool) Tables {
	if leads {
		return found.FromCopy
	}
	left := Tables{More: t.More}
	for _, table := range t.Named {
		if !found.Dropped(table) {
			left.Named = append(left.Named, table)
		}
	}
	return left
}

// The applier stops with these errors if a copy does not have the rows of a table. It did not find a row (ER_KEY_NOT_FOUND), or a file
// (ER_FILE_NOT_FOUND on writing, ER_ENGINE_CANT_DROP_MISSING_TABLE on DROP; seen on 9.7.4 with ARCHIVE).
const (
	errKeyNotFound     = 1032
	errFileNotFound    = 1017
	errCannotDropTable = 3605
)

// explainMissingRows adds the probable cause to the message of a replica that stopped because it did not find a row or a file.
func (s Step) explainMissingRows(local Observed) Step {
	number := local.Server.Channel.SQLErrno
	isMissing := number == errKeyNotFound || number == errFileNotFound || number == errCannotDropTable
	if s.State == StateBroken && isMissing && !local.TablesWithoutRows.Empty() {
		s.Message += fmt.Sprintf("; its data is a copy without the rows of %s, which are not InnoDB: run ALTER TABLE … ENGINE=InnoDB on the primary, then rebuild this member", local.TablesWithoutRows)
	}
	return s
}

// KnownTablesWithoutRows are the tables whose rows are known to be missing on the member.
func (s Status) KnownTablesWithoutRows() Tables {
	if s.TablesWithoutRows == nil {
		return Tables{}
	}
	return *s.TablesWithoutRows
}

// KnowsTablesWithoutRows reports whether it is known which rows are missing on the member. None are missing in data that no cluster has
// used.
func (s Status) KnowsTablesWithoutRows() bool { return s.TablesWithoutRows != nil || s.Origin.unused() }

// choose returns the member that becomes the primary, out of those that hold every transaction: one that certainly has all rows, or one for
// which that is not known, as with agents of a release that does not search. A member with missing rows becomes the primary only if no
// other member may have more: it is the former primary itself, or it comes from a backup and there has been no primary. The former primary
// comes before equals, then the lowest ordinal. Empty means that no member may become the primary.
func choose(former string, holders []Member) string {
	first := func(may func(Member) bool) string {
		chosen := ""
		for _, member := range holders {
			if may(member) && (chosen == "" || member.Name == former) {
				chosen = member.Name
			}
		}
		return chosen
	}
	return cmp.Or(
		first(func(m Member) bool { return m.Status.TablesWithoutRows != nil && m.Status.TablesWithoutRows.Empty() }),
		first(func(m Member) bool { return m.Status.TablesWithoutRows == nil }),
		first(func(m Member) bool { return m.Name == former || former == "" }),
	)
}

// namedTables is how many tables of each member an explanation names.
const namedTables = 3

// rowsMissing explains that rows are certainly missing on all members that remain to choose from.
func rowsMissing(former string, holders []Member) string {
	texts := make([]string, 0, len(holders))
	for _, member := range holders {
		texts = append(texts, fmt.Sprintf("%s is a copy without the rows of %s", member.Name, member.Status.KnownTablesWithoutRows().First(namedTables)))
	}
	whose := "a member that has them"
	if former != "" {
		whose = "the former primary " + former + ", or of another member that has them"
	}
	return fmt.Sprintf("each member that holds every transaction lacks rows of tables that are not InnoDB, so choosing one would drop data: %s; restore the volume of %s, or drop these tables on the copy (docs/troubleshooting.md, AdoptionBlocked)", strings.Join(texts, "; "), whose)
}
