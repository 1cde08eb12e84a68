package e2e

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/test/sample"
)

// TestStoppedPrimaryIsReplaced: the Pod of the primary of three is deleted in order, as if its node were drained, and that of the next
// primary without a grace period. Each time a replica takes over, and the former primary follows it when its next Pod has started.
func TestStoppedPrimaryIsReplaced(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 3)
	p := newPlace(t)
	p.start(3)
	p.isLeased()
	w := p.startWriter()
	for i, flags := range [][]string{nil, {"--force", "--grace-period=0"}} {
		p.goesOn(w)
		ctx, cancel := p.context(answerLimit)
		primary := p.field(ctx, "{.status.primary}")
		cancel()
		began := time.Now()
		p.run(append([]string{"delete", "pod", primary, "-n", p.namespace, "--wait=false"}, flags...)...)
		p.wait("a replica to take over", changeLimit, func(ctx context.Context) (bool, string) {
			seen := p.field(ctx, "{.status.epoch} {.status.formerPrimary}")
			return seen == strconv.Itoa(i+2)+" ", seen + p.field(ctx, readyPath)
		})
		p.goesOn(w)
		t.Logf("deleted %v: clients write again after %s", flags, time.Since(began))
		p.settled(3)
		t.Logf("all members are in sync after %s", time.Since(began))
		if starts := p.starts(primary); flags == nil && starts != 1 {
			t.Errorf("mysqld of the former primary has started %d times: a copy starts it once more", starts)
		}
	}
	p.hasEvent("ReplacingPrimary", "has closed, because its container stops")
	w.end()
	db := p.open(p.cluster, p.password)
	p.nothingLost(w, db)
	p.replicaHasAll(db)
}
