package agent

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// TestCopiesThatFailAreSpacedOut: each try reads the whole primary.
func TestCopiesThatFailAreSpacedOut(t *testing.T) {
	t.Parallel()
	const source = "db-0.pods"
	var c copies
	now := time.Unix(1_800_000_000, 0)
	cause := errors.New("the disk is full")
	if err := c.wait(now, source); err != nil {
		t.Fatalf("the first copy waits: %v", err)
	}
	pause := time.Second
	for range 14 {
		if err := c.ended(now, cause); !errors.Is(err, cause) {
			t.Fatal(err)
		}
		if err := c.wait(now.Add(pause-time.Millisecond), source); !errors.Is(err, cause) {
			t.Errorf("after less than %s it says %v", pause, err)
		}
		now = now.Add(pause)
		if err := c.wait(now, source); err != nil {
			t.Errorf("after %s it still waits: %v", pause, err)
		}
		pause = min(2*pause, longestCopyPause)
	}
	if err := c.ended(now, nil); err != nil {
		t.Errorf("a copy that went well ends with %v", err)
	}
	if c.wait(now.Add(longestCopyPause-time.Second), source) == nil || c.wait(now.Add(longestCopyPause), source) != nil {
		t.Error("a copy that is not found complete is as one that failed")
	}
	c = copies{}
	_ = c.ended(now, nil)
	if c.wait(now.Add(endPause-time.Second), "") == nil || c.wait(now.Add(endPause), "") != nil {
		t.Error("mysqld has no minute to end, and to start with the copy")
	}
	if c.isThrough {
		t.Error("another copy begins, and mysqld's end would be that of the last one")
	}
	c = copies{source: source}
	_ = c.ended(now, cause)
	if c.wait(now, source) == nil || c.wait(now, "db-1.pods") != nil {
		t.Error("what failed with one primary is not tried with another one at once")
	}
}

// TestAStepThatFailsIsToldOnce: who reads the status, or the log, sees the same until something else happens.
func TestAStepThatFailsIsToldOnce(t *testing.T) {
	t.Parallel()
	a := newAgent(t, newLayout(t), memberState())
	step := replication.Step{Verb: replication.VerbClone, State: replication.StateCloning, Message: "copies the data of db-0"}
	cause := &tooEarlyError{errors.New("no room")}
	publish := func(step replication.Step) bool {
		return a.publish(mysqld.Observed{}, replication.Local{}, step, nil)
	}
	says := func(when, want string) {
		t.Helper()
		if got := a.Status().Message; got != want {
			t.Errorf("%s it says %q, want %q", when, got, want)
		}
	}
	if !publish(step) {
		t.Error("the step is news")
	}
	for range 3 {
		a.ended(step, cause)
		says("after a failure", "copies the data of db-0: waits before the next copy: no room")
		if publish(step) {
			t.Error("the same step is news again")
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
		t.Error("another step is no news")
	}
	says("later", "follows db-0")
}

// TestACopyIsCompleteOnceItsMysqldHasEnded: until then mysqld answers with what was there before, or hangs.
func TestACopyIsCompleteOnceItsMysqldHasEnded(t *testing.T) {
	t.Parallel()
	layout := newLayout(t)
	a := newAgent(t, layout, state{Data: replication.OriginFresh})
	a.unanswered(fs.ErrNotExist)
	if stateOf(t, layout).IsCopied {
		t.Error("nothing was copied")
	}
	_ = a.copies.ended(time.Now(), errors.New("the network is gone"))
	a.unanswered(fs.ErrNotExist)
	if stateOf(t, layout).IsCopied {
		t.Error("the copy failed")
	}
	_ = a.copies.ended(time.Now(), nil)
	a.unanswered(context.DeadlineExceeded)
	if stateOf(t, layout).IsCopied {
		t.Error("mysqld has not ended")
	}
	a.unanswered(syscall.ECONNREFUSED)
	if !stateOf(t, layout).IsCopied {
		t.Error("the copy went through, and mysqld has ended")
	}
	if err := a.keepOrigin(replication.OriginFresh); err != nil || stateOf(t, layout).IsCopied {
		t.Errorf("another copy begins (%v)", err)
	}
}
