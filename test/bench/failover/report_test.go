package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-operator/mysql-operator/test/bench/failover/history"
)

// led is the state of a primary with one mysqld.
func led(leader, epoch string, process int) state {
	return state{leader, epoch, []int{process}}
}

// completed is a round after which the cluster was settled.
func completed(name string, before, after state) round {
	faults, _ := parseFaults(name) // stories name existing ones
	return round{fault: faults[0], before: before, after: after, isSettled: true}
}

func TestFalseFailovers(t *testing.T) {
	t.Parallel()
	for name, story := range map[string]struct {
		rounds []round
		want   int
	}{
		"a killed primary leads again":          {[]round{completed("kill", led("a", "1", 7), led("a", "1", 8))}, 0},
		"a cut-off primary is replaced":         {[]round{completed("partition", led("a", "1", 7), led("b", "2", 9))}, 0},
		"the operator does not reach a primary": {[]round{completed("from-operator", led("a", "1", 7), led("a", "1", 7))}, 0},
		"it replaces the primary":               {[]round{completed("from-operator", led("a", "1", 7), led("b", "2", 9))}, 1},
		"the primary opens again":               {[]round{completed("from-operator", led("a", "1", 7), led("a", "2", 7))}, 1},
		"mysqld ends":                           {[]round{completed("from-operator", led("a", "1", 7), led("a", "1", 8))}, 1},
		"another member takes over between two rounds": {
			[]round{completed("kill", led("a", "1", 7), led("a", "1", 8)), completed("kill", led("b", "2", 9), led("b", "2", 10))}, 1},
		"two rounds in peace": {
			[]round{completed("stop", led("a", "1", 7), led("b", "2", 9)), completed("kill", led("b", "2", 9), led("b", "2", 10))}, 0},
		"a round that failed says nothing": {[]round{{fault: fault{spares: true}, before: led("a", "1", 7)}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := summarised(story.rounds)
			if got.falseFailovers != story.want || (got.failure() != nil) != (story.want > 0) {
				t.Errorf("got %d, %v, want %d", got.falseFailovers, got.failure(), story.want)
			}
		})
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	one := completed("oneway-in", led("a", "1", 7), led("b", "2", 9))
	one.silent, one.rejoin = silence{length: 8 * time.Second}, 12*time.Second
	other := completed("kill", led("b", "2", 9), led("b", "2", 10))
	other.silent, other.rejoin = silence{length: time.Second}, 4*time.Second
	other.findings = findings{
		readGap: 300 * time.Millisecond, stale: 3, dual: []overlap{both("a b", 0, 100)},
		verdict: history.Verdict{Violated: []int{2}}, unwritten: []history.Operation{{Value: 9}},
	}
	broken := round{fault: other.fault, before: other.after}
	var out strings.Builder
	report(&out, []fault{one.fault, other.fault}, []round{one, other, broken}, 0)
	want := []string{
		"failover_oneway_in_p50 8.0 s", "failover_oneway_in_p99 8.0 s", "failover_kill_p50 1.0 s", "failover_kill_p99 1.0 s",
		"read_gap_p50 0.3 s", "rejoin_p50 4.0 s", "rejoined_unaided 0.67 ratio", "false_failovers 0 count",
		"linearizability_violations 1 count", "stale_reads_from_deposed 3 count", "dual_primary_seen 1 count",
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		if text, isFigure := strings.CutPrefix(strings.TrimSpace(line), "figure "); isFigure {
			got = append(got, text)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	err := summarised([]round{one, other, broken}).failure()
	if err == nil || !strings.Contains(err.Error(), "1 histories of registers are not linearizable") || !strings.Contains(err.Error(), "no client wrote") {
		t.Errorf("got %v, want an error that says what clients saw", err)
	}
	if err := summarised([]round{one}).failure(); err != nil {
		t.Errorf("got %v for a round in which all was right", err)
	}
}

func TestRawTimes(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file, err := openRaw("", filepath.Join(folder, "kubeconfig"), noon())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	one := completed("partition", led("a", "1", 7), led("b", "2", 9))
	one.number, one.at, one.silent = 3, noon(), silence{after: -10 * time.Millisecond, length: 8 * time.Second}
	one.findings.dual = []overlap{both("a b", 500, 600)}
	for _, failed := range []error{nil, errors.New("wait for the cluster")} {
		if err := writeRaw(file, rawOf(one, 42, failed)); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(filepath.Join(folder, "bench", "failover-20260101-120000.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	if len(lines) != 2 {
		t.Fatalf("got %d lines, want 2: %s", len(lines), content)
	}
	var got raw
	if err := json.Unmarshal([]byte(lines[1]), &got); err != nil {
		t.Fatal(err)
	}
	want := raw{
		Fault: "partition", Round: 3, Seed: 42, At: noon(), Primary: "a", Leader: "b", Epoch: "2", Gap: 8, Begin: -0.01, Settled: true,
		DualPrimaries: []string{"500ms after the fault: a and b were open together for at least 100ms"}, Error: "wait for the cluster",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
