package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/test/sample"
)

func TestFoundingManifest(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	lines := []string{"port: 3306", "replicas: 2", `storage: "1Gi"`, `image: "mysql:latest"`}
	backup := `fromBackup: "my-backup-2017-12-14-01-22"`

	t.Log("without its Secret the cluster says what is missing")
	p.mustApply(p.founding(append(lines, backup)...))
	p.waitReady(`False SecretNotFound spec.secret: Secret "my-secret" does not exist`, changeLimit)

	t.Log("with a backup that does not exist it waits and says for what")
	p.mustApply(secret(p.password))
	p.waitReady(`False BackupNotFound spec.fromBackup: MySQLBackupInstance "my-backup-2017-12-14-01-22" does not exist`, changeLimit)
	if sets := p.run("get", "sts", "-n", p.namespace, "-o", "name"); sets != "" {
		t.Errorf("nothing may be made before the backup is there, found %s", sets)
	}

	t.Log("without that line it becomes a cluster of two")
	p.mustApply(p.founding(lines...))
	p.settled(2)
	p.checkReplication()
}

// checkReplication writes and reads as a client, and looks at how the replica follows.
func (p *place) checkReplication() {
	p.t.Helper()
	write, read := p.open(p.cluster, p.password), p.open(p.cluster+"-read", p.password)
	p.exec(write, "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY)", "INSERT INTO shop.orders VALUES (1), (2), (3)")
	read.SetMaxIdleConns(0) // the Service has just changed from the primary to the replica, and a connection would stay where it is
	p.waitValue(read, "SELECT @@GLOBAL.super_read_only", "1", answerLimit)
	p.waitValue(read, "SELECT COUNT(*) FROM shop.orders", "3", answerLimit)
	p.isValue(read, "SELECT @@GLOBAL.rpl_semi_sync_replica_enabled", "1")
	p.isValue(read, "SELECT SSL_ALLOWED FROM performance_schema.replication_connection_configuration", "YES")
	p.isValue(read, "SELECT SSL_CA_FILE <> '' FROM performance_schema.replication_connection_configuration", "1")
	p.isValue(read, "SELECT HOST FROM performance_schema.replication_connection_configuration", p.read("pods", p.cluster+"-0", "{.status.podIP}"))
	p.isValue(read, "SELECT AUTO_POSITION FROM performance_schema.replication_connection_configuration", "1")
	p.isValue(write, "SELECT @@GLOBAL.rpl_semi_sync_source_enabled", "1")
	p.isValue(write, "SELECT COUNT(*) FROM mysql.user WHERE user = 'root' AND host = 'localhost'", "0")
	p.isValue(read, "SELECT COUNT(*) FROM performance_schema.clone_status WHERE STATE = 'Completed'", "1")
	ctx, cancel := p.context(10 * time.Second)
	defer cancel()
	if _, err := read.ExecContext(ctx, "INSERT INTO shop.orders VALUES (4)"); err == nil {
		p.t.Error("a replica took a write")
	}
}

func TestScaleFromOneToFiveAndBack(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 3)
	p := newPlace(t)
	p.start(1)
	w := p.startWriter()
	for _, replicas := range []int{3, 5, 2} {
		p.run("scale", "mysqlcluster", p.cluster, "-n", p.namespace, fmt.Sprintf("--replicas=%d", replicas))
		p.settled(replicas)
		p.goesOn(w)
		t.Logf("%d members", replicas)
	}
	w.end()
	p.nothingLost(w, p.open(p.cluster, p.password))
	volumes := strings.Fields(p.run("get", "pvc", "-n", p.namespace, "-o", "name"))
	if len(volumes) != 5 {
		t.Errorf("the volumes of members that left must be kept, found %v", volumes)
	}
	read := p.open(p.cluster+"-read", p.password)
	p.waitValue(read, "SELECT COUNT(*) = (SELECT COUNT(*) FROM test.numbers) FROM test.numbers", "1", answerLimit)
}

