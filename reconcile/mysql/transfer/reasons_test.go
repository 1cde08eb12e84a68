package transfer

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	"github.com/mysql-operator/mysql-operator/test/reasons"
)

const troubleshooting, manual = "../../../docs/troubleshooting.md", "../../../docs/backups.md"

// The tables must explain every reason of instances and schedules, and no other.
func TestReasonsAreExplained(t *testing.T) {
	t.Parallel()
	ofBackups, ofRestores := ownReasons(t)
	instances, schedules := "../backup", "../schedule"
	tables := tablesOf(t, reasons.Section(t, troubleshooting, "## Backups"))
	events := tablesOf(t, reasons.Section(t, manual, "## Phases and reasons"))
	if len(tables) != 3 || len(events) != 2 {
		t.Fatalf("there are %d tables of reasons and %d of phases and events", len(tables), len(events))
	}

	// Reasons of normal progress need no steps.
	said := slices.DeleteFunc(slices.Concat(ofBackups, wordsOf(t, instances), slices.Collect(maps.Values(reasons.Constants(t, "../../report", "Reason")))), func(word string) bool {
		return word == protocol.ReasonCompleted || word == protocol.ReasonDeleting || slices.Contains(events[1], word) && strings.HasPrefix(word, "BackupData")
	})
	compare(t, "tables of instances", slices.Concat(tables[0], tables[1]), said)

	told := slices.DeleteFunc(slices.Concat(wordsOf(t, schedules), usedBy(t, schedules), []string{report.ReasonForbidden, report.ReasonRejected}), func(word string) bool {
		return slices.Contains(events[1], word) && !slices.Contains(tables[2], word)
	})
	compare(t, "table of schedules", tables[2], told)

	known := slices.Concat(ofBackups, ofRestores, wordsOf(t, instances), wordsOf(t, schedules), []string{protocol.ReasonDataLeft}, slices.Collect(maps.Values(reasons.Constants(t, "../cluster", "event"))))
	for _, word := range events[1] {
		if !slices.Contains(known, word) {
			t.Errorf("%s: no code sends the event %s", manual, word)
		}
	}

	headings := reasons.Section(t, troubleshooting, "## Reasons of Ready")
	for _, word := range ofRestores {
		if !slices.ContainsFunc(strings.Split(headings, "\n"), func(line string) bool {
			return strings.HasPrefix(line, "### ") && slices.Contains(strings.Split(line[4:], ", "), word)
		}) {
			t.Errorf("%s has no steps for %s", troubleshooting, word)
		}
	}
}

// ownReasons returns the constants of package protocol, of backups and of restores. The constants of restores follow the comment
// "Restores.".
func ownReasons(t *testing.T) (ofBackups, ofRestores []string) {
	t.Helper()
	text, err := os.ReadFile("protocol/reasons.go")
	if err != nil {
		t.Fatal(err)
	}
	before, _, found := strings.Cut(string(text), "// Restores.")
	all := reasons.Constants(t, "protocol", "Reason")
	if !found || len(all) < 30 {
		t.Fatalf("these are not all reasons, or restores have none: %v", all)
	}
	for name, word := range all {
		switch {
		case strings.Contains(before, "\t"+name+" "):
			ofBackups = append(ofBackups, word)
		case name != "ReasonDataLeft":
			ofRestores = append(ofRestores, word)
		}
	}
	return ofBackups, ofRestores
}

// wordsOf returns the reasons of a kind's own package. Each must be used.
func wordsOf(t *testing.T, folder string) []string {
	t.Helper()
	found := reasons.Constants(t, folder, "reason")
	for name, word := range found {
		if reasons.Uses(t, folder, name) < 2 {
			t.Errorf("%s never uses %s", folder, word)
		}
	}
	return slices.Collect(maps.Values(found))
}

// usedBy returns the reasons of package protocol that a kind uses.
func usedBy(t *testing.T, folder string) []string {
	t.Helper()
	var used []string
	for name, word := range reasons.Constants(t, "protocol", "Reason") {
		if reasons.Uses(t, folder, "protocol."+name) > 0 {
			used = append(used, word)
		}
	}
	return used
}

// tablesOf returns the words in the first cells of the tables' rows or, if the first cell names their subject, in the second ones.
func tablesOf(t *testing.T, section string) [][]string {
	t.Helper()
	var tables [][]string
	inside := false
	for line := range strings.Lines(section) {
		row := strings.HasPrefix(line, "|")
		if row && !inside {
			tables = append(tables, nil)
		}
		inside = row
		if !row {
			continue
		}
		cells := strings.Split(line, "|")
		words := reasons.Marked(cells[1])
		if first := strings.TrimSpace(cells[1]); len(words) == 0 && (first == "" || strings.HasPrefix(first, "a")) {
			words = reasons.Marked(cells[2])
		}
		tables[len(tables)-1] = append(tables[len(tables)-1], words...)
	}
	return tables
}

func compare(t *testing.T, where string, explained, said []string) {
	t.Helper()
	for _, word := range said {
		if !slices.Contains(explained, word) {
			t.Errorf("the %s: no %s", where, word)
		}
	}
	for _, word := range explained {
		if !slices.Contains(said, word) {
			t.Errorf("the %s: %s is used by no code", where, word)
		}
	}
}
