package e2e

import (
	"context"
	"fmt"
	"testing"
)

// TestOperatorIsKilled while it has a backup and a restore made, after somebody has deleted the Secrets that it made, and under writes: when it is back,
// it ends what it began and mends what it missed. The databases notice nothing.
func TestOperatorIsKilled(t *testing.T) { //nolint:paralleltest // all tests use this operator
	const crawling = "bandwidthLimit: 1Mi" // kubelet waits before it starts an operator again that was killed before
	p, robbed := newPlace(t), newPlace(t)
	p.start(2)
	robbed.start(2)
	db := p.open(p.cluster, p.password)
	p.seed(db, 40)
	want := p.checksums(db)
	p.mustApply(p.instance("good"))
	p.waitBackup("good", "Completed", backupLimit)
	writing, writingThere := p.startWriter(), robbed.startWriter()

	again := *p
	again.cluster += "-again"
	again.mustApply(again.manifest("fromBackup: good", "replicas: 1", "restore:", "  "+crawling))
	before := robbed.ownSecrets()
	robbed.deleteOwnSecrets()
	again.isRestoring()
	p.mustApply(p.instance("begun", crawling))
	p.copied("begun", 10)
	starts := p.operatorStarts()
	kill(t, "mysql-operator", "mysql-operator")
	p.wait("the operator to be back", changeLimit, func(context.Context) (bool, string) {
		now := p.operatorStarts()
		return now != starts, now
	})

	// It looks at Secrets, which it does not watch, every five minutes and whenever it starts.
	robbed.ownSecretsReturn(before)
	t.Log(p.waitBackup("begun", "Completed Completed", backupLimit))
	again.restored()
	again.settled(1)
	again.sameTables(again.open(again.cluster, again.password), want)
	for where, w := range map[*place]*writer{p: writing, robbed: writingThere} {
		where.goesOn(w)
		w.end()
		where.nothingLost(w, w.db)
		where.waitValue(where.open(where.cluster+"-read", where.password), "SELECT COUNT(*) >= "+fmt.Sprint(w.count())+" FROM test.numbers", "1", answerLimit)
	}
}

// operatorStarts changes whenever the operator's container restarts.
func (p *place) operatorStarts() string {
	p.t.Helper()
	return p.run("get", "pod", "mysql-operator", "-n", operatorNamespace, "-o", `jsonpath={.status.containerStatuses[*].restartCount}`)
}
