package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	mysqlv1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
	"github.com/mysql-operator/mysql-operator/test/sample"
)

// restoredPicture is a restored cluster without the times of its restore.
func (v *vault) restoredPicture(t *testing.T, cluster string) any {
	t.Helper()
	return without(v.picture(t, cluster), "startTime", "completionTime")
}

// TestMySQLClusterRestoreSurvivesEveryCrash kills the operator at each write of a restore, once before the API server has got it and once
// before the operator has got the answer. The next operator must come to the same end, with the backup put on one volume, once.
func TestMySQLClusterRestoreSurvivesEveryCrash(t *testing.T) {
	t.Parallel()
	clean := newVault(t)
	clean.nightly(t)
	clean.nodes(t, "db")
	undisturbed := clean.operate(t, nil)
	clean.apply(t, "db", "secret: root, fromBackup: nightly")
	clean.settled(t, "db")
	clean.depot.gone(t, "jobs", "db-restore")
	want, writes := clean.restoredPicture(t, "db"), undisturbed.wire.written()
	// What comes after is a cluster's life like any other.
	members := slices.IndexFunc(writes, func(write string) bool { return strings.Contains(write, "/statefulsets/") })
	if members < 8 || !slices.ContainsFunc(writes[:members], func(write string) bool { return strings.HasPrefix(write, "POST /apis/batch/v1") }) {
		t.Fatalf("a restore takes other writes than these: %v", writes)
	}
	deadly := slices.Collect(func(yield func(int) bool) {
		for number, write := range writes {
			if (number <= members || strings.Contains(write, "/jobs")) && !strings.Contains(write, "/events") && !yield(number+1) {
				return
			}
		}
	})

	survivesCrashes(t, crashesAt(deadly...), func(t *testing.T, at crash) bool {
		t.Logf("the operator dies at %s", writes[at.write-1])
		return survivesCrashedRestore(t, at, want)
	})
}

// survivesCrashedRestore reports whether the operator died as planned.
func survivesCrashedRestore(t *testing.T, at crash, want any) bool {
	t.Helper()
	v := newVault(t)
	v.nightly(t)
	v.nodes(t, "db")
	doomed := v.operate(t, nil)
	doomed.wire.dieAt(at.write, at.sent)
	v.apply(t, "db", "secret: root, fromBackup: nightly")
	soon(t, func(ctx context.Context) string {
		cluster, err := v.cluster(ctx, "db")
		if doomed.wire.isDead() || err == nil && why(cluster).Reason == "AllMembersReady" {
			return ""
		}
		return fmt.Sprintf("the operator has made the writes %v", doomed.wire.written())
	})
	doomed.finish(t)

	v.operate(t, nil)
	v.settled(t, "db")
	v.depot.gone(t, "jobs", "db-restore")
	soon(t, func(context.Context) string { return cmp.Diff(want, v.restoredPicture(t, "db")) })
	v.onceRestored(t, 1)
	v.node.podsOnce(t, "db", 2)
	return doomed.wire.isDead()
}

// TestMySQLClusterRestoreUnderTwoOperators has two operators that both think they lead.
func TestMySQLClusterRestoreUnderTwoOperators(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 1)
	v := newVault(t)
	v.nightly(t)
	v.nodes(t, "db")
	first := v.operate(t, v.elected)
	second := v.operate(t, nil)
	v.apply(t, "db", "secret: root, fromBackup: nightly")
	v.fromTheBackup(t, v.settled(t, "db"))
	v.onceRestored(t, 1)
	v.node.podsOnce(t, "db", 2)
	v.restful(t, first, second)
}

// TestMySQLClusterRestoreWithoutARight lacks one right of those that the manifests grant, and gets it later.
func TestMySQLClusterRestoreWithoutARight(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 2)
	stories := map[string]func(*testing.T){}
	for name, test := range map[string]struct{ verb, resource, told string }{
		"look at backups": {"get", "mysqlbackupinstances", `cannot get resource "mysqlbackupinstances"`},
		"make claims":     {"create", "persistentvolumeclaims", `cannot create resource "persistentvolumeclaims"`},
		"make Jobs":       {"create", "jobs", `cannot create resource "jobs" in API group "batch"`},
		"look at Jobs":    {"get", "jobs", `cannot get resource "jobs" in API group "batch"`},
	} {
		stories[name] = func(t *testing.T) {
			v := newVault(t)
			v.nightly(t)
			v.nodes(t, "db")
			v.grant(t, butNot(operatorRules(), test.verb, test.resource))
			v.operate(t, nil)
			v.apply(t, "db", "secret: root, fromBackup: nightly")
			v.stalled(t, v.until(t, "db", "Forbidden"), test.told, "mysql-operator manifests rbac")
			v.grant(t, operatorRules())
			v.fromTheBackup(t, v.settled(t, "db"))
			v.onceRestored(t, 1)
		}
	}
	stories["delete Jobs"] = func(t *testing.T) {
		v := newVault(t)
		v.nightly(t)
		v.nodes(t, "db")
		v.grant(t, butNot(operatorRules(), "delete", "jobs"))
		v.operate(t, nil)
		v.apply(t, "db", "secret: root, fromBackup: nightly")
		v.fromTheBackup(t, v.settled(t, "db"))
		v.grant(t, operatorRules())
		v.depot.gone(t, "jobs", "db-restore")
	}
	stories["room for Pods"] = func(t *testing.T) {
		v := newVault(t)
		v.nightly(t)
		v.quota(t, "pods: 0")
		v.operate(t, nil)
		v.apply(t, "db", "secret: root, fromBackup: nightly")
		v.stalled(t, v.until(t, "db", "PodsNotCreated"), "Kubernetes does not create the Pod of Job db-restore", "exceeded quota: few")
		v.remove(t, "resourcequotas", "few")
	}
	sideBySide(t, 3, stories)
}

// TestMySQLClusterRestoreJobOfSomebodyElse finds its Job's name taken.
func TestMySQLClusterRestoreJobOfSomebodyElse(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 3)
	v := newVault(t)
	v.nightly(t)
	v.depot.make(t, "jobs", "{apiVersion: batch/v1, kind: Job, metadata: {name: db-restore}, spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: c, image: none}]}}}}")
	v.operate(t, nil)
	v.apply(t, "db", "secret: root, fromBackup: nightly")
	v.stalled(t, v.until(t, "db", "ForeignObject"), "jobs.batch "+v.namespace+"/db-restore exists already and was not made by this operator")
	if err := v.depot.of("jobs").Delete(t.Context(), "db-restore", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := v.pod(t, "db")
	v.depot.runs(t, pod, "")

	t.Log("a Pod that fails is followed by another, and the cluster tells")
	said, err := protocol.Outcome{Reason: protocol.ReasonDestinationUnavailable, Message: "cut in the middle"}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	v.depot.ends(t, pod, protocol.ExitRetry, string(said))
	soon(t, func(ctx context.Context) string {
		found, err := v.cluster(ctx, "db")
		if err != nil || !strings.Contains(why(found).Message, "DestinationUnavailable: cut in the middle") || found.Status.Restore.Phase != mysqlv1.RestoreRunning || found.Status.Restore.Attempts != 1 {
			return fmt.Sprintf("the status is %+v (%v)", found.Status, err)
		}
		return ""
	})
	v.restores(t, "db", v.pod(t, "db", pod))
	if found := v.settled(t, "db"); found.Status.Restore.Attempts != 2 {
		t.Errorf("there were %d attempts, want 2", found.Status.Restore.Attempts)
	}
}
