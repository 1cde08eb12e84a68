package e2e

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/mysql-operator/mysql-operator/test/sample"
)

// TestThePrimaryFailsDuringChanges kills mysqld of the primary of three in the middle of what users and schedules change: an update of all
// members, a backup, a member that joins, and a new root password. Each time, clients write again, the change is completed, and nothing is
// lost.
func TestThePrimaryFailsDuringChanges(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 2)
	p := newPlace(t)
	p.start(3)
	p.isLeased()
	w := p.startWriter()
	fails := func(during string) {
		ctx, cancel := p.context(answerLimit)
		defer cancel()
		primary := p.field(ctx, "{.status.primary}")
		kill(t, primary, "mysqld")
		p.goesOn(w)
		t.Logf("%s: mysqld of %s killed, now %s leads", during, primary, p.field(ctx, "{.status.primary}"))
	}

	p.goesOn(w)
	last := p.cluster + "-2"
	was := p.read("pods", last, "{.metadata.uid}")
	p.mustApply(p.manifest("replicas: 3", `config: {max_connections: "222"}`))
	p.wait("the next Pod of "+last, changeLimit, func(ctx context.Context) (bool, string) {
		now, err := p.objects.Field(ctx, core("pods"), p.namespace, last, "{.metadata.uid}")
		return err == nil && now != was, now
	})
	fails("an update")
	p.updated()
	p.settled(3)
	for _, service := range []string{p.cluster, p.cluster + "-read"} {
		p.waitValue(p.open(service, p.password), "SELECT @@GLOBAL.max_connections", "222", changeLimit)
	}

	p.seed(p.open(p.cluster, p.password), 40)
	p.mustApply(p.instance("during", slowly))
	p.copied("during", 20)
	fails("a backup")
	t.Log(p.waitBackup("during", "Completed Completed", backupLimit))
	p.settled(3)

	p.mustApply(p.manifest("replicas: 4", `config: {max_connections: "222"}`))
	p.wait("the Pod of the next member", changeLimit, func(ctx context.Context) (bool, string) {
		now, err := p.objects.Field(ctx, core("pods"), p.namespace, p.cluster+"-3", "{.metadata.uid}")
		return err == nil && now != "", now
	})
	fails("a member joins")
	p.settled(4)

	p.goesOn(w)
	w.end() // it has the former password
	p.password = "another password"
	p.mustApply(secret(p.password))
	ctx, cancel := p.context(answerLimit)
	defer cancel()
	kill(t, p.field(ctx, "{.status.primary}"), "mysqld")
	db := p.open(p.cluster, p.password)
	p.waitValue(db, "SELECT @@GLOBAL.read_only", "0", changeLimit)
	p.settled(4)
	p.nothingLost(w, db)
	p.replicaHasAll(db)
	p.exec(db, "INSERT INTO test.numbers VALUES (1000000, 'with the next password')")
}

// updated waits until an update has reached all members. If it waits for a user, because another member than the first one leads by now,
// the user allows it.
func (p *place) updated() {
	p.t.Helper()
	allowed := ""
	p.wait("the update to reach all members", readyLimit, func(ctx context.Context) (bool, string) {
		said := p.field(ctx, readyPath)
		_, command, waits := strings.Cut(said, "kubectl ")
		command, _, _ = strings.Cut(command, " gen=")
		if waits && strings.HasPrefix(said, "False PrimaryWouldRestartFirst") && command != allowed {
			p.t.Log("the user allows it: kubectl " + command)
			p.run(strings.Fields(command)...)
			allowed = command
		}
		now, wanted := p.setRevisions(ctx)
		return now != "" && now == wanted && strings.HasPrefix(said, "True AllMembersReady"), said
	})
}

// setRevisions returns the revision that all Pods of the StatefulSet have, and the one that they should have.
func (p *place) setRevisions(ctx context.Context) (now, wanted string) {
	seen, err := p.objects.Field(ctx, appsv1.SchemeGroupVersion.WithResource("statefulsets"), p.namespace, p.cluster, "{.status.currentRevision} {.status.updateRevision}")
	if err != nil {
		return "", err.Error()
	}
	now, wanted, _ = strings.Cut(seen, " ")
	return now, wanted
}
