package e2e

import (
	"context"
	"testing"
)

// TestOperatorIsKilled: a user deletes Secrets that the operator made, and the operator dies during a backup and a restore. When it is
// back, it ends both, and makes the Secrets again. Clients of the cluster notice nothing.
func TestOperatorIsKilled(t *testing.T) { //nolint:paralleltest // all tests use this operator
	p, robbed := newPlace(t), newPlace(t)
	p.start(2)
	robbed.start(2)
	robbed.exec(robbed.open(robbed.cluster, robbed.password), "CREATE DATABASE kept")
	db := p.open(p.cluster, p.password)
	p.seed(db, 40)
	want := p.checksums(db)
	p.mustApply(p.instance("good"))
	p.waitBackup("good", "Completed", backupLimit)
	w := p.startWriter()

	again := *p
	again.cluster += "-again"
	again.mustApply(again.manifest("fromBackup: good", "replicas: 1", "restore:", "  "+verySlowly))
	before := robbed.ownSecrets()
	robbed.deleteOwnSecrets()
	again.isRestoring()
	p.mustApply(p.instance("begun", verySlowly))
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
	p.settled(2)
	p.goesOn(w)
	w.end()
	p.nothingLost(w, db)
	ctx, cancel := p.context(answerLimit)
	defer cancel()
	if got := p.field(ctx, "{.status.primary} {.status.epoch}"); got != p.cluster+"-0 1" {
		t.Errorf("the primary stays the primary: %s", got)
	}
}

// operatorStarts changes whenever the operator's container restarts.
func (p *place) operatorStarts() string {
	p.t.Helper()
	ctx, cancel := p.context(answerLimit)
	defer cancel()
	text, err := p.objects.Field(ctx, core("pods"), operatorNamespace, "mysql-operator", "{.status.containerStatuses[*].restartCount}")
	if err != nil {
		p.t.Fatal(err)
	}
	return text
}
