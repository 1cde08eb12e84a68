package backup

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// describeTables reports which tables a complete backup has without their rows. It uses what the cluster's status says of its tables now;
// the primary counts them once an hour.
func describeTables(status *v1.MySQLBackupInstanceStatus, seen observed) {
	if seen.cluster == nil {
		return
	}
	message := ""
	if told := meta.FindStatusCondition(seen.cluster.Status.Conditions, v1.ConditionNonTransactionalTables); told != nil {
		message = "the backup does not contain the rows of these tables: " + told.Message
	}
	if lacks := lackedBy(seen.cluster.Status.Members, status.Source); lacks != "" {
		if message != "" {
			message += "; and "
		}
		message += fmt.Sprintf("the backup was copied from %s, which is missing rows of %s", status.Source, lacks)
	}
	if message == "" {
		return
	}
	conditionsOf(status, seen.now).Set(v1.ConditionNonTransactionalTables, metav1.ConditionTrue, reasonRowsMissing, message)
}

// lackedBy names the tables of which a member is missing rows.
func lackedBy(members []v1.Member, name string) string {
	for _, member := range members {
		if member.Name == name {
			return member.LacksRowsOf
		}
	}
	return ""
}

// tellTables returns the event for a backup that is missing rows.
func tellTables(before, after v1.MySQLBackupInstanceStatus) []reconcile.Event {
	was, is := meta.FindStatusCondition(before.Conditions, v1.ConditionNonTransactionalTables), meta.FindStatusCondition(after.Conditions, v1.ConditionNonTransactionalTables)
	if is == nil || was != nil {
		return nil
	}
	return []reconcile.Event{{Type: reconcile.Warning, Reason: is.Reason, Action: "Backup", Note: is.Message}}
}
