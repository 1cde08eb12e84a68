package backup

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// TestABackupSaysWhichRowsItLacks: the backup is complete anyway.
func TestABackupSaysWhichRowsItLacks(t *testing.T) {
	t.Parallel()
	const tables, visits = `tables of other engines than InnoDB: "shop"."log" (MyISAM)`, `"shop"."visits" (CSV)`
	told := func(kind, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Any", Message: message}
	}
	for name, test := range map[string]struct {
		cluster []metav1.Condition
		members []v1.Member
		gone    bool
		want    []string
	}{
		"all tables are InnoDB": {},
		"some are not":          {cluster: []metav1.Condition{told(v1.ConditionNonTransactionalTables, tables)}, want: []string{"does not contain the rows", tables}},
		"the member that it was copied from is missing rows": {members: []v1.Member{{Name: "db-1", LacksRowsOf: visits}}, want: []string{"copied from db-1", visits}},
		"another member does":                                {cluster: []metav1.Condition{told(v1.ConditionIncompleteMembers, visits)}, members: []v1.Member{{Name: "db-1"}, {Name: "db-2", LacksRowsOf: visits}}},
		"both":                                               {cluster: []metav1.Condition{told(v1.ConditionNonTransactionalTables, tables)}, members: []v1.Member{{Name: "db-1", LacksRowsOf: visits}}, want: []string{tables, visits}},
		"the cluster is gone meanwhile":                      {gone: true},
	} {
		seen := calm(working(succeeded(nil)))
		seen.cluster.Status.Conditions, seen.cluster.Status.Members = test.cluster, test.members
		if test.gone {
			seen.cluster = nil
		}
		instance := fresh(begins)
		status := completed(instance, seen)
		found := meta.FindStatusCondition(status.Conditions, v1.ConditionNonTransactionalTables)
		if status.Phase != v1.BackupCompleted || !meta.IsStatusConditionTrue(status.Conditions, v1.ConditionReady) || (found != nil) != (test.want != nil) {
			t.Errorf("%s: it is %s, and says %+v", name, status.Phase, status.Conditions)
			continue
		}
		events := eventsOf(instance.Status, status)
		if len(events) != 1 && found == nil || found != nil && (len(events) != 2 || events[1].Type != reconcile.Warning || events[1].Reason != reasonRowsMissing) {
			t.Errorf("%s: events %+v", name, events)
		}
		for _, words := range test.want {
			if !strings.Contains(found.Message, words) {
				t.Errorf("%s: it says %q, and not %q", name, found.Message, words)
			}
		}
		if again := eventsOf(status, status); len(again) != 0 {
			t.Errorf("%s: reported again: %+v", name, again)
		}
	}
}
