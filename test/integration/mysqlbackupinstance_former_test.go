package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	mysqlv1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// TestBackupInstanceWaitsForTheFormerPod deletes the Job of a backup while its Pod is at work. Kubernetes gives that a while to end, and
// until it has no other is made, which would write to the same place.
func TestBackupInstanceWaitsForTheFormerPod(t *testing.T) {
	t.Parallel()
	d := newDepot(t)
	d.cluster(t, "db")
	d.operate(t, nil)
	d.back(t, "one", "cluster: db")
	former := d.pod(t, "one", "backup")
	d.bind(t, former)
	d.runs(t, former, "")
	d.until(t, "one", mysqlv1.BackupStarted, protocol.ReasonCopying)
	d.remove(t, "jobs", "one-backup")
	soon(t, func(ctx context.Context) string {
		found, err := d.instance(ctx, "one")
		if said := readyOf(found).Message; err != nil || !strings.Contains(said, "waiting for a Pod of its previous Job to end") {
			return fmt.Sprintf("it does not wait for the former Pod, but: %s (%v)", said, err)
		}
		return ""
	})
	d.gone(t, "jobs", "one-backup")

	t.Log("then there is another one")
	d.ends(t, former, protocol.ExitRetry, d.outcome(t, "one", protocol.ReasonInterrupted, "the program was stopped"))
	d.succeeds(t, "one")
}

// TestBackupInstanceWaitsForAFormerPodUnseen holds the watch of Pods up from before the Pod is made. Only the API server shows that the Pod
// of the deleted Job is still at work.
func TestBackupInstanceWaitsForAFormerPodUnseen(t *testing.T) {
	t.Parallel()
	d := newDepot(t)
	d.cluster(t, "db")
	late := &recorder{held: "/pods"}
	d.operate(t, func(config *reconcile.Config) { config.Rest.Wrap(late.around) })
	d.back(t, "first", "cluster: db")
	d.succeeds(t, "first")
	gate := make(chan struct{})
	late.gate.Store(&gate)
	d.back(t, "one", "cluster: db")
	former := d.pod(t, "one", "backup")
	d.bind(t, former)
	d.runs(t, former, "")
	says := func(want bool) {
		t.Helper()
		soon(t, func(ctx context.Context) string {
			found, err := d.instance(ctx, "one")
			if said := readyOf(found).Message; err != nil || strings.Contains(said, "creating its Job") != want {
				return fmt.Sprintf("it says: %s (%v)", said, err)
			}
			return ""
		})
	}
	says(false)
	late.take()
	d.remove(t, "jobs", "one-backup")
	says(true)
	if writes := late.take(); count(writes, "POST /apis/batch/v1/namespaces/"+d.namespace+"/jobs") != 0 {
		t.Errorf("there is another Job beside the former Pod: %v", writes)
	}
	late.gate.Store(nil)
	close(gate)

	t.Log("then there is another one")
	d.ends(t, former, protocol.ExitRetry, d.outcome(t, "one", protocol.ReasonInterrupted, "the program was stopped"))
	d.succeeds(t, "one")
}
