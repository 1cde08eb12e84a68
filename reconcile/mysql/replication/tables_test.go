package replication

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// named parses "log:MyISAM visits:InnoDB" as tables of the schema shop.
func named(text string) []Table {
	var tables []Table
	for one := range strings.FieldsSeq(text) {
		name, engine, _ := strings.Cut(one, ":")
		tables = append(tables, Table{"shop", name, engine})
	}
	return tables
}

// lacks makes a member report that its data is a copy without the rows of these tables; without tables, it reports that it has all rows.
func lacks(tables string) saying {
	return func(_ *testing.T, s *Status) { s.TablesWithoutRows = &Tables{Named: named(tables)} }
}

func TestWhatAMemberStillLacks(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lacking, dropped, came string
		more, cameMore         int
		leads                  bool
		want                   string
	}{
		"nothing has happened, or nothing that is certain": {lacking: "a:MyISAM b:CSV", want: `"shop"."a" (MyISAM), "shop"."b" (CSV)`},
		"one was dropped":  {lacking: "a:MyISAM b:CSV", dropped: "a", want: `"shop"."b" (CSV)`},
		"all were dropped": {lacking: "a:MyISAM b:CSV", dropped: "a b"},
		"one is InnoDB now, made of the rows that exist here": {lacking: "a:MyISAM", came: "", want: `"shop"."a" (MyISAM)`},
		"not all are named":                          {lacking: "a:MyISAM b:CSV", more: 3, dropped: "a", want: `"shop"."b" (CSV) and 3 more`},
		"not all are named, and the others are gone": {lacking: "a:MyISAM", more: 3, dropped: "a", want: "3 tables"},
		"on the primary one is InnoDB now":           {lacking: "a:MyISAM b:CSV", came: "b:CSV", leads: true, want: `"shop"."b" (CSV)`},
		"on the primary one has another name":        {lacking: "a:MyISAM", came: "b:MyISAM", leads: true, want: `"shop"."b" (MyISAM)`},
		"on the primary all are InnoDB now":          {lacking: "a:MyISAM", more: 3, leads: true},
		"on the primary not all are named":           {lacking: "a:MyISAM", more: 3, came: "a:MyISAM", cameMore: 2, leads: true, want: `"shop"."a" (MyISAM) and 2 more`},
	} {
		before := Tables{Named: named(test.lacking), More: test.more}
		found := TableSearch{
			Dropped:  func(table Table) bool { return slices.Contains(strings.Fields(test.dropped), table.Name) },
			FromCopy: Tables{Named: named(test.came), More: test.cameMore},
		}
		if got := before.StillWithoutRows(found, test.leads).String(); got != test.want {
			t.Errorf("%s: rows of %q are missing, want %q", name, got, test.want)
		}
	}
}

// TestTablesInWords: every account that may create tables chooses their names and their number.
func TestTablesInWords(t *testing.T) {
	t.Parallel()
	for want, tables := range map[string]Tables{
		"": {}, `"shop"."a" (MyISAM)`: {Named: named("a:MyISAM")}, "3 tables": {More: 3},
		`"shop"."a" (MyISAM), "shop"."b" (CSV) and 7 more`: {Named: named("a:MyISAM b:CSV"), More: 7},
		`"sh\"op"."a\n\x1b[2J" (a\nb)`:                     {Named: []Table{{"sh\"op", "a\n\x1b[2J", "a\nb"}}},
	} {
		if got := tables.String(); got != want {
			t.Errorf("%+v is %q, want %q", tables, got, want)
		}
	}
	many := Tables{}
	for range 20 {
		many.Named = append(many.Named, Table{strings.Repeat("ש", 64), strings.Repeat("\u0001", 64), "MyISAM"})
	}
	if got := many.String(); len(got) > 2*longestTables || !utf8.ValidString(got) || !strings.HasSuffix(got, "more") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	few := Tables{Named: named("a:CSV b:CSV c:CSV"), More: 1}.First(2)
	if diff := cmp.Diff(Tables{Named: named("a:CSV b:CSV"), More: 2}, few); diff != "" {
		t.Error(diff)
	}
}

