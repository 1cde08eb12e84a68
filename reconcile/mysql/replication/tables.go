package replication

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// A copy that CLONE makes, as a replica and as a backup, has the rows of InnoDB's tables only (manual, "Cloning Remote Data"). Tables of
// other engines are there and empty. A member that came as such a copy lacks their rows, and its GTID set does not tell.

// Table is a base table and its storage engine.
type Table struct {
	Schema string `json:"schema"`
	Name   string `json:"name"`
	Engine string `json:"engine"`
}

// Tables are tables of a server: some by name, and how many there are beside those. The zero value is none.
type Tables struct {
	Named []Table `json:"named,omitempty"`
	More  int     `json:"more,omitempty"`
}

// Empty says whether there are none.
func (t Tables) Empty() bool { return t.Count() == 0 }

// Count is how many there are.
func (t Tables) Count() int { return len(t.Named) + t.More }

// First names at most so many.
func (t Tables) First(most int) Tables {
	if len(t.Named) <= most {
		return t
	}
	return Tables{Named: t.Named[:most:most], More: t.More + len(t.Named) - most}
}

// longestTables bounds the names in a text, in bytes. One name may take 64 characters, of any kind.
const longestTables = 600

// String is for people, with the names quoted: whoever may make tables chooses them.
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

// Present is what is found, at a later look, of tables that a member lacks rows of.
type Present struct {
	// Dropped says that a table was there at the look before and is gone, and that nothing may be that table under another name.
	Dropped func(Table) bool
	// Came are tables that are not InnoDB and as old as the copy.
	Came Tables
}

// StillLacking says of which tables a member still lacks rows. On the primary those are the ones that came with the copy and are not
// InnoDB: what the primary has is what its cluster has. A replica lacks rows until the table is dropped for certain: the change to InnoDB
// is made of the rows that are here, and may come with another name. Tables that are counted and not named cannot be told from others
// later, so only another copy ends their part.
func (t Tables) StillLacking(found Present, leads bool) Tables {
	if leads {
		return found.Came
	}
	left := Tables{More: t.More}
	for _, table := range t.Named {
		if !found.Dropped(table) {
			left.Named = append(left.Named, table)
		}
	}
	return left
}

// The applier stops with these where a copy is without the rows of a table: it did not find a row (ER_KEY_NOT_FOUND), or a file
// (ER_FILE_NOT_FOUND on writing, ER_ENGINE_CANT_DROP_MISSING_TABLE on DROP; seen on 9.7.4 with ARCHIVE).
const (
	errKeyNotFound     = 1032
	errFileNotFound    = 1017
	errCannotDropTable = 3605
)

// blaming says of a replica that stopped because it did not find something why that may be.
func (s Step) blaming(local Local) Step {
	number := local.Server.Channel.SQLErrno
	isMissing := number == errKeyNotFound || number == errFileNotFound || number == errCannotDropTable
	if s.State == StateBroken && isMissing && !local.Lacking.Empty() {
		s.Message += fmt.Sprintf("; it came as a copy without the rows of %s, which are not InnoDB: ALTER TABLE … ENGINE=InnoDB on the primary, then rebuild this member", local.Lacking)
	}
	return s
}

// LackingTables are the tables of which the member is known to lack rows.
func (s Status) LackingTables() Tables {
	if s.Lacking == nil {
		return Tables{}
	}
	return *s.Lacking
}

// KnowsLacking says whether it is known of which tables the member lacks rows. Data that nobody has used lacks none.
func (s Status) KnowsLacking() bool { return s.Lacking != nil || s.Origin.unused() }

// choose says which of the members that hold every transaction is to lead: one that surely has all rows, or one of which that is not known,
// as with agents of a release that does not look. A member that lacks rows of tables leads only where nobody may have more: it is the
// former primary itself, or it comes from a backup and there has been no primary. The former primary comes before others like it, then the
// lowest ordinal. Empty means that none may.
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
		first(func(m Member) bool { return m.Status.Lacking != nil && m.Status.Lacking.Empty() }),
		first(func(m Member) bool { return m.Status.Lacking == nil }),
		first(func(m Member) bool { return m.Name == former || former == "" }),
	)
}

// namedTables is how many tables of each member an explanation names.
const namedTables = 3

// rowsMissing explains that only members are left that surely lack rows.
func rowsMissing(former string, holders []Member) string {
	texts := make([]string, 0, len(holders))
	for _, member := range holders {
		texts = append(texts, fmt.Sprintf("%s came as a copy without the rows of %s", member.Name, member.Status.LackingTables().First(namedTables)))
	}
	whose := "a member that has them"
	if former != "" {
		whose = "the former primary " + former + ", or of another member that has them"
	}
	return fmt.Sprintf("whoever holds every transaction lacks rows of tables that are not InnoDB, so choosing one would drop data: %s; restore the volume of %s, or drop these tables there (docs/troubleshooting.md, AdoptionBlocked)", strings.Join(texts, "; "), whose)
}
