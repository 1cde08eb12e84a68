package daemon

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func sleeper(dir, seconds string) Spec {
	return Spec{Name: "sleeper", Args: []string{"/bin/sleep", seconds}, Log: filepath.Join(dir, "logs", "sleeper.log")}
}

func TestEnsureStartsOnceAndAgainWhenItDied(t *testing.T) {
	t.Parallel()
	k := Keeper{Dir: filepath.Join(t.TempDir(), "run")}
	spec := sleeper(t.TempDir(), "600")
	ensure := func() bool {
		t.Helper()
		started, err := k.Ensure(t.Context(), spec, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		return started
	}
	if !ensure() {
		t.Fatal("nothing was started")
	}
	first, alive, err := k.Find(spec.Name)
	if err != nil || !alive {
		t.Fatalf("the program does not run: %v", err)
	}
	if ensure() {
		t.Error("a running program was started again")
	}
	if err := signalProcess(first.PID, 9); err != nil {
		t.Fatal(err)
	}
	if first.waitForExit(t.Context(), 10*time.Second) {
		t.Fatal("the killed program counts as running")
	}
	if !ensure() {
		t.Error("a dead program was not started again")
	}
	if err := k.Stop(t.Context(), spec.Name, time.Second); err != nil {
		t.Fatal(err)
	}
	if all, err := k.List(); err != nil || len(all) != 0 {
		t.Errorf("%d programs are recorded after the stop: %v", len(all), err)
	}
}

func TestEnsureReplacesWhatRunsDifferently(t *testing.T) {
	t.Parallel()
	k := Keeper{Dir: t.TempDir()}
	dir := t.TempDir()
	if _, err := k.Ensure(t.Context(), sleeper(dir, "600"), time.Second); err != nil {
		t.Fatal(err)
	}
	before, _, _ := k.Find("sleeper")
	started, err := k.Ensure(t.Context(), sleeper(dir, "700"), time.Second)
	if err != nil || !started {
		t.Fatalf("started %t: %v", started, err)
	}
	if before.alive() {
		t.Error("the program with the old arguments still runs")
	}
	if err := k.Stop(t.Context(), "sleeper", 0); err != nil {
		t.Fatal(err)
	}
}

// A program is stopped also if the user presses Ctrl-C meanwhile.
func TestStopFinishesWhenInterrupted(t *testing.T) {
	t.Parallel()
	for name, grace := range map[string]time.Duration{"killed at once": 0, "asked first": time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := Keeper{Dir: t.TempDir()}
			if _, err := k.Ensure(t.Context(), sleeper(t.TempDir(), "600"), 0); err != nil {
				t.Fatal(err)
			}
			p, _, _ := k.Find("sleeper")
			ctx, interrupt := context.WithCancel(t.Context())
			interrupt()
			if err := k.Stop(ctx, "sleeper", grace); err != nil {
				t.Error(err)
			}
			if p.alive() {
				t.Error("the program still runs")
			}
		})
	}
}

// A repository may be in a folder with any name. A program that is not listed is not stopped.
func TestListInAFolderWithAPatternForAName(t *testing.T) {
	t.Parallel()
	k := Keeper{Dir: filepath.Join(t.TempDir(), "mysql [2]", "run")}
	if all, err := k.List(); err != nil || len(all) != 0 {
		t.Fatalf("%d programs are recorded in a folder that does not exist: %v", len(all), err)
	}
	if _, err := k.Ensure(t.Context(), sleeper(t.TempDir(), "600"), 0); err != nil {
		t.Fatal(err)
	}
	if all, err := k.List(); err != nil || len(all) != 1 {
		t.Errorf("%d programs are recorded, want 1: %v", len(all), err)
	}
	if err := k.Stop(t.Context(), "sleeper", 0); err != nil {
		t.Fatal(err)
	}
}

func TestTail(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "etcd.log")
	content := strings.Repeat("long ago\n", 1<<16) + "one\ntwo\nthree\nfour\nfive\nsix\n"
	if err := os.WriteFile(log, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := Tail(log), "; the end of "+log+":\n  two\n  three\n  four\n  five\n  six"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Tail(log + "x"); !strings.Contains(got, "no such file") {
		t.Errorf("%q does not say that there is no log", got)
	}
}

// The kernel reuses the number of a process that has ended.
func TestStopLeavesAStrangerWithTheSameNumberAlone(t *testing.T) {
	t.Parallel()
	k := Keeper{Dir: t.TempDir()}
	if _, err := k.Ensure(t.Context(), sleeper(t.TempDir(), "600"), 0); err != nil {
		t.Fatal(err)
	}
	stranger, _, _ := k.Find("sleeper")
	content, err := os.ReadFile(k.file("sleeper"))
	if err != nil {
		t.Fatal(err)
	}
	forged := strings.Replace(string(content), `"start":`, `"start":1`, 1)
	if err := os.WriteFile(k.file("sleeper"), []byte(forged), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := k.Stop(t.Context(), "sleeper", 0); err != nil {
		t.Fatal(err)
	}
	if !stranger.alive() {
		t.Error("another process with the same number was killed")
	}
	if err := signalProcess(stranger.PID, 9); err != nil {
		t.Fatal(err)
	}
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	const rest = " 1 7 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 4711 1 1"
	tests := map[string]struct {
		stat  string
		start uint64
		runs  bool
	}{
		"a running process":                        {stat: "7 (etcd) S" + rest, start: 4711, runs: true},
		"a name with spaces and parentheses":       {stat: "7 (a) b (c)) R" + rest, start: 4711, runs: true},
		"one that ended and waits to be reaped":    {stat: "7 (etcd) Z" + rest},
		"a killed one with threads that still end": {stat: "7 (etcd) Z" + strings.Replace(rest, " 20 0 1 ", " 20 0 3 ", 1), start: 4711, runs: true},
		"a line cut short":                         {stat: "7 (etcd) S 1 7"},
		"no line at all, as the process is gone":   {},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start, runs := parseStat(tc.stat)
			if start != tc.start || runs != tc.runs {
				t.Errorf("start %d, running %t; want %d, %t", start, runs, tc.start, tc.runs)
			}
		})
	}
}
