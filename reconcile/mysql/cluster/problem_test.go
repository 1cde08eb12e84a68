package cluster

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/test/reasons"
)

// The documentation explains every reason that a cluster can give, and no other reason.
func TestReasonsAreExplained(t *testing.T) {
	t.Parallel()
	own, decided := reasons.Constants(t, ".", "reason"), reasons.Constants(t, "../replication", "Reason")
	for _, folder := range []string{"claims", "restore"} {
		maps.Copy(own, reasons.Constants(t, folder, "Reason"))
	}
	if len(own) < 20 || len(decided) < 5 {
		t.Fatalf("these are not all reasons: %v %v", own, decided)
	}
	for name, reason := range own {
		if uses(t, name) < 2 {
			t.Errorf("no cluster ever says %s", reason)
		}
	}
	shared := reasons.Constants(t, "../../report", "Reason")
	said := append(slices.Concat(slices.Collect(maps.Values(own)), slices.Collect(maps.Values(decided)), slices.Collect(maps.Values(shared))), reconcile.ReasonAccepted)
	// A cluster also reports the reasons of restore Pods; only one document has the steps.
	restores := restoreReasons(t)
	explained := headings(t)
	for _, reason := range said {
		if !slices.Contains(explained, reason) {
			t.Errorf("docs/troubleshooting.md does not explain %s", reason)
		}
	}
	for _, word := range explained {
		if !slices.Contains(said, word) && !slices.Contains(restores, word) {
			t.Errorf("docs/troubleshooting.md explains %s, which no cluster says", word)
		}
	}
	for _, reason := range restores {
		if !slices.Contains(explained, reason) {
			t.Errorf("docs/troubleshooting.md does not explain %s", reason)
		}
	}
}

// uses counts how often a name occurs in the packages of this kind.
func uses(t *testing.T, name string) int {
	t.Helper()
	return reasons.Uses(t, ".", name) + reasons.Uses(t, "claims", name) + reasons.Uses(t, "restore", name)
}

// restoreReasons returns those of reconcile/mysql/transfer/protocol that this kind uses.
func restoreReasons(t *testing.T) []string {
	t.Helper()
	var spoken []string
	for name, reason := range reasons.Constants(t, "../transfer/protocol", "Reason") {
		if uses(t, "protocol."+name) > 0 && name != "ReasonCompleted" {
			spoken = append(spoken, reason)
		}
	}
	if len(spoken) < 15 {
		t.Fatalf("these are not all reasons: %v", spoken)
	}
	return spoken
}

// headings returns the reasons that docs/troubleshooting.md has steps for.
func headings(t *testing.T) []string {
	t.Helper()
	section := reasons.Section(t, "../../../docs/troubleshooting.md", "## Reasons of Ready")
	var words []string
	for _, heading := range regexp.MustCompile(`(?m)^### (.+)$`).FindAllStringSubmatch(section, -1) {
		words = append(words, strings.Split(heading[1], ", ")...)
	}
	return words
}
