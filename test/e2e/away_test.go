package e2e

import (
	"context"
	"testing"
	"time"
)

// TestCrashedPrimaryOpensWithoutAnOperator: no operator runs when mysqld of the primary is killed, and then its container. Clients write
// again, and nothing is lost. When the operator is back, the primary stays the primary, and its mysqld does not start again.
func TestCrashedPrimaryOpensWithoutAnOperator(t *testing.T) { //nolint:paralleltest // all tests use this operator
	p := newPlace(t)
	p.start(3)
	p.wait("the primary to have a lease", changeLimit, func(ctx context.Context) (bool, string) {
		now := p.field(ctx, "{.status.leaseMilliseconds}")
		return now != "" && now != "0", now
	})
	w := p.startWriter()
	p.goesOn(w)
	before := p.leader()
	if before != p.cluster+"-0 1" {
		t.Fatalf("the primary and its epoch are %s", before)
	}

	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), changeLimit)
		defer cancel()
		if err := startOperator(ctx, p.kubectl); err != nil {
			t.Errorf("start the operator again: %v", err)
		}
	})
	p.run("delete", "pod", "mysql-operator", "--namespace", operatorNamespace)
	for _, process := range []string{"mysqld", "mysql-operator-supervisor"} {
		began := time.Now()
		kill(t, p.cluster+"-0", process)
		p.goesOn(w)
		t.Logf("clients write again %s after %s was killed", time.Since(began).Round(time.Millisecond), process)
	}
	lives := p.lives(3)

	ctx, cancel := p.context(changeLimit)
	defer cancel()
	if err := startOperator(ctx, p.kubectl); err != nil {
		t.Fatal(err)
	}
	p.goesOn(w)
	p.settled(3)
	w.end()
	db := p.open(p.cluster, p.password)
	p.nothingLost(w, db)
	p.replicaHasAll(db)
	if after := p.leader(); after != before {
		t.Errorf("the primary and its epoch are %s, were %s", after, before)
	}
	if now := p.lives(3); now != lives {
		t.Errorf("the processes are %s, were %s", now, lives)
	}
}

// leader returns the primary and its epoch.
func (p *place) leader() string {
	p.t.Helper()
	ctx, cancel := p.context(answerLimit)
	defer cancel()
	return p.field(ctx, "{.status.primary} {.status.epoch}")
}
