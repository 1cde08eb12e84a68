package agent

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
)

// TestCopiesThatFailAreSpacedOut: each attempt reads all data of a member.
func TestCopiesThatFailAreSpacedOut(t *testing.T) {
	t.Parallel()
	const source = "db-0"
	var c copyBackoff
	now := time.Unix(1_800_000_000, 0)
	cause := errors.New("the disk is full")
	if err := c.wait(now, source); err != nil {
		t.Fatalf("the first copy waits: %v", err)
	}
	pause := time.Second
	for range 14 {
		if err := c.ended(now, source, cause); !errors.Is(err, cause) {
			t.Fatal(err)
		}
		if err := c.wait(now.Add(pause-time.Millisecond), source); !errors.Is(err, cause) {
			t.Errorf("after less than %s the error is %v", pause, err)
		}
		now = now.Add(pause)
		if err := c.wait(now, source); err != nil {
			t.Errorf("after %s the member still waits: %v", pause, err)
		}
		pause = min(2*pause, longestCopyPause)
	}
	if err := c.ended(now, source, nil); err != nil {
		t.Errorf("a successful copy ends with %v", err)
	}
	if c.wait(now.Add(longestCopyPause-time.Second), source) == nil || c.wait(now.Add(longestCopyPause), source) != nil {
		t.Error("the member does not wait after a copy that it does not find complete")
	}
	c = copyBackoff{}
	_ = c.ended(now, source, nil)
	if c.wait(now.Add(endPause-time.Second), "db-1") == nil || !c.isThrough {
		t.Error("mysqld ends after a copy, and the member begins to copy another one meanwhile")
	}
	if c.wait(now.Add(endPause-time.Second), source) == nil || c.wait(now.Add(endPause), source) != nil {
		t.Error("mysqld does not have a minute to end, and to start with the copy")
	}
	if c.isThrough {
		t.Error("another copy begins, but mysqld's end would complete the last copy")
	}
	c = copyBackoff{}
	_ = c.ended(now, source, cause)
	if c.wait(now, "db-1") != nil || c.wait(now, source) == nil {
		t.Error("after a failure with one member, another one is not tried at once, or the first one is")
	}
}

// TestWhichDonorsWereTried: the operator names another one, then the primary, and then any of them again.
func TestWhichDonorsWereTried(t *testing.T) {
	t.Parallel()
	a := newAgent(t, newLayout(t), memberState())
	for _, step := range []struct{ uses, want string }{{"db-2", "db-2"}, {"db-3", "db-2 db-3"}, {"db-2", "db-2 db-3"}, {"", ""}, {"db-3", "db-3"}} {
		var donor *replication.Donor
		if step.uses != "" {
			donor = &replication.Donor{Name: step.uses}
		}
		a.triedDonor(donor)
		if got := strings.Join(a.Status().TriedDonors, " "); got != step.want {
			t.Errorf("after %q it has tried %q, want %q", step.uses, got, step.want)
		}
	}
}

// TestNoMemberWaitsForOneDonor: the donor has failed often. The primary may be another one by now, so it is tried at once.
func TestNoMemberWaitsForOneDonor(t *testing.T) {
	t.Parallel()
	a := newAgent(t, newLayout(t), memberState())
	order := replication.Assignment{Donor: &replication.Donor{Name: "db-2"}}
	cause := errors.New("the donor is gone")
	for range 10 {
		_ = a.copies.ended(time.Now(), "db-2", cause)
	}
	if err := a.clone(t.Context(), replication.Observed{Assignment: &order}); !errors.Is(err, cause) {
		t.Errorf("the copy of that donor ends with %v", err)
	}
	if got := a.Status().TriedDonors; len(got) != 1 {
		t.Errorf("the member waits for its donor, and reports that it has tried %v", got)
	}
	a.triedDonor(nil)
	_ = a.copies.ended(time.Now(), "db-1", nil)
	if err := a.clone(t.Context(), replication.Observed{Assignment: &order}); err == nil || a.Status().TriedDonors != nil {
		t.Errorf("mysqld ends after a copy, and the member has tried another donor meanwhile: %v", err)
	}
}

