package agent

import (
	"context"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
)

// newSupervised returns an agent whose mysqld runs and never answers, and what its supervisor returns when it ends.
func newSupervised(t *testing.T) (*Agent, <-chan int) {
	t.Helper()
	return newSupervisedBy(t, new(supervisor.Connections).Heard)
}

// newSupervisedBy does the same with what the kernel says about connections.
func newSupervisedBy(t *testing.T, heard func(uint16, netip.AddrPort) (time.Duration, error)) (*Agent, <-chan int) {
	t.Helper()
	layout := newLayout(t)
	short, err := os.MkdirTemp("", "h") //nolint:usetesting // the path of a socket has 107 characters at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	layout.Run = short
	a := newAgent(t, layout, memberState())
	hangs := supervisor.Supervisor{
		Command: []string{"/bin/sleep", "60"}, RunDir: short, Log: t.Output(), Wait: waitFor, Heard: heard,
		Attributes: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	}
	exited := make(chan int, 1)
	go func() {
		status, err := hangs.Run(context.WithoutCancel(t.Context()), make(chan os.Signal))
		if err != nil {
			t.Errorf("the supervisor ends with %v", err)
		}
		exited <- status
	}()
	watching, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for a.currentStart() == "" && watching.Err() == nil {
		once, done := context.WithCancel(watching)
		_ = supervisor.Watch(once, supervisor.Socket(short), func(now supervisor.State) { a.supervised(now); done() })
		done()
	}
	a.followStart()
	return a, exited
}

// TestAReplacedPrimaryThatHangsIsKilledAtOnce: the loop may wait for its mysqld, and the members wait for its end.
func TestAReplacedPrimaryThatHangsIsKilledAtOnce(t *testing.T) {
	t.Parallel()
	a, exited := newSupervised(t)
	if err := a.announce(t.Context(), supervisor.Open); err != nil {
		t.Fatal(err)
	}
	a.mysqld.Open = true
	turns, interrupt := context.WithCancel(t.Context())
	a.interrupt = interrupt
	order := replication.Assignment{
		Protocol: replication.Protocol, Role: replication.RolePrimary, Boot: a.Status().Boot,
		Record: replication.Record{Epoch: 1, Revision: 1, Primary: "db-0", InSync: []string{"db-0", "db-1"}},
	}
	if err := a.Assign(order); err != nil || turns.Err() != nil {
		t.Fatalf("the primary stays, %v, and the loop is interrupted: %v", err, turns.Err())
	}
	order.Role, order.Record = replication.RoleReplica, replication.Record{Epoch: 2, Revision: 2, FormerPrimary: "db-0", InSync: order.Record.InSync}
	if err := a.Assign(order); err != nil || turns.Err() == nil {
		t.Fatalf("it is replaced, %v, and the loop is not interrupted", err)
	}
	next, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	go a.takeTurns(next)
	select {
	case <-exited:
	case <-next.Done():
		t.Error("mysqld is not killed")
	}
}

// TestAHungMysqldIsKilled: mysqld answered more than two minutes ago, and the loop has looked since.
func TestAHungMysqldIsKilled(t *testing.T) {
	t.Parallel()
	a, exited := newSupervised(t)
	now := time.Now()
	a.answered, a.looked = now.Add(-hungAfter+time.Minute), now
	a.endHung(t.Context())
	select {
	case status := <-exited:
		t.Fatalf("mysqld is ended after a minute, with %d", status)
	case <-time.After(50 * time.Millisecond):
	}
	a.answered = now.Add(-hungAfter - time.Second)
	a.endHung(t.Context())
	select {
	case status := <-exited:
		if status != 128+int(syscall.SIGKILL) {
			t.Errorf("mysqld ended with %d", status)
		}
	case <-time.After(time.Minute):
		t.Error("mysqld is not killed")
	}
}
