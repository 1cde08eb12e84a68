package agent

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
)

// crashedPrimary is the agent of a member that was the primary whose commits waited. Its mysqld has not closed its binary log, if isInUse.
func crashedPrimary(t *testing.T, isInUse bool) *Agent {
	t.Helper()
	layout, kept := newLayout(t), memberState()
	if err := os.MkdirAll(layout.DataDir(), 0o750); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(layout.DataDir(), "ibdata2"), "rows")
	header := append([]byte("\xfebin"), make([]byte, 19)...)
	header[4+4] = 15
	if isInUse {
		binary.LittleEndian.PutUint16(header[4+17:], 1)
	}
	write(t, filepath.Join(layout.DataDir(), "binlog.000001"), string(header))
	write(t, filepath.Join(layout.DataDir(), "binlog.index"), "./binlog.000001\n")
	kept.HeldRole = replication.RolePrimary
	kept.Held = replication.Record{Epoch: 1, Revision: 1, Primary: "db-0", InSync: []string{"db-0", "db-1", "db-2"}, RequiredAcks: 1}
	kept.Last = &replication.Assignment{Role: replication.RolePrimary, Acks: 1, Record: kept.Held}
	made := newAgent(t, layout, kept)
	made.hold.mayBegin = true
	return made
}

// watch runs what looks for the supervisor, of which there is none.
func (a *Agent) watch(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.watchSupervisor(ctx)
	}()
	t.Cleanup(func() { stop(); <-ended })
}

func (a *Agent) isHeldWithin(limit time.Duration) bool {
	for end := time.Now().Add(limit); time.Now().Before(end); <-time.After(time.Millisecond) {
		if a.Status().StartHeld {
			return true
		}
	}
	return a.Status().StartHeld
}

// TestTheFirstStartAfterACrashIsHeld although the supervisor of the last container ends a moment later. An operator that has confirmed this
// primary before did not know it.
func TestTheFirstStartAfterACrashIsHeld(t *testing.T) {
	t.Parallel()
	a := crashedPrimary(t, true)
	before := a.Status().Boot
	ends, err := supervisor.LockData(a.layout.Run)
	if err != nil {
		t.Fatal(err)
	}
	a.watch(t)
	if a.isHeldWithin(5 * reconnectEvery) {
		t.Fatal("the start is held although the last supervisor has not ended")
	}
	ends()
	if !a.isHeldWithin(time.Minute) {
		t.Fatal("the start is not held")
	}
	if _, err := supervisor.LockData(a.layout.Run); err == nil {
		t.Error("mysqld could start")
	}
	if a.Status().Boot == before {
		t.Error("an earlier confirmation would end the hold")
	}
}

// TestTheFirstStartIsNotHeld without a crash, without commits that waited, and while another mysqld uses the data.
func TestTheFirstStartIsNotHeld(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*testing.T) *Agent{
		"mysqld has closed its log": func(t *testing.T) *Agent { t.Helper(); return crashedPrimary(t, false) },
		"it was a replica": func(t *testing.T) *Agent {
			t.Helper()
			a := crashedPrimary(t, true)
			a.kept.HeldRole = replication.RoleReplica
			return a
		},
		"it has no data": func(t *testing.T) *Agent {
			t.Helper()
			a := crashedPrimary(t, true)
			if err := os.RemoveAll(a.layout.DataDir()); err != nil {
				t.Fatal(err)
			}
			return a
		},
		"another mysqld uses the data": func(t *testing.T) *Agent {
			t.Helper()
			a := crashedPrimary(t, true)
			release, err := a.layout.lockTablespace()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(release)
			return a
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := prepare(t)
			a.holdFirstStart(t.Context())
			if a.Status().StartHeld {
				t.Error("it is held")
			}
			unlock, err := supervisor.LockData(a.layout.Run)
			if err != nil {
				t.Fatalf("mysqld cannot start: %v", err)
			}
			unlock()
		})
	}
}