// TestDataIsGivenUpBeforeItIsReplaced: the volume says so first, and of which replica the data becomes a copy.
func TestDataIsGivenUpBeforeItIsReplaced(t *testing.T) {
	t.Parallel()
	layout := newLayout(t)
	a := newAgent(t, layout, memberState())
	a.pointed = true
	if err := os.MkdirAll(layout.DataDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(layout.DataDir(), "auto.cnf"), "[auto]")
	if err := a.giveUpData("a uuid"); err != nil {
		t.Fatal(err)
	}
	_, err := os.Stat(filepath.Join(layout.DataDir(), "auto.cnf"))
	if kept := stateOf(t, layout); kept.Data != replication.OriginFresh || kept.CopiedFrom != "a uuid" || a.pointed || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the volume says %+v, the channel counts as set up: %t, the server_uuid: %v", kept, a.pointed, err)
	}
	if got := a.Status().CopiedFrom; got != "a uuid" {
		t.Errorf("the report says %q", got)
	}
	if err := a.giveUpData(""); err != nil || stateOf(t, layout).CopiedFrom != "" {
		t.Errorf("a copy of the primary is taken for one of a replica: %v", err)
	}
}

// TestAStepThatFailsIsToldOnce: the status and the log stay the same until something changes.
func TestAStepThatFailsIsToldOnce(t *testing.T) {
	t.Parallel()
	a := newAgent(t, newLayout(t), memberState())
	step := replication.Step{Verb: replication.VerbClone, State: replication.StateCloning, Message: "copies the data of db-0"}
	cause := &copyWaitError{errors.New("no room")}
	publish := func(step replication.Step) bool {
		return a.publish(mysqld.Observed{}, replication.Observed{}, step, followed{})
	}
	says := func(when, want string) {
		t.Helper()
		if got := a.Status().Message; got != want {
			t.Errorf("%s the message is %q, want %q", when, got, want)
		}
	}
	if !publish(step) {
		t.Error("a step with the same message counts as a change")
	}
	for range 3 {
		a.ended(step, cause)
		says("after a failure", "copies the data of db-0: waits before the next copy: no room")
		if publish(step) {
			t.Error("the same step counts as a change again")
		}
		says("at the next look", "copies the data of db-0: waits before the next copy: no room")
	}
	a.begins()
	says("while it copies", "copies the data of db-0")
	a.ended(step, cause)
	a.ended(step, nil)
	says("when it has copied", "copies the data of db-0")
	a.ended(step, cause)
	if other := (replication.Step{State: replication.StateReplicating, Message: "follows db-0"}); !publish(other) {
		t.Error("another step does not count as a change")
	}
	says("later", "follows db-0")
}

// TestACopyIsCompleteOnceItsMysqldHasEnded: until then mysqld answers with the former data, or hangs.
func TestACopyIsCompleteOnceItsMysqldHasEnded(t *testing.T) {
	t.Parallel()
	layout := newLayout(t)
	a := newAgent(t, layout, state{Data: replication.OriginFresh})
	runs(t, a, supervisor.State{Start: "first", Starts: 1, Running: true})
	if stateOf(t, layout).IsCopied {
		t.Error("nothing was copied")
	}
	_ = a.copies.ended(time.Now(), "db-0", errors.New("the network is gone"))
	runs(t, a, supervisor.State{Start: "second", Starts: 2, Running: true})
	if stateOf(t, layout).IsCopied {
		t.Error("the copy failed")
	}
	_ = a.copies.ended(time.Now(), "db-0", nil)
	a.unanswered(context.DeadlineExceeded, followed{})
	if stateOf(t, layout).IsCopied {
		t.Error("mysqld has not ended")
	}
	runs(t, a, supervisor.State{Start: "second", Starts: 2})
	if !stateOf(t, layout).IsCopied {
		t.Error("the copy succeeded, and mysqld has ended")
	}
	if err := a.keepOrigin(replication.OriginFresh); err != nil || stateOf(t, layout).IsCopied {
		t.Errorf("another copy begins (%v)", err)
	}
}