// TestScalingInKeepsTheCopies: one of two replicas is cut off when a user scales in from three members to two. The other one would leave,
// with the only copies of new commits. It stays until the replica that stays acknowledges commits again.
func TestScalingInKeepsTheCopies(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 3)
	p := newPlace(t)
	p.start(3)
	p.isLeased()
	w := p.startWriter()
	p.goesOn(w)
	stays, leaves := p.cluster+"-1", p.cluster+"-2"

	mend := p.isolate(stays)
	p.wait("the replica to leave the record", changeLimit, func(ctx context.Context) (bool, string) {
		seen := p.field(ctx, "{.status.inSync}")
		return seen == fmt.Sprintf("[%q,%q]", p.cluster+"-0", leaves), seen
	})
	p.run("scale", "mysqlcluster", p.cluster, "-n", p.namespace, "--replicas=2")
	p.waitReady("False ScalingIn scaling in waits until 1 more of the replicas that stay acknowledge commits: "+stays, changeLimit)
	p.goesOn(w)
	if going := p.read("pods", leaves, "{.metadata.deletionTimestamp}"); going != "" {
		t.Errorf("%s, which has the only copies of new commits, leaves since %s", leaves, going)
	}
	mend()
	p.settled(2)
	p.wait("the member to leave", changeLimit, func(ctx context.Context) (bool, string) {
		left, err := p.kubectl.Run(ctx, "get", "pod", leaves, "-n", p.namespace, "--ignore-not-found", "-o", "name")
		return err == nil && strings.TrimSpace(left) == "", left
	})
	w.end()
	db := p.open(p.cluster, p.password)
	p.nothingLost(w, db)
	p.replicaHasAll(db)
}

func TestDeletedClusterIsAdopted(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.start(2)
	write := p.open(p.cluster, p.password)
	p.exec(write, "CREATE DATABASE kept", "CREATE TABLE kept.rows_here (id INT PRIMARY KEY)", "INSERT INTO kept.rows_here VALUES (1), (2)")
	p.run("delete", "mysqlcluster", p.cluster, "-n", p.namespace)
	p.membersGone()
	p.wait("everything but the volumes to be gone", changeLimit, func(ctx context.Context) (bool, string) {
		left, err := p.kubectl.Run(ctx, "get", "sts,svc,pods,cm,secret,pdb,sa", "-n", p.namespace, "-l", "app.kubernetes.io/instance="+p.cluster, "-o", "name")
		return err == nil && strings.TrimSpace(left) == "", left
	})
	if volumes := strings.Fields(p.run("get", "pvc", "-n", p.namespace, "-o", "name")); len(volumes) != 2 {
		t.Fatalf("the data must stay, found the volumes %v", volumes)
	}

	t.Log("applied again, with another root password, it adopts the data")
	p.password = "a new password"
	p.start(2)
	again := p.open(p.cluster, p.password)
	p.waitValue(again, "SELECT COUNT(*) FROM kept.rows_here", "2", answerLimit)
	p.waitValue(p.open(p.cluster+"-read", p.password), "SELECT COUNT(*) FROM kept.rows_here", "2", answerLimit)
	ctx, cancel := p.context(10 * time.Second)
	defer cancel()
	if epoch := p.field(ctx, "{.status.epoch}"); epoch != "2" {
		t.Errorf("the adopted cluster is a new epoch of the old one: epoch %s, want 2", epoch)
	}
}

func TestRootPasswordRotates(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.start(1)
	p.mustApply(secret("rotated 'n' \"röund\""))
	rotated := p.open(p.cluster, "rotated 'n' \"röund\"")
	p.waitValue(rotated, "SELECT CURRENT_USER()", "root@%", 3*time.Minute)
	ctx, cancel := p.context(10 * time.Second)
	defer cancel()
	if _, err := value(ctx, p.open(p.cluster, p.password), "SELECT 1"); err == nil {
		t.Error("the old password still works")
	}
}
