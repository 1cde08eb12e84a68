package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/schema"
	mysqlv1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// schedule makes a schedule, which no operator serves.
func (d *depot) schedule(t *testing.T, name string) {
	t.Helper()
	d.make(t, "mysqlbackupschedules", fmt.Sprintf("{apiVersion: %s/v1, kind: MySQLBackupSchedule, metadata: {name: %s}, spec: {cluster: db, time: '@yearly'}}", schema.MySQLGroup, name))
}

// expires marks an instance as the retention of a schedule does.
func (d *depot) expires(t *testing.T, name, schedule string) {
	t.Helper()
	uid := d.get(t, "mysqlbackupschedules", schedule).GetUID()
	d.patch(t, "mysqlbackupinstances", name, fmt.Sprintf(`{"metadata":{"labels":{%q:%q},"annotations":{%q:%q},"finalizers":[%q]}}`,
		mysqlv1.LabelBackupSchedule, schedule, transfer.AnnotationExpired, uid, transfer.FinalizerData))
}

// spared waits until an instance has neither the mark nor the finalizer.
func (d *depot) spared(t *testing.T, name string) {
	t.Helper()
	soon(t, func(ctx context.Context) string {
		instance, err := d.instance(ctx, name)
		if err != nil {
			return err.Error()
		}
		if _, marked := transfer.ExpiredBy(instance.Annotations); marked || len(instance.Finalizers) > 0 {
			return fmt.Sprintf("%s is marked: %v %v", name, instance.Annotations, instance.Finalizers)
		}
		return ""
	})
}

// TestBackupInstanceOutlivesItsMark: retention has marked instances, and their schedule counts them no more. Whoever deletes one of them by
// hand deletes no data.
func TestBackupInstanceOutlivesItsMark(t *testing.T) {
	t.Parallel()
	d := newDepot(t)
	d.cluster(t, "db")
	d.operate(t, nil)
	expired := func(t *testing.T, name string) {
		t.Helper()
		d.schedule(t, "of-"+name)
		d.back(t, name, "cluster: db, schedule: of-"+name)
		d.succeeds(t, name)
		d.expires(t, name, "of-"+name)
		d.held(t, name, true)
	}
	kept := func(t *testing.T, name string) {
		t.Helper()
		d.remove(t, "mysqlbackupinstances", name)
		d.gone(t, "mysqlbackupinstances", name)
		if _, err := d.of("jobs").Get(t.Context(), name+"-delete", metav1.GetOptions{}); err == nil {
			t.Error("its data is deleted")
		}
	}
	sideBySide(t, 2, map[string]func(*testing.T){
		"its label is taken off": func(t *testing.T) {
			expired(t, "unlabelled")
			d.patch(t, "mysqlbackupinstances", "unlabelled", fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, mysqlv1.LabelBackupSchedule))
			d.spared(t, "unlabelled")
			kept(t, "unlabelled")
		},
		"its schedule is deleted": func(t *testing.T) {
			expired(t, "orphan")
			d.remove(t, "mysqlbackupschedules", "of-orphan")
			d.patch(t, "mysqlbackupinstances", "orphan", `{"metadata":{"annotations":{"look":"again"}}}`)
			d.spared(t, "orphan")
			kept(t, "orphan")
		},
	})
}

// TestBackupInstanceWaitsToKnowItsSchedule deletes marked instances while the operator may not read schedules: nothing is deleted on
// suspicion.
func TestBackupInstanceWaitsToKnowItsSchedule(t *testing.T) {
	t.Parallel()
	d := newDepot(t)
	d.cluster(t, "db")
	d.operate(t, nil)
	names := []string{"unsure", "orphan", "remade"}
	for _, name := range names {
		d.schedule(t, "of-"+name)
		d.back(t, name, "cluster: db, schedule: of-"+name)
		d.succeeds(t, name)
		d.expires(t, name, "of-"+name)
	}
	d.grant(t, slices.DeleteFunc(instanceRules(), func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.Verbs, "get") && slices.Contains(rule.Resources, "mysqlbackupschedules")
	}))
	d.barred(t, "mysqlbackupschedules", "of-unsure")
	for _, name := range names {
		d.remove(t, "mysqlbackupinstances", name)
		d.unsure(t, name)
	}
	d.remove(t, "mysqlbackupschedules", "of-orphan")
	d.remove(t, "mysqlbackupschedules", "of-remade")
	d.schedule(t, "of-remade")
	d.grant(t, instanceRules())

	d.removes(t, "unsure", protocol.ExitDone, "{}")
	for _, name := range names {
		d.gone(t, "mysqlbackupinstances", name)
	}
	says(t, d.told(t, "orphan", "Warning BackupDataLeft"), "/"+d.namespace+"/db/orphan", `MySQLBackupSchedule "of-orphan"`, "no longer exists")
	says(t, d.told(t, "remade", "Warning BackupDataLeft"), "was deleted and created again")
	for _, name := range names[1:] {
		if _, err := d.of("jobs").Get(t.Context(), name+"-delete", metav1.GetOptions{}); err == nil {
			t.Errorf("the data of %s is deleted", name)
		}
	}
}

// barred waits until the API server knows that the operator may not get an object.
func (d *depot) barred(t *testing.T, what, name string) {
	t.Helper()
	client := d.asOperator(t)
	soon(t, func(ctx context.Context) string {
		if _, err := client.Resource(childResource(what)).Namespace(d.namespace).Get(ctx, name, metav1.GetOptions{}); !apierrors.IsForbidden(err) {
			return fmt.Sprintf("the operator may get %s: %v", what, err)
		}
		return ""
	})
}

// unsure waits until an instance reports that the operator cannot decide whether its mark counts.
func (d *depot) unsure(t *testing.T, name string) {
	t.Helper()
	soon(t, func(ctx context.Context) string {
		instance, err := d.instance(ctx, name)
		if err != nil || !strings.Contains(fmt.Sprint(instance.Status.Conditions), "check whether the schedule that marked it still exists") {
			return fmt.Sprintf("%s says %v (%v)", name, instance.Status.Conditions, err)
		}
		return ""
	})
}
