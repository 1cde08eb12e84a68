package agent

import (
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// TestTheBinaryLogIsLeftAloneOnAFullVolume: a write that waits for space holds the log, and each read would leave a session behind.
func TestTheBinaryLogIsLeftAloneOnAFullVolume(t *testing.T) {
	t.Parallel()
	a := newAgent(t, newLayout(t), memberState())
	own := "3e11fa47-71ca-11e1-9e33-c80aa9429562:1"
	local := replication.Observed{HeldRole: replication.RoleReplica, Server: someObservation().Server}
	if err := local.Server.Executed.UnmarshalText([]byte(own)); err != nil {
		t.Fatal(err)
	}
	looks := func() bool {
		a.unread = ""
		a.judge(t.Context(), local)
		return a.unread != "" // there is no mysqld
	}
	if !looks() {
		t.Fatal("the agent does not read the log, so this test proves nothing")
	}
	a.status.Disk.Level, a.diskSeen = replication.DiskFull, time.Now()
	if looks() {
		t.Error("the agent reads the log although the volume is full")
	}
	a.status.Disk.Level = replication.DiskPressure
	if !looks() {
		t.Error("the agent no longer reads the log although there is space again")
	}
	a.patience.looked(time.Now(), true)
	if looks() {
		t.Error("the agent reads the log at once after a read without an answer")
	}
}

// TestLooksWithoutAnAnswerAreSpacedOut: each pause is longer than the one before, until there is an answer.
func TestLooksWithoutAnAnswerAreSpacedOut(t *testing.T) {
	t.Parallel()
	var p logReadBackoff
	now := time.Now()
	for _, want := range []time.Duration{2, 4, 8, 16, 32, 60, 60} {
		p.looked(now, true)
		if got := p.next.Sub(now); got != want*time.Second {
			t.Errorf("the next read comes after %s, want %s", got, want*time.Second)
		}
	}
	p.looked(now, false)
	if now.Before(p.next) {
		t.Errorf("after an answer the agent waits until %s", p.next)
	}
}
