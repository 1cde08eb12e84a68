package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/test/sample"
)

// TestStoppedPrimaryIsReplaced: the Pod of the primary of three is deleted in order, as if its node were drained, and that of the next
// primary without a grace period. In the first case, a replica takes over at once, and the former primary follows it without a copy. In the
// second one, a replica takes over, or the primary is back before the operator looks. Nothing is lost.
func TestStoppedPrimaryIsReplaced(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 3)
	p := newPlace(t)
	p.start(3)
	p.isLeased()
	w := p.startWriter()
	deleted := func(flags ...string) (cause string) {
		p.goesOn(w)
		ctx, cancel := p.context(answerLimit)
		defer cancel()
		primary, epoch := p.field(ctx, "{.status.primary}"), p.field(ctx, "{.status.epoch}")
		began := time.Now()
		p.run(append([]string{"delete", "pod", primary, "-n", p.namespace, "--wait=false"}, flags...)...)
		cause = p.changes(w, epoch)
		p.goesOn(w)
		t.Logf("deleted %v: clients write again after %s: %s", flags, time.Since(began), cause)
		p.settled(3)
		t.Logf("all members are in sync after %s", time.Since(began))
		if starts := p.starts(primary); flags == nil && starts != 1 {
			t.Errorf("mysqld of the former primary has started %d times: a copy starts it once more", starts)
		}
		return cause
	}
	if cause := deleted(); !strings.Contains(cause, "takes no writes, because its container restarts") {
		t.Errorf("another member takes over because %q", cause)
	}
	deleted("--force", "--grace-period=0")
	w.end()
	db := p.open(p.cluster, p.password)
	p.nothingLost(w, db)
	p.replicaHasAll(db)
}
