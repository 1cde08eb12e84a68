package integration

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	mysqlv1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
	"github.com/mysql-operator/mysql-operator/test/sample"
)

// onVolume changes what is on a member's volume.
func (s *site) onVolume(t *testing.T, member string, change func(*memberVolume)) {
	t.Helper()
	volume := s.node.volume(s.get(t, "persistentvolumeclaims", "data-"+member).GetUID(), member)
	s.node.network.mu.Lock()
	defer s.node.network.mu.Unlock()
	change(volume)
}

// condition waits until a cluster has a condition whose message has these words; none where they are empty.
func (s *site) condition(t *testing.T, cluster, kind, words string) metav1.Condition {
	t.Helper()
	var told metav1.Condition
	soon(t, func(ctx context.Context) string {
		found, err := s.cluster(ctx, cluster)
		if err != nil {
			return err.Error()
		}
		condition := meta.FindStatusCondition(found.Status.Conditions, kind)
		if (condition != nil) != (words != "") || condition != nil && !strings.Contains(condition.Message, words) {
			return kind + " does not say " + words + ": " + why(found).Message
		}
		if condition != nil {
			told = *condition
		}
		return ""
	})
	return told
}

// TestMySQLClusterOfTablesWithoutRows: the operator reports tables that no copy has the rows of. The cluster continues with a member that
// has all rows, not with the former primary, which is missing some.
func TestMySQLClusterOfTablesWithoutRows(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 1)
	s := newSite(t)
	o := s.operate(t, nil)
	s.apply(t, "db", "secret: root")
	s.settled(t, "db")
	settings, _, _ := unstructured.NestedString(s.get(t, "configmaps", "db-config").Object, "data", "my.cnf")
	says(t, settings, "loose_disabled_storage_engines = MyISAM,")
	says(t, settings, "loose_sql_generate_invisible_primary_key = ON")

	tables := replication.Tables{Named: []replication.Table{{Schema: "shop", Name: "log", Engine: "MyISAM"}}, More: 2}
	s.onVolume(t, "db-0", func(v *memberVolume) { v.otherEngines = &tables })
	told := s.condition(t, "db", mysqlv1.ConditionNonTransactionalTables, `"shop"."log" (MyISAM) and 2 more`)
	s.told(t, "db", [2]string{"Warning", told.Reason}, told.Message)
	s.settled(t, "db")
	s.onVolume(t, "db-0", func(v *memberVolume) { v.otherEngines = &replication.Tables{} })
	s.condition(t, "db", mysqlv1.ConditionNonTransactionalTables, "")

	s.onVolume(t, "db-0", func(v *memberVolume) { v.lacking = tables })
	told = s.condition(t, "db", mysqlv1.ConditionIncompleteMembers, "db-0 is missing rows of")
	s.told(t, "db", [2]string{"Warning", told.Reason}, told.Message)
	if primary := s.settled(t, "db").Status.Primary; primary != "db-0" {
		t.Errorf("the primary is %s", primary)
	}

	s.remove(t, "mysqlclusters", "db")
	s.gone(t, "mysqlclusters", "db")
	s.childrenGone(t, "db")
	s.apply(t, "db", "secret: root")
	if after := s.settled(t, "db"); after.Status.Primary != "db-1" {
		t.Errorf("the primary is %s, which lacks rows that db-1 has", after.Status.Primary)
	}
	s.condition(t, "db", mysqlv1.ConditionIncompleteMembers, "db-0 is missing rows of")
	settings, _, _ = unstructured.NestedString(s.get(t, "configmaps", "db-config").Object, "data", "my.cnf")
	if strings.Contains(settings, "disabled_storage_engines") || strings.Contains(settings, "primary_key") {
		t.Errorf("a cluster that adopts data refuses, or changes, tables that its application may make:\n%s", settings)
	}
	if errors := o.log.all(); len(errors) > 0 {
		t.Errorf("this is no error: %v", errors)
	}
}
