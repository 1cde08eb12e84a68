package e2e

import (
	"context"
	"testing"
	"time"

	"filippo.io/age"
)

// TestBackupToBucket is the worst case with the best end: an encrypted backup in a bucket survives the namespace, with everything in it, and is
// restored elsewhere from its URL alone. Before, everything goes wrong that can go wrong with a bucket.
func TestBackupToBucket(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	b := startBucket(p)
	p.start(2)
	db := p.open(p.cluster, p.password)
	p.seed(db, 32)
	want := p.checksums(db)
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	url := b.url("prod")
	settings := []string{"destination:", "  url: " + url, "  secret: bucket", "encryption: {secret: key}"}

	t.Log("what is missing is named, and waited for")
	p.mustApply(p.instance("patient", settings...))
	p.waitBackup("patient", "Scheduled CredentialsNotFound", changeLimit)
	p.mustApply(b.secret("bucket", bucketKey))
	p.waitBackup("patient", "Scheduled EncryptionKeyNotFound", changeLimit)
	p.mustApply("apiVersion: v1\nkind: Secret\nmetadata: {name: key}\nstringData: {recipient: " + key.Recipient().String() + "}\n")
	t.Log(p.waitBackup("patient", "Completed", backupLimit))

	t.Log("wrong credentials are told, and the next attempt takes the right ones")
	p.mustApply(b.secret("other", "guessed"))
	p.mustApply(p.instance("refused", "destination:", "  url: "+url, "  secret: other"))
	t.Log(p.waitBackup("refused", "Started DestinationRefused", changeLimit))
	p.mustApply(b.secret("other", bucketKey))
	t.Log(p.waitBackup("refused", "Completed", backupLimit))

	t.Log("a line that is cut in the middle, and one that is not there, end an attempt only")
	p.mustApply(p.instance("cut", append(settings, "bandwidthLimit: 8Mi")...))
	p.copied("cut", 20)
	b.line.cut()
	p.wait("the attempt to fail", backupLimit, func(ctx context.Context) (bool, string) {
		seen, err := p.kubectl.Run(ctx, "get", "job", "-n", p.namespace, "-l", "cr.mysqloperator.grtl.github.com/backup-instance=cut", "-o", "jsonpath={.items[*].status.failed}")
		return err == nil && seen != "", seen
	})
	b.line.mend()
	t.Log(p.waitBackup("cut", "Completed", backupLimit))
	executed := p.run("get", "mbi", "cut", "-n", p.namespace, "-o", "jsonpath={.status.gtidExecuted}")
	folder := p.run("get", "mbi", "cut", "-n", p.namespace, "-o", "jsonpath={.status.location.url}")

	t.Log("the namespace is gone, the bucket is not")
	elsewhere := newPlace(t)
	elsewhere.password = "elsewhere"
	p.run("delete", "namespace", p.namespace, "--wait=false")
	p.wait("the namespace to be gone", namespaceLimit, func(ctx context.Context) (bool, string) {
		seen, err := p.kubectl.Run(ctx, "get", "namespace", p.namespace, "--ignore-not-found", "-o", "name")
		return err == nil && seen == "", seen
	})
	elsewhere.mustApply(secret(elsewhere.password))
	elsewhere.mustApply(elsewhere.manifest("replicas: 2", "fromBackupURL: "+folder, "restore: {secret: bucket, encryptionSecret: key}"))
	elsewhere.waitReady("False CredentialsNotFound", changeLimit)
	elsewhere.mustApply(b.secret("bucket", bucketKey))
	elsewhere.waitReady("False EncryptionKeyNotFound", changeLimit)
	elsewhere.mustApply("apiVersion: v1\nkind: Secret\nmetadata: {name: key}\nstringData: {identity: " + key.String() + "}\n")
	elsewhere.settled(2)
	restored := elsewhere.open(elsewhere.cluster, elsewhere.password)
	elsewhere.sameTables(restored, want)
	elsewhere.waitValue(restored, "SELECT GTID_SUBSET('"+executed+"', @@GLOBAL.gtid_executed)", "1", time.Second)
	elsewhere.sameTables(elsewhere.open(elsewhere.cluster+"-read", elsewhere.password), want)
}