func TestDecideChoosesNobodyWhoLacksRows(t *testing.T) {
	t.Parallel()
	last := rec(4, 1, "db-0", "db-1", "db-2")
	whole := func(t *testing.T) *story {
		t.Helper()
		s := wanting(t, 3).scaled(3).older(0, 1, 2).hears(0, StateWaiting, holding(last), wasPrimary, lacks(""))
		return s.hears(1, StateWaiting, holding(last), lacks("")).hears(2, StateWaiting, holding(last), lacks(""))
	}
	t.Run("rows are missing on copies: the former primary is chosen", func(t *testing.T) {
		t.Parallel()
		s := whole(t).hears(1, StateWaiting, holding(last), lacks("log:MyISAM")).hears(2, StateWaiting, holding(last), lacks("log:MyISAM"))
		wantRecord(t, s, rec(5, 0, "db-0"))
	})
	t.Run("the former primary is lost: the replica that has all rows is chosen, although it is not the first", func(t *testing.T) {
		t.Parallel()
		s := whole(t).hears(0, StateWaiting, fresh, holding(Record{})).hears(1, StateWaiting, holding(last), lacks("log:MyISAM"))
		wantRecord(t, s, rec(5, 0, "db-2"))
	})
	t.Run("the former primary is lost, and only copies are left: a user must decide", func(t *testing.T) {
		t.Parallel()
		s := whole(t).hears(0, StateWaiting, fresh, holding(Record{})).hears(1, StateWaiting, holding(last), lacks("log:MyISAM")).hears(2, StateWaiting, holding(last), lacks("log:MyISAM"))
		wantNote(t, s, ReasonAdoptionBlocked, true, "db-1", "db-2", `"shop"."log" (MyISAM)`, "lacks rows of tables that are not InnoDB", "former primary db-0", "drop")
		wantRecord(t, s, Record{})
	})
	t.Run("a member that has all rows but not all transactions is not chosen instead", func(t *testing.T) {
		t.Parallel()
		s := whole(t).hears(0, StateWaiting, fresh, holding(Record{})).hears(1, StateWaiting, holding(last), has("A:1-12"), lacks("log:MyISAM"))
		wantNote(t, s, ReasonAdoptionBlocked, true, "db-1")
	})
	t.Run("the cluster started from a backup: rows are missing on its primary, no member has more, and it is chosen", func(t *testing.T) {
		t.Parallel()
		s := whole(t).hears(0, StateWaiting, holding(last), wasPrimary, lacks("log:MyISAM"))
		s.hears(1, StateWaiting, holding(last), lacks("log:MyISAM")).hears(2, StateWaiting, holding(last), lacks("log:MyISAM"))
		wantRecord(t, s, rec(5, 0, "db-0"))
	})
	t.Run("rows are missing on the former primary: a replica that has them is chosen", func(t *testing.T) {
		t.Parallel()
		s := whole(t).hears(0, StateWaiting, holding(last), wasPrimary, lacks("log:MyISAM"))
		wantRecord(t, s, rec(5, 0, "db-1"))
	})
	t.Run("a backup was restored, and there was no primary yet", func(t *testing.T) {
		t.Parallel()
		s := wanting(t, 1).scaled(1).older(0).hears(0, StateWaiting, holding(Record{}), lacks("log:MyISAM"))
		wantRecord(t, s, rec(1, 0, "db-0"))
	})
	t.Run("a primary that takes writes stays the primary", func(t *testing.T) {
		t.Parallel()
		s := whole(t).hears(0, StateWriting, holding(last), wasPrimary, lacks("log:MyISAM"))
		wantRecord(t, s, rec(5, 0, "db-0"))
	})
}

