package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	mysqlv1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
	"github.com/mysql-operator/mysql-operator/test/integration/internal/apiserver"
	"github.com/mysql-operator/mysql-operator/test/sample"
)

// mill runs every Pod of a depot and lets it end well. Its made are the names of all Pods there ever were.
type mill struct {
	mu   sync.Mutex
	made map[string]bool
}

// mill works until the test ends.
func (d *depot) mill(t *testing.T, instance string) *mill {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	m := &mill{made: map[string]bool{}}
	var working sync.WaitGroup
	working.Go(func() {
		_ = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			m.turn(ctx, d, instance)
			return false, nil
		})
	})
	t.Cleanup(func() {
		stop()
		working.Wait()
	})
	return m
}

func (m *mill) turn(ctx context.Context, d *depot, instance string) {
	found, err := d.of("pods").List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for _, pod := range found.Items {
		name := "backup"
		if strings.Contains(pod.GetName(), "-delete-") {
			name = "backup-delete"
		}
		m.mu.Lock()
		m.made[pod.GetName()] = true
		m.mu.Unlock()
		content := `{"status":{"phase":"Running","containerStatuses":[{"name":"NAME","image":"none","imageID":"none","ready":true,"restartCount":0,"state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}}]}}`
		switch phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase"); phase {
		case "Succeeded":
			continue
		case "Running":
			made, err := d.instance(ctx, instance)
			if err != nil {
				continue
			}
			outcome := fmt.Sprintf(`{\"reason\":\"Completed\",\"source\":\"db-1\",\"checksum\":\"sha256:abc\",\"dataSize\":2,\"size\":1,\"uid\":\"%s\"}`, made.UID)
			content = `{"status":{"phase":"Succeeded","containerStatuses":[{"name":"NAME","image":"none","imageID":"none","ready":false,"restartCount":0,"state":{"terminated":{"exitCode":0,"message":"` + outcome + `"}}}]}}`
		}
		content = strings.Replace(content, "NAME", name, 1)
		_, _ = d.of("pods").Patch(ctx, pod.GetName(), "application/merge-patch+json", []byte(content), metav1.PatchOptions{}, "status")
	}
}

// pods counts the Pods there were of a sort.
func (m *mill) pods(sort string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	count := 0
	for name := range m.made {
		if strings.Contains(name, "-"+sort+"-") {
			count++
		}
	}
	return count
}

// TestBackupInstanceSurvivesEveryCrash kills the operator at each write from a backup's creation to the end of its data, once before the
// API server has got it and once before the operator has got the answer. The next operator must make the one backup there is, and no other.
func TestBackupInstanceSurvivesEveryCrash(t *testing.T) {
	t.Parallel()
	clean := newDepot(t)
	writes := clean.wholeLife(t, 0, false).wire.written()
	if len(writes) < 12 {
		t.Fatalf("a whole life takes more writes than these: %v", writes)
	}
	survivesCrashes(t, crashesUpTo(len(writes)), func(t *testing.T, at crash) bool {
		return newDepot(t).wholeLife(t, at.write, at.sent).wire.isDead()
	})
}

// wholeLife makes a backup and deletes it with its data. An operator that dies has a successor.
func (d *depot) wholeLife(t *testing.T, deadly int, sent bool) *operating {
	t.Helper()
	d.cluster(t, "db")
	first := d.operate(t, nil)
	first.wire.dieAt(deadly, sent)
	work := d.mill(t, "one")
	d.back(t, "one", "cluster: db, deletionPolicy: Delete")
	succeeded, removed := false, false
	soon(t, func(ctx context.Context) string {
		if first.wire.isDead() && !succeeded {
			succeeded = true
			first.finish(t)
			d.operate(t, nil)
		}
		instance, err := d.instance(ctx, "one")
		if apierrors.IsNotFound(err) && removed {
			return ""
		}
		if err == nil && !removed && instance.Status.Phase == mysqlv1.BackupCompleted {
			removed = true
			d.checkWhole(t, instance)
			d.remove(t, "mysqlbackupinstances", "one")
		}
		return fmt.Sprintf("the instance is %+v (%v), deleted %t, after %v", instance.Status, err, removed, first.wire.written())
	})
	d.gone(t, "jobs", "one-backup")
	d.gone(t, "jobs", "one-delete")
	d.checkClaim(t, "db-backups", "2Gi")
	if backups, removals := work.pods("backup"), work.pods("delete"); backups != 1 || removals < 1 {
		t.Errorf("there were %d Pods for backup and %d for deletion", backups, removals)
	}
	return first
}

func (d *depot) checkWhole(t *testing.T, instance mysqlv1.MySQLBackupInstance) {
	t.Helper()
	status := instance.Status
	place := mysqlv1.BackupLocation{URL: "file:///" + d.namespace + "/db/one", Claim: "db-backups"}
	if status.Checksum != "sha256:abc" || status.Attempts != 1 || status.StartTime == nil || status.CompletionTime == nil || *status.Location != place {
		t.Errorf("the backup is told wrongly: %+v", status)
	}
	if len(instance.Finalizers) != 1 || meta.FindStatusCondition(status.Conditions, mysqlv1.ConditionStalled) != nil {
		t.Errorf("the backup has the finalizers %v and the conditions %v", instance.Finalizers, status.Conditions)
	}
}

