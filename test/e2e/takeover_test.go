package e2e

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// TestPrimaryDoesNotStart: mysqld of the primary crashes and cannot start again. A replica takes over, and nothing acknowledged is lost.
// Once its mysqld can start, the former primary becomes a replica by itself, also if it has commits that no other member has.
func TestPrimaryDoesNotStart(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.start(2)
	w := p.startWriter()
	p.goesOn(w)

	dictionary := filepath.Join(p.volume("data-"+p.cluster+"-0"), "data", "mysql.ibd")
	move(t, dictionary, dictionary+".away")
	kill(t, p.cluster+"-0", "mysqld")
	p.wait("the replica to take over", changeLimit, func(ctx context.Context) (bool, string) {
		seen := p.field(ctx, "{.status.primary} {.status.epoch} {.status.formerPrimary}")
		return seen == p.cluster+"-1 2 ", seen + " " + p.field(ctx, readyPath)
	})
	p.hasEvent("ReplacingPrimary", "mysqld of the primary "+p.cluster+"-0 has not been ready")
	p.goesOn(w)

	move(t, dictionary+".away", dictionary)
	p.settled(2)
	w.end()
	db := p.open(p.cluster, p.password)
	p.nothingLost(w, db)

	t.Log("the former primary has all of it, too")
	const count = "SELECT COUNT(*) FROM test.numbers"
	ctx, cancel := p.context(answerLimit)
	defer cancel()
	rows, err := value(ctx, db, count)
	if err != nil {
		t.Fatal(err)
	}
	p.waitValue(p.open(p.cluster+"-read", p.password), count, rows, answerLimit)
}

func move(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}
