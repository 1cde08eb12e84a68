package objects

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mysql-operator/mysql-operator/crds"
)

const (
	// maxFindings is how many harmed objects are reported.
	maxFindings = 20
	// maxDetails is how many lost fields, and how many refusals, are reported for each object.
	maxDetails = 20
)

// tally counts the checked objects and keeps the first harmed ones.
type tally struct {
	seen, harmed int
	findings     []crds.Finding
}

// add counts one object, whether harmed or not.
func (t *tally) add(finding crds.Finding) {
	t.seen++
	if len(finding.Lost) == 0 && len(finding.Invalid) == 0 {
		return
	}
	t.harmed++
	t.keep(finding)
}

// join adds another tally.
func (t *tally) join(other tally) {
	t.seen += other.seen
	t.harmed += other.harmed
	for _, finding := range other.findings {
		t.keep(finding)
	}
}

func (t *tally) keep(finding crds.Finding) {
	at, _ := slices.BinarySearchFunc(t.findings, finding, func(a, b crds.Finding) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	if at >= maxFindings {
		return
	}
	t.findings = slices.Insert(t.findings, at, finding)
	t.findings = t.findings[:min(len(t.findings), maxFindings)]
}

// details sorts the lines, drops repetitions, and keeps as many as a person would read.
func details(lines []string) []string {
	slices.Sort(lines)
	lines = slices.Compact(lines)
	if more := len(lines) - maxDetails; more > 0 {
		lines = append(lines[:maxDetails], fmt.Sprintf("and %d more", more))
	}
	return lines
}