// TestDecideChoosesAmongMembersThatDoNotTellWhatTheyLack: agents of a release that does not search report nothing, and neither does an
// agent whose search fails.
func TestDecideChoosesAmongMembersThatDoNotTellWhatTheyLack(t *testing.T) {
	t.Parallel()
	last := rec(4, 1, "db-0", "db-1", "db-2")
	silent := func(*testing.T, *Status) {}
	for name, test := range map[string]struct {
		// each is what each member reports about missing rows. lost means that the former primary's volume is lost.
		each [3]saying
		lost bool
		want string
	}{
		"no member reports: the former primary":                                   {[3]saying{silent, silent, silent}, false, "db-0"},
		"no member reports, and it is lost: the first of the others":              {[3]saying{silent, silent, silent}, true, "db-1"},
		"one certainly has all rows, and the former primary does not report":      {[3]saying{silent, silent, lacks("")}, false, "db-2"},
		"the former primary certainly has all rows":                               {[3]saying{lacks(""), silent, lacks("")}, false, "db-0"},
		"it is lost, one does not report, and one has all rows":                   {[3]saying{silent, silent, lacks("")}, true, "db-2"},
		"it is lost, rows are missing on one, and one does not report":            {[3]saying{silent, lacks("log:MyISAM"), silent}, true, "db-2"},
		"rows are missing on the former primary, and one does not report":         {[3]saying{lacks("log:MyISAM"), silent, lacks("log:MyISAM")}, false, "db-1"},
		"the former primary does not report, and rows are missing on the others":  {[3]saying{silent, lacks("log:MyISAM"), lacks("log:MyISAM")}, false, "db-0"},
		"of those that do not report, the former primary comes first":             {[3]saying{silent, silent, lacks("log:MyISAM")}, false, "db-0"},
		"rows are missing on all: the former primary, because no member has more": {[3]saying{lacks("log:MyISAM"), lacks("a:CSV"), lacks("b:CSV")}, false, "db-0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := wanting(t, 3).scaled(3).older(0, 1, 2).hears(0, StateWaiting, holding(last), wasPrimary, test.each[0])
			s.hears(1, StateWaiting, holding(last), test.each[1]).hears(2, StateWaiting, holding(last), test.each[2])
			if test.lost {
				s.hears(0, StateWaiting, fresh, holding(Record{}))
			}
			wantRecord(t, s, rec(5, 0, test.want))
		})
	}
}

// TestAReplicaSaysWhyItLacksARow: a rebuild, which is the usual advice to users, does not help here.
func TestAReplicaSaysWhyItLacksARow(t *testing.T) {
	t.Parallel()
	stopped := func(number int, tables string) Step {
		return NextStep(Observed{
			Assignment: &Assignment{Record: Record{Primary: "db-0"}, Role: RoleReplica, SourceAddress: "10.0.0.1", SourcePort: 3306}, Origin: OriginMember, TablesWithoutRows: Tables{Named: named(tables)},
			Server: Server{SuperReadOnly: true, Channel: Channel{Configured: true, SourceHost: "10.0.0.1", SourcePort: 3306, IO: "Yes", SQL: "No", SQLErrno: number, SQLError: "Can't find record"}},
		})
	}
	if step := stopped(1032, "log:MyISAM"); step.State != StateBroken || !strings.Contains(step.Message, `without the rows of "shop"."log" (MyISAM)`) || !strings.Contains(step.Message, "ENGINE=InnoDB") {
		t.Errorf("the message is %q", step.Message)
	}
	if step := stopped(1017, "log:ARCHIVE"); !strings.Contains(step.Message, `"shop"."log" (ARCHIVE)`) {
		t.Errorf("the message is %q", step.Message)
	}
	for what, step := range map[string]Step{"no rows are missing": stopped(1032, ""), "another error": stopped(1062, "log:MyISAM")} {
		if step.State != StateBroken || strings.Contains(step.Message, "copy") {
			t.Errorf("%s: the message is %q", what, step.Message)
		}
	}
}
