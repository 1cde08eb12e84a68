package integration

import (
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	mysqlv1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// These tests wait for minutes until kube-controller-manager has looked at a namespace again. Parallel tests start in the order of files'
// names: in the first file, these wait while others run.

// TestMySQLClusterInANamespaceThatEnds: a cluster ends with its namespace, and the operator logs no error.
func TestMySQLClusterInANamespaceThatEnds(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.grantBeyond(t)
	o := s.operate(t, nil)
	s.apply(t, "db", "secret: root")
	s.apply(t, "waits", "secret: nowhere")
	s.settled(t, "db")
	s.until(t, "waits", "SecretNotFound")

	s.emptied(t)
	if errors := o.log.all(); len(errors) > 0 {
		t.Errorf("a namespace that ends is no error: %v", errors)
	}
}

// TestBackupInstanceNamespaceGoes deletes the namespace of backups whose data the operator would delete first; one backup is still
// running. An instance's finalizer does not hold the namespace up, and data that the operator can no longer delete is left.
func TestBackupInstanceNamespaceGoes(t *testing.T) {
	t.Parallel()
	d := newDepot(t)
	d.cluster(t, "db")
	// An operator for all namespaces, since its rights in one go with that.
	d.operate(t, d.omnipotent)
	for _, name := range []string{"done", "removing", "running"} {
		d.back(t, name, "cluster: db, deletionPolicy: Delete")
	}
	d.succeeds(t, "done")
	d.succeeds(t, "removing")
	d.remove(t, "mysqlbackupinstances", "removing")
	d.pod(t, "removing", "delete")
	d.runs(t, d.pod(t, "running", "backup"), "")
	d.until(t, "running", mysqlv1.BackupStarted, protocol.ReasonCopying)

	d.emptied(t)
}
