package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/test/sample"
)

// TestStoppedPrimaryIsReplaced: an update restarts all members of three. Then the primary's Pod is deleted in order, as if its node were
// drained. A replica takes over at once, and the former primary follows it without a copy. The Pod of the next primary is deleted
// without a grace period: a replica takes over, or the primary is back before the operator looks. Nothing is lost.
func TestStoppedPrimaryIsReplaced(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 3)
	p := newPlace(t)
	p.start(3)
	p.isLeased()
	w := p.startWriter()
	p.goesOn(w)
	p.mustApply(p.manifest("replicas: 3", `config: {max_connections: "222"}`))
	p.waitValue(p.open(p.cluster, p.password), "SELECT @@GLOBAL.max_connections", "222", changeLimit)
	p.settled(3)
	epoch := p.epochAfterUpdate()
	deletes := func(flags ...string) (primary string, began time.Time) {
		p.goesOn(w)
		ctx, cancel := p.context(answerLimit)
		defer cancel()
		primary = p.field(ctx, "{.status.primary}")
		was, began := p.read("pods", primary, "{.metadata.uid}"), time.Now()
		p.run(append([]string{"delete", "pod", primary, "-n", p.namespace, "--wait=false"}, flags...)...)
		p.wait("the next Pod of the primary", changeLimit, func(ctx context.Context) (bool, string) {
			now, err := p.objects.Field(ctx, core("pods"), p.namespace, primary, "{.metadata.uid}")
			return err == nil && now != was, now
		})
		return primary, began
	}
	follows := func(began time.Time) {
		p.settled(3)
		p.goesOn(w)
		t.Logf("all members are in sync after %s", time.Since(began))
	}
	primary, began := deletes()
	p.wait("a replica to take over", changeLimit, func(ctx context.Context) (bool, string) {
		seen := p.field(ctx, "{.status.epoch} {.status.formerPrimary}|{.status.takeovers[-1:].message}")
		return strings.HasPrefix(seen, fmt.Sprintf("%d |", epoch+1)) && strings.Contains(seen, "takes no writes, because its container restarts"), seen
	})
	follows(began)
	if starts := p.starts(primary); starts != 1 {
		t.Errorf("mysqld of the former primary has started %d times: a copy starts it once more", starts)
	}
	_, began = deletes("--force", "--grace-period=0")
	follows(began)
	w.end()
	db := p.open(p.cluster, p.password)
	p.nothingLost(w, db)
	p.replicaHasAll(db)
}

// epochAfterUpdate returns the epoch. An update ends without a takeover, unless the primary needs more than notReadySeconds to restart. On
// a busy machine, it may.
func (p *place) epochAfterUpdate() int {
	p.t.Helper()
	ctx, cancel := p.context(answerLimit)
	defer cancel()
	epoch, err := strconv.Atoi(p.field(ctx, "{.status.epoch}"))
	if err != nil {
		p.t.Fatal(err)
	}
	const isSlow = "has not been ready for more than 10 seconds"
	if why := p.field(ctx, "{.status.takeovers[*].message}"); epoch > 2 || epoch == 2 && !strings.Contains(why, isSlow) {
		p.t.Errorf("epoch %d after an update: %s", epoch, why)
	}
	return epoch
}
