package e2e

import (
	"context"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/mysql-operator/mysql-operator/test/sample"
)

const (
	liarImage = "e2e/liar:1"
	// lie is what the image says of itself (test/e2e/liar/mysqld).
	lie = "the-tenants-image-was-here"
)

// TestATenantsImageFindsNothing restores a backup with an image of a tenant's that looks for credentials and lies about its version. On a
// real kubelet, too, it has nothing to read, and nothing that it says gets out of its Pod.
func TestATenantsImageFindsNothing(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 2)
	p := newPlace(t)
	loadProgram(t, p.kubectl.Config, "./test/e2e/liar/mysqld", liarImage)
	p.start(1)
	p.mustApply(p.instance("mine"))
	p.waitBackup("mine", "Completed Completed", backupLimit)
	// The restore comes to its end with this key: that the image does not fit stays what the cluster says.
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	p.mustApply("apiVersion: v1\nkind: Secret\nmetadata:\n  name: other-team\nstringData:\n  TOKEN: S3cr3t\n  identity: " + key.String() + "\n")

	evil := *p
	evil.cluster = "evil"
	evil.mustApply(evil.manifest("replicas: 1", "image: "+liarImage, "fromBackup: mine", "restore: {secret: other-team, encryptionSecret: other-team}"))
	t.Log(evil.waitReady("False VersionMismatch", changeLimit))

	log := ""
	p.wait("the image's log", changeLimit, func(ctx context.Context) (bool, string) {
		log, _ = p.kubectl.Run(ctx, "logs", "-n", p.namespace, "-l", "job-name=evil-version", "--tail=-1")
		return strings.Contains(log, "looked everywhere"), log
	})
	for line := range strings.Lines(log) {
		for _, never := range []string{"S3cr3t", key.String(), "/backups", "/etc/mysql-operator", "/var/run/secrets", "/run/secrets", "PASSWORD", "TOKEN", p.password} {
			if strings.Contains(line, never) {
				t.Errorf("the image found %s", line)
			}
		}
	}
	if !strings.Contains(log, "file /usr/bin/mysqld readable true") || !strings.Contains(log, "file /probe/") || !strings.Contains(log, "environment PATH") {
		t.Errorf("the image cannot have looked properly:\n%s", log)
	}
	if told := p.run("get", "mysqlclusters,jobs,events,persistentvolumeclaims", "-n", p.namespace, "-o", "yaml"); strings.Contains(told, lie) {
		t.Errorf("what the image says is repeated:\n%s", told)
	}
}
