package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestReplicaTakesOver: mysqld of the primary crashes and cannot start again. The replica takes over. Once its mysqld can start, the former
// primary becomes a replica by itself, also if it has commits that no other member has. It takes over in turn when mysqld of the new
// primary hangs, and that one is killed. Nothing acknowledged is lost.
func TestReplicaTakesOver(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.start(2)
	w := p.startWriter()
	p.goesOn(w)

	dictionary := filepath.Join(p.volume("data-"+p.cluster+"-0"), "data", "mysql.ibd")
	move(t, dictionary, dictionary+".away")
	kill(t, p.cluster+"-0", "mysqld")
	p.leads(1, 2)
	p.hasEvent("ReplacingPrimary", "mysqld of the primary "+p.cluster+"-0 has not been ready")
	p.goesOn(w)
	move(t, dictionary+".away", dictionary)
	p.settled(2)

	hung := processes(t, p.cluster+"-1", "mysqld")
	signal(t, p.cluster+"-1", "mysqld", syscall.SIGSTOP)
	p.leads(0, 3)
	p.goesOn(w)
	p.settled(2)
	if now := processes(t, p.cluster+"-1", "mysqld"); len(now) != 1 || now[0] == hung[0] {
		t.Errorf("the processes of the mysqld that hung are %v, were %v", now, hung)
	}

	w.end()
	db := p.open(p.cluster, p.password)
	p.nothingLost(w, db)
	t.Log("the replica has all of it, too")
	const count = "SELECT COUNT(*) FROM test.numbers"
	ctx, cancel := p.context(answerLimit)
	defer cancel()
	rows, err := value(ctx, db, count)
	if err != nil {
		t.Fatal(err)
	}
	p.waitValue(p.open(p.cluster+"-read", p.password), count, rows, answerLimit)
}

// leads waits until a member is the primary of an epoch.
func (p *place) leads(ordinal, epoch int) {
	p.t.Helper()
	want := fmt.Sprintf("%s-%d %d ", p.cluster, ordinal, epoch)
	p.wait("the replica to take over", changeLimit, func(ctx context.Context) (bool, string) {
		seen := p.field(ctx, "{.status.primary} {.status.epoch} {.status.formerPrimary}")
		return seen == want, seen + " " + p.field(ctx, readyPath)
	})
}

func move(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}
