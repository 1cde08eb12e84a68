package agent

import (
	"io/fs"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// TestCommitsThatHang: a busy server always has sessions that wait to commit. They hang when nothing is committed meanwhile.
func TestCommitsThatHang(t *testing.T) {
	t.Parallel()
	var c commits
	began := time.Unix(1_800_000_000, 0)
	for _, moment := range []struct {
		second   int
		executed string
		waiting  int
		want     int
	}{
		{0, "1-10", 8, 0},
		{5, "1-90", 8, 0},
		{10, "1-90", 8, 5},
		{15, "1-90", 9, 10},
		{20, "1-90", 0, 0}, // those who waited have given up
		{25, "1-90", 0, 0}, // nobody writes
		{30, "1-90", 1, 5},
		{35, "1-91", 1, 0},
	} {
		executed, err := replication.ParseGTIDSet("3e11fa47-71ca-11e1-9e33-c80aa9429562:" + moment.executed)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.stand(began.Add(time.Duration(moment.second)*time.Second), executed, moment.waiting); got != time.Duration(moment.want)*time.Second {
			t.Errorf("second %d: %s, want %d", moment.second, got, moment.want)
		}
	}
}

// TestCommitsThatHungBeforeACrash: mysqld that starts anew has none of the sessions that waited, and must not be told as one whose commits
// hang.
func TestCommitsThatHungBeforeACrash(t *testing.T) {
	t.Parallel()
	agent := newAgent(t, newLayout(t), memberState())
	seen := someObservation()
	agent.commits = commits{since: time.Now().Add(-time.Minute), executed: seen.Server.Executed}
	agent.status.Transactions = replication.Transactions{Prepared: 1, CommitWaitSeconds: 60}
	agent.unanswered(fs.ErrNotExist)
	if got := agent.Status().Transactions; got.CommitWaitSeconds != 0 || got.Prepared != 1 {
		t.Errorf("it says %+v", got)
	}
	seen.LockedOut = true
	agent.maintainCommits(t.Context(), seen)
	if got := agent.Status().Transactions.CommitWaitSeconds; got > 1 {
		t.Errorf("one that waits since the start is told to wait for %d seconds", got)
	}
}

// TestCommitsHangWhileNobodyCanLogIn: a statement about accounts waits to be acknowledged, and the time goes on though mysqld is asked for
// nothing.
func TestCommitsHangWhileNobodyCanLogIn(t *testing.T) {
	t.Parallel()
	agent := newAgent(t, newLayout(t), memberState())
	seen := someObservation()
	seen.LockedOut = true
	agent.commits = commits{since: time.Now().Add(-20 * time.Second), executed: seen.Server.Executed}
	agent.status.Transactions.CommitWaitSeconds = 15
	agent.maintainCommits(t.Context(), seen)
	if got := agent.Status().Transactions.CommitWaitSeconds; got < 20 || got > 60 {
		t.Errorf("it says %d seconds", got)
	}
}
