package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	mysqlv1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// TestMySQLClusterRestoreWaitsForTheFormerPod has a Pod that restores and takes a while to end after its Job was deleted. Until it has
// ended, the operator makes neither another Job nor the members, which would write to the same volume.
func TestMySQLClusterRestoreWaitsForTheFormerPod(t *testing.T) {
	t.Parallel()
	stories := map[string]func(*testing.T){}
	for name, test := range map[string]struct {
		end        func(*testing.T, *vault)
		gone, says string
		then       func(t *testing.T, v *vault, former string)
	}{
		"before it makes another Job": {
			end:  func(t *testing.T, v *vault) { t.Helper(); v.remove(t, "jobs", "db-restore") },
			gone: "db-restore", says: "waiting for the Pod of an earlier attempt to end",
			then: func(t *testing.T, v *vault, former string) {
				t.Helper()
				v.restores(t, "db", v.pod(t, "db", former))
				v.fromTheBackup(t, v.settled(t, "db"))
			},
		},
		"before it makes the members": {
			end:  func(t *testing.T, v *vault) { t.Helper(); v.apply(t, "db", "secret: root") },
			gone: "db-version", says: "waiting for the Pod that restored to end",
			then: func(t *testing.T, v *vault, _ string) { t.Helper(); v.until(t, "db", "RestoreFailed") },
		},
		"before it makes the members of the next cluster of this name": {
			end: func(t *testing.T, v *vault) {
				t.Helper()
				v.remove(t, "mysqlclusters", "db")
				v.apply(t, "db", "secret: root")
			},
			says: "restores a backup to the volume of an earlier cluster",
			then: func(t *testing.T, v *vault, _ string) { t.Helper(); v.settled(t, "db") },
		},
	} {
		stories[name] = func(t *testing.T) {
			v := newVault(t)
			v.nightly(t)
			o := v.operate(t, nil)
			v.apply(t, "db", "secret: root, fromBackup: nightly")
			former := v.pod(t, "db")
			v.depot.bind(t, former)
			v.depot.runs(t, former, "")
			v.phase(t, "db", mysqlv1.RestoreRunning)
			test.end(t, v)
			soon(t, func(ctx context.Context) string {
				found, err := v.cluster(ctx, "db")
				if said := why(found).Message; err != nil || !strings.Contains(said, test.says) {
					return fmt.Sprintf("it does not wait for the former Pod, but: %s (%v)", said, err)
				}
				return ""
			})
			before := len(o.wire.written()) // passes follow one another: no late one writes after a pass that waits
			if test.gone != "" {
				v.depot.gone(t, "jobs", test.gone)
			}
			ended := o.passes(t)
			soon(t, func(context.Context) string {
				if now := o.passes(t); now < ended+2 {
					return fmt.Sprintf("%v passes have ended since Job %s was gone, want 2: the first may have begun before that", now-ended, test.gone)
				}
				return ""
			})
			if test.gone != "" { // a pass that began before its cluster was deleted may still make a Job
				v.madeOnce(t, o)
			}
			if made := count(o.wire.written(), "POST /api/v1/namespaces/"+v.namespace+"/persistentvolumeclaims"); made != 1 {
				t.Errorf("the operator made %d claims, want 1", made)
			}
			for at, write := range o.wire.written() {
				if made := strings.HasPrefix(write, "POST "); made && at >= before && strings.Contains(write, "/jobs") {
					t.Errorf("a Job is made beside the former Pod: %s", write)
				}
				if strings.Contains(write, "/statefulsets") {
					t.Errorf("members are made beside the former Pod: %s", write)
				}
			}
			said, err := protocol.Outcome{Reason: protocol.ReasonInterrupted, Message: "the program was stopped"}.Encode()
			if err != nil {
				t.Fatal(err)
			}
			v.depot.ends(t, former, protocol.ExitRetry, string(said))
			test.then(t, v, former)
		}
	}
	sideBySide(t, 2, stories)
}
