package agent

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// TestAPrimaryWhoseVolumeStandsStillMysqld: its agent reports that, takes the order to lead no more, and does not claim that mysqld is
// closed while it may not be. The replica, which hears the primary all the time, is silent. No client is told that a commit has succeeded
// that the replica does not have. When the volume continues, mysqld ends, and starts closed.
func TestAPrimaryWhoseVolumeStandsStillMysqld(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	leader, replica, db := startAcknowledging(t, ca, onDisk(t, "1500M"))
	idle := leader.open(t, "root", "root's", nil, ca)
	var acknowledged atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			if _, err := db.ExecContext(ctx, "INSERT INTO shop.orders (filler) VALUES ('x')"); err == nil {
				acknowledged.Add(1)
			}
		}
	}()
	defer func() { stop(); <-ended }()
	leader.until(t, "a client commits, and the volume works", func() bool { return acknowledged.Load() > 5 && leader.agent.Status().Probe.IsKnown })
	pid := leader.pid(t)
	thaw := freeze(t, leader.layout)
	frozen, slowest := time.Now(), time.Duration(0)
	leader.until(t, "the operator may replace it", func() bool {
		asked := time.Now()
		now := leader.agent.Status()
		slowest = max(slowest, time.Since(asked))
		return now.Probe.StuckFor >= replication.StuckAfter
	})
	now := leader.agent.Status()
	t.Logf("after %s, with the slowest report in %s: %s, commits have waited for %d s; the replica has heard nothing for %s",
		time.Since(frozen).Round(100*time.Millisecond), slowest, now.State, now.Transactions.CommitWaitSeconds, replica.agent.Status().SourceSilentFor)
	if now.State != replication.StateWriting || slowest > time.Second || replica.agent.Status().SourceSilentFor > replication.AlarmAfter {
		t.Errorf("the primary reports %+v", now)
	}

	t.Log("another member takes over")
	told, began := acknowledged.Load(), time.Now()
	fenced := replication.Record{Epoch: 2, Revision: 3, FormerPrimary: "db-0", InSync: []string{"db-0", "db-1"}, RequiredAcks: 1}
	for _, member := range []*realMember{leader, replica} {
		member.obeys(t, replication.Assignment{Record: fenced, Role: replication.RoleReplica})
	}
	t.Logf("both have accepted that after %s", time.Since(began).Round(time.Millisecond))
	replica.until(t, "the replica is silent", func() bool { status := replica.agent.Status(); return status.IsSilent(fenced) })
	t.Logf("the replica is silent after %s", time.Since(began).Round(time.Millisecond))
	leader.until(t, "no client gets an answer", func() bool {
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return idle.PingContext(brief) != nil
	})
	t.Logf("no client gets an answer after %s", time.Since(began).Round(100*time.Millisecond))
	if now := leader.agent.Status(); now.Closed != nil || syscall.Kill(pid, 0) != nil {
		t.Errorf("mysqld has not ended (%v), and the agent says that it is closed: %v", syscall.Kill(pid, 0), now.Closed)
	}
	t.Logf("the primary says: %s: %s", leader.agent.Status().State, leader.agent.Status().Message)

	thaw()
	thawed := time.Now()
	leader.until(t, "it is closed", func() bool {
		closed := leader.agent.Status().Closed
		return closed != nil && *closed == fenced.Version()
	})
	t.Logf("closed %s after the volume continued", time.Since(thawed).Round(100*time.Millisecond))
	stop()
	<-ended
	if late := acknowledged.Load() - told; late > 0 {
		t.Errorf("clients were told of %d commits after the replica was silent", late)
	}
	replica.until(t, "it has applied all", func() bool {
		status := replica.agent.Status()
		return status.Executed.Contains(status.Received)
	})
	var rows int64
	if err := replica.open(t, "root", "root's", nil, ca).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM shop.orders").Scan(&rows); err != nil || rows < acknowledged.Load() {
		t.Errorf("%d commits were acknowledged, and the replica has %d: %v", acknowledged.Load(), rows, err)
	}
}

// TestAPrimaryWhoseVolumeIsFullMysqld: commits hang, the agent reports for how long, and the replica acknowledges what it gets. When
// another member takes over, mysqld ends, so the agent says that it is closed.
func TestAPrimaryWhoseVolumeIsFullMysqld(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	leader, replica, db := startAcknowledging(t, ca, onVolumeOf(t, "640m"))
	_, free, err := leader.layout.room()
	if err != nil {
		t.Fatal(err)
	}
	if err := reserve(filepath.Join(leader.layout.Volume, "filler"), free-1<<20); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int64)
	go func() {
		told := int64(0)
		for ctx.Err() == nil {
			if _, err := db.ExecContext(ctx, "INSERT INTO shop.orders (filler) VALUES (REPEAT('x', 1000000))"); err == nil {
				told++
			}
		}
		ended <- told
	}()
	leader.until(t, "commits have hung on a full volume for long", func() bool {
		now := leader.agent.Status()
		return now.Disk.Level == replication.DiskFull && now.Transactions.CommitWaitSeconds >= int64(replication.HangAfter.Seconds())
	})
	if now := leader.agent.Status(); now.Probe != (replication.VolumeProbe{IsKnown: true}) || now.AcksShortSeconds > 0 || now.State != replication.StateWriting {
		t.Errorf("the primary reports %+v", now)
	}
	began := time.Now()
	fenced := replication.Record{Epoch: 2, Revision: 3, FormerPrimary: "db-0", InSync: []string{"db-0", "db-1"}, RequiredAcks: 1}
	for _, member := range []*realMember{leader, replica} {
		member.obeys(t, replication.Assignment{Record: fenced, Role: replication.RoleReplica})
	}
	leader.until(t, "it is closed", func() bool {
		closed := leader.agent.Status().Closed
		return closed != nil && *closed == fenced.Version()
	})
	t.Logf("closed after %s", time.Since(began).Round(100*time.Millisecond))
	stop()
	told := <-ended
	replica.until(t, "it has applied all", func() bool {
		status := replica.agent.Status()
		return status.IsSilent(fenced) && status.Executed.Contains(status.Received)
	})
	var rows int64
	if err := replica.open(t, "root", "root's", nil, ca).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM shop.orders").Scan(&rows); err != nil || rows < told {
		t.Errorf("%d commits were acknowledged, and the replica has %d: %v", told, rows, err)
	}
	if err := os.Remove(filepath.Join(leader.layout.Volume, "filler")); err != nil {
		t.Fatal(err)
	}
}
