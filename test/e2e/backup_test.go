package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestBackupAndRestore is the founding document's way: a backup on a volume, taken while clients write, is all that is left of a cluster.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.start(2)
	db := p.open(p.cluster, p.password)
	p.seed(db, 48)
	want := p.checksums(db)
	w := p.startWriter()
	p.goesOn(w)

	before, _ := w.count()
	p.mustApply(p.instance("by-hand"))
	p.waitBackup("by-hand", "Completed Completed", backupLimit)
	p.goesOn(w)
	w.end()
	t.Log(p.run("get", "mbi", "-n", p.namespace, "-o", "wide"))
	ctx, cancel := p.context(time.Minute)
	defer cancel()
	if source := p.backupField(ctx, "by-hand", "{.status.source}"); source != p.cluster+"-1" {
		t.Errorf("taken from %q, which is not the replica", source)
	}
	executed := p.backupField(ctx, "by-hand", "{.status.gtidExecuted}")

	t.Log("the cluster is lost with its volumes, and restored under another root password")
	p.loseCluster()
	former := p.password
	p.password = "after the restore"
	p.mustApply(secret(p.password))
	p.mustApply(p.manifest("fromBackup: by-hand", "replicas: 2"))
	p.settled(2)
	t.Log(p.field(ctx, "{.status.restore}"))

	write, read := p.open(p.cluster, p.password), p.open(p.cluster+"-read", p.password)
	p.sameTables(write, want)
	p.sameTables(read, want)
	p.isValue(write, "SELECT GTID_SUBSET('"+strings.ReplaceAll(executed, "\n", "")+"', @@GLOBAL.gtid_executed)", "1")
	p.isValue(write, "SELECT COUNT(*) = MAX(id) FROM test.numbers", "1")
	p.isValue(write, fmt.Sprintf("SELECT COUNT(*) >= %d FROM test.numbers", before), "1")
	p.isValue(write, "SELECT COUNT(*) FROM shop.names", "4")
	p.isValue(write, "SELECT COUNT(*) FROM mysql.user WHERE user = 'clerk'", "1")
	p.refusesPassword(former)
	p.exec(write, "INSERT INTO shop.parts VALUES (5, 1, 'after')")
	p.waitValue(read, "SELECT COUNT(*) FROM shop.parts", "5", answerLimit)

	t.Log("applied again with its data there, the restore is not done again")
	p.run("delete", "mysqlcluster", p.cluster, "-n", p.namespace)
	p.membersGone()
	p.mustApply(p.manifest("fromBackup: by-hand", "replicas: 2"))
	p.settled(2)
	p.waitValue(p.open(p.cluster, p.password), "SELECT COUNT(*) FROM shop.parts", "5", answerLimit)
}

// TestScheduledBackups lets the clock of the machine come round: two backups, of which one is kept.
func TestScheduledBackups(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	schedule := fmt.Sprintf("apiVersion: cr.mysqloperator.grtl.github.com/v1\nkind: MySQLBackupSchedule\nmetadata:\n  name: my-backup\nspec:\n  cluster: %s\n  time: \"* * * * *\"\n  retention:\n    keepLast: 1\n", p.cluster)
	p.mustApply(schedule)
	p.wait("the schedule to say that there is no cluster", changeLimit, func(ctx context.Context) (bool, string) {
		seen, err := p.objects.Field(ctx, mysql("mysqlbackupschedules"), p.namespace, "my-backup", `{.status.conditions[?(@.type=="Ready")].reason}`)
		return err == nil && seen == "ClusterNotFound", seen
	})
	p.start(1)
	db := p.open(p.cluster, p.password)
	p.seed(db, 4)

	completed := func(ctx context.Context) []string {
		seen, err := p.objects.Fields(ctx, mysql("mysqlbackupinstances"), p.namespace, metav1.ListOptions{LabelSelector: "schedule=my-backup"},
			`{range .items[?(@.status.phase=="Completed")]}{.metadata.name} {end}`)
		if err != nil {
			return nil
		}
		return strings.Fields(seen)
	}
	first := ""
	p.wait("a first backup", backupLimit, func(ctx context.Context) (bool, string) {
		names := completed(ctx)
		if len(names) > 0 {
			first = names[0]
		}
		return first != "", fmt.Sprint(names)
	})
	p.wait("a later one to take the first one's place", backupLimit, func(ctx context.Context) (bool, string) {
		names := completed(ctx)
		return len(names) == 1 && names[0] != first, fmt.Sprint(names)
	})

	t.Log("the schedule is deleted, its backup stays, and is good")
	p.run("delete", "mb", "my-backup", "-n", p.namespace)
	ctx, cancel := p.context(time.Minute)
	defer cancel()
	names := completed(ctx)
	if len(names) == 0 {
		t.Fatal("the backup went with its schedule")
	}
	want := p.checksums(db)
	p.loseCluster()
	p.mustApply(p.manifest("fromBackup: "+names[len(names)-1], "replicas: 1")) // an earlier one may be about to go
	p.settled(1)
	p.sameTables(p.open(p.cluster, p.password), want)
}