// TestBackupInstanceWithoutARight lacks one right of those that the manifests grant, and gets it later.
func TestBackupInstanceWithoutARight(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 3)
	stories := map[string]func(*testing.T){}
	for name, test := range map[string]struct{ verb, resource, told string }{
		"make Jobs":            {"create", "jobs", `cannot create resource "jobs" in API group "batch"`},
		"look at claims":       {"get", "persistentvolumeclaims", `cannot get resource "persistentvolumeclaims"`},
		"make claims":          {"create", "persistentvolumeclaims", `cannot create resource "persistentvolumeclaims"`},
		"read Secrets":         {"get", "secrets", `cannot get resource "secrets"`},
		"put the finalizer on": {"patch", "mysqlbackupinstances", `cannot patch resource "mysqlbackupinstances"`},
		"read schedules":       {"get", "mysqlbackupschedules", `cannot get resource "mysqlbackupschedules"`},
	} {
		stories[name] = func(t *testing.T) {
			d := limited(t, butNot(instanceRules(), test.verb, test.resource))
			d.waitsFor(t, "one", "Forbidden", true, test.told, "mysql-operator manifests rbac")
			d.grant(t, instanceRules())
			d.succeeds(t, "one")
		}
	}
	stories["delete Jobs"] = func(t *testing.T) {
		d := limited(t, butNot(instanceRules(), "delete", "jobs"))
		d.runs(t, d.pod(t, "one", "backup"), "")
		d.until(t, "one", mysqlv1.BackupStarted, protocol.ReasonCopying)
		d.remove(t, "mysqlbackupinstances", "one")
		soon(t, func(ctx context.Context) string {
			instance, err := d.instance(ctx, "one")
			stalled := meta.FindStatusCondition(instance.Status.Conditions, mysqlv1.ConditionStalled)
			if err != nil || stalled == nil || stalled.Reason != "Forbidden" || !strings.Contains(stalled.Message, `cannot delete resource "jobs"`) {
				return fmt.Sprintf("it says %v (%v)", instance.Status.Conditions, err)
			}
			return ""
		})
		d.grant(t, instanceRules())
		d.removes(t, "one", protocol.ExitDone, "{}")
		d.gone(t, "mysqlbackupinstances", "one")
	}
	stories["list events"] = func(t *testing.T) {
		limited(t, butNot(instanceRules(), "list", "events")).succeeds(t, "one")
	}
	stories["tell events"] = func(t *testing.T) {
		limited(t, butNot(instanceRules(), "create", "events")).succeeds(t, "one")
	}
	sideBySide(t, 3, stories)
}

// limited is a depot whose operator has these rights only, and a backup in it that takes all of them.
func limited(t *testing.T, rules []rbacv1.PolicyRule) *depot {
	t.Helper()
	d := newDepot(t)
	d.grant(t, rules)
	d.operate(t, nil)
	d.cluster(t, "db")
	d.make(t, "mysqlbackupschedules", "{apiVersion: "+group+"v1, kind: MySQLBackupSchedule, metadata: {name: nightly}, spec: {cluster: db, time: '@daily', encryption: {secret: age}}}")
	d.secret(t, "age", map[string]string{"recipient": "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj"})
	d.back(t, "one", "schedule: nightly, deletionPolicy: Delete")
	return d
}

// TestBackupInstanceWithoutAPIServer takes the API server away while a backup is made, and while its data is deleted.
func TestBackupInstanceWithoutAPIServer(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 2)
	d := newDepotOn(t, apiserver.Own(t))
	d.cluster(t, "db")
	o := d.operate(t, nil)
	d.back(t, "one", "cluster: db, deletionPolicy: Delete")
	pod := d.pod(t, "one", "backup")
	d.runs(t, pod, "")
	d.until(t, "one", mysqlv1.BackupStarted, protocol.ReasonCopying)
	errors := len(o.log.all())
	d.outage(t)
	d.until(t, "one", mysqlv1.BackupStarted, protocol.ReasonCopying)
	d.ends(t, pod, protocol.ExitDone, d.outcome(t, "one", protocol.ReasonCompleted, ""))
	if done := d.until(t, "one", mysqlv1.BackupCompleted, protocol.ReasonCompleted); done.Status.Attempts != 1 {
		t.Errorf("it took %d attempts", done.Status.Attempts)
	}
	d.remove(t, "mysqlbackupinstances", "one")
	pod = d.pod(t, "one", "delete")
	d.outage(t)
	d.ends(t, pod, protocol.ExitDone, "{}")
	d.gone(t, "mysqlbackupinstances", "one")
	// An API server that has just started does not know yet what anybody may do, and says so to everybody.
	told := slices.DeleteFunc(slices.Clone(o.log.all()[errors:]), func(line string) bool { return strings.Contains(line, "is forbidden: ") })
	if len(told) > 12 {
		t.Errorf("two outages are told more often than is of use: %v", told)
	}
}

func (d *depot) outage(t *testing.T) {
	t.Helper()
	d.Kill(t)
	timer := time.NewTimer(outage)
	defer timer.Stop()
	<-timer.C
	d.Restart(t)
}
