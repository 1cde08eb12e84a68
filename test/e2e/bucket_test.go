package e2e

import (
	"context"
	"fmt"
	"testing"

	"filippo.io/age"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mysql-operator/mysql-operator/test/sample"
)

// TestBackupToBucket is the worst case with the best end: an encrypted backup in a bucket survives the namespace, with everything in it,
// and is restored elsewhere from its URL alone. Before, everything goes wrong that can go wrong with a bucket.
func TestBackupToBucket(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 2)
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
	p.mustApply(p.instance("refused", "deletionPolicy: Delete", "destination:", "  url: "+url, "  secret: other"))
	t.Log(p.waitBackup("refused", "Started DestinationRefused", changeLimit))
	p.mustApply(b.secret("other", bucketKey))
	t.Log(p.waitBackup("refused", "Completed", backupLimit))

	t.Log("a Secret that is missing while the data is deleted is waited for")
	if b.countFiles(p, "refused") == 0 {
		t.Error("the bucket has no file of a backup that is complete")
	}
	p.run("delete", "secret", "other", "-n", p.namespace)
	p.run("delete", "mbi", "refused", "-n", p.namespace, "--wait=false")
	p.waitFailedAttempt("refused-delete")
	p.mustApply(b.secret("other", bucketKey))
	p.wait("the backup to be gone", backupLimit, func(ctx context.Context) (bool, string) {
		seen, err := p.objects.Field(ctx, mysql("mysqlbackupinstances"), p.namespace, "refused", "{.status}")
		return apierrors.IsNotFound(err), seen
	})
	if left := b.countFiles(p, "refused"); left != 0 {
		t.Errorf("the bucket still has %d files of the backup that was deleted", left)
	}

	t.Log("a line that is cut in the middle, and one that is not there, end an attempt only")
	b.line.cutAfter(4 << 20) // a backup of this data sends several times as much
	p.mustApply(p.instance("cut", settings...))
	p.waitFailedAttempt("cut-backup")
	b.line.mend()
	t.Log(p.waitBackup("cut", "Completed", backupLimit))
	executed := p.run("get", "mbi", "cut", "-n", p.namespace, "-o", "jsonpath={.status.gtidExecuted}")
	folder := p.run("get", "mbi", "cut", "-n", p.namespace, "-o", "jsonpath={.status.location.url}")

	t.Log("the namespace is gone, the bucket is not")
	elsewhere := newPlace(t)
	elsewhere.password = "elsewhere"
	p.run("delete", "mysqlcluster", p.cluster, "-n", p.namespace) // with members in it, a namespace stays for minutes
	p.membersGone()
	p.run("delete", "namespace", p.namespace, "--wait=false")
	p.wait("the namespace to be gone", namespaceLimit, func(ctx context.Context) (bool, string) {
		seen, err := p.objects.Field(ctx, core("namespaces"), "", p.namespace, "{.status}")
		return apierrors.IsNotFound(err), seen
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
	elsewhere.isValue(restored, "SELECT GTID_SUBSET('"+executed+"', @@GLOBAL.gtid_executed)", "1")
	elsewhere.sameTables(elsewhere.open(elsewhere.cluster+"-read", elsewhere.password), want)
}

// waitFailedAttempt waits until an attempt of a Job has failed.
func (p *place) waitFailedAttempt(job string) {
	p.t.Helper()
	p.wait("an attempt of Job "+job+" to fail", backupLimit, func(ctx context.Context) (bool, string) {
		seen, err := p.objects.Field(ctx, batchv1.SchemeGroupVersion.WithResource("jobs"), p.namespace, job, "{.status.failed}")
		return err == nil && seen != "", fmt.Sprint(seen, err)
	})
}
