package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	mysqlv1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// TestMySQLClusterRestoreMeetsAnotherMySQL restores data that the cluster's image cannot start, or may be unable to start. The operator
// makes no member until there is another image, and the restored data stays.
func TestMySQLClusterRestoreMeetsAnotherMySQL(t *testing.T) {
	t.Parallel()
	stories := map[string]func(*testing.T){}
	for name, test := range map[string]struct{ image, told string }{
		"of another series":         {"mysql:8.4", "use an image of 9.7 first"},
		"that does not tell what":   {"evil:1", "did not report its version"},
		"that cannot even be asked": {"broken:1", "kubectl logs job/db-version"},
	} {
		stories[name] = func(t *testing.T) {
			v := newVault(t)
			v.nightly(t)
			v.operate(t, nil)
			v.apply(t, "db", "secret: root, fromBackup: nightly, image: '"+test.image+"'")
			v.restores(t, "db", v.pod(t, "db"))
			v.stalled(t, v.phase(t, "db", mysqlv1.RestoreFailed), test.told, "spec.image")
			found := v.until(t, "db", "VersionMismatch")
			if said := fmt.Sprint(found.Status); strings.Contains(said, theSecret) {
				t.Errorf("what the image says is repeated: %s", said)
			}
			if _, err := v.of("statefulsets").Get(t.Context(), "db", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("there are members: %v", err)
			}
			v.apply(t, "db", "secret: root, fromBackup: nightly, image: 'mysql:9.7.4'")
			found = v.settled(t, "db")
			v.fromTheBackup(t, found)
			v.onceRestored(t, 1)
			if found.Status.Restore.Attempts != 1 {
				t.Errorf("there were %d attempts, want 1", found.Status.Restore.Attempts)
			}
			v.depot.gone(t, "jobs", "db-restore")
			v.depot.gone(t, "jobs", "db-version")
		}
	}
	sideBySide(t, 3, stories)
}

// TestMySQLClusterRestoreBesideAProxy has a Pod with a container that a webhook added, which runs on when the restore has ended: the
// members are made, and the Pod does not keep the volume from them.
func TestMySQLClusterRestoreBesideAProxy(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	v.nightly(t)
	v.operate(t, nil)
	v.apply(t, "db", "secret: root, fromBackup: nightly")
	pod := v.pod(t, "db")
	claim, err := v.of("persistentvolumeclaims").Get(t.Context(), "data-db-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	v.putOn(claim.GetUID(), "db-0")
	said, err := protocol.Outcome{Reason: protocol.ReasonCompleted, Checksum: theChecksum, ServerVersion: "9.7.4"}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	proxy := container("a-proxy", map[string]any{"running": map[string]any{"startedAt": "2026-01-01T00:00:00Z"}})
	ours := container(protocol.CommandRestore, map[string]any{"terminated": map[string]any{"exitCode": 0, "message": string(said)}})
	if err := v.becomes(t.Context(), pod, "Running", proxy, ours); err != nil {
		t.Fatal(err)
	}
	soon(t, func(ctx context.Context) string {
		if _, err := v.of("pods").Get(ctx, pod, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the Pod that restored is there: %v", err)
		}
		return ""
	})
	v.fromTheBackup(t, v.settled(t, "db"))
}
