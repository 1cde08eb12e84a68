package agent

import (
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
)

// TestCommitsThatHang: a busy server always has sessions that wait to commit. Commits hang if none completes meanwhile.
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
		{20, "1-90", 0, 0}, // the sessions that waited have ended
		{25, "1-90", 0, 0}, // no client writes
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

// TestCommitsThatHungBeforeACrash: a mysqld that restarts has none of the sessions that waited, and must not be reported as hanging.
func TestCommitsThatHungBeforeACrash(t *testing.T) {
	t.Parallel()
	agent := newAgent(t, newLayout(t), memberState())
	seen := someObservation()
	agent.commits = commits{since: time.Now().Add(-time.Minute), executed: seen.Server.Executed}
	agent.status.Transactions = replication.Transactions{Prepared: 1, CommitWaitSeconds: 60}
	runs(t, agent, supervisor.State{Start: "next", Starts: 2, Running: true})
	if got := agent.Status().Transactions; got.CommitWaitSeconds != 0 || got.Prepared != 1 {
		t.Errorf("the agent reports %+v", got)
	}
	seen.LoginsHang = true
	agent.maintainCommits(t.Context(), seen)
	if got := agent.Status().Transactions.CommitWaitSeconds; got > 1 {
		t.Errorf("a session that waits since the start is reported to wait for %d seconds", got)
	}
}

// TestCommitsHangWhileNobodyCanLogIn: a statement about accounts waits to be acknowledged, and the time counts although the agent does not
// ask mysqld.
func TestCommitsHangWhileNobodyCanLogIn(t *testing.T) {
	t.Parallel()
	agent := newAgent(t, newLayout(t), memberState())
	seen := someObservation()
	seen.LoginsHang = true
	agent.commits = commits{since: time.Now().Add(-20 * time.Second), executed: seen.Server.Executed}
	agent.status.Transactions.CommitWaitSeconds = 15
	agent.maintainCommits(t.Context(), seen)
	if got := agent.Status().Transactions.CommitWaitSeconds; got < 20 || got > 60 {
		t.Errorf("the agent reports %d seconds", got)
	}
}
