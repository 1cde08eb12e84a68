package backup

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// describeTables says of a complete backup which tables it has without their rows, by what the cluster says of its tables now. Its primary
// counts them once an hour.
func describeTables(status *v1.MySQLBackupInstanceStatus, seen sight) {
	if seen.cluster == nil {
		return
	}
	message := ""
	if told := meta.FindStatusCondition(seen.cluster.Status.Conditions, v1.ConditionNonTransactionalTables); told != nil {
		message = "the rows of these are not in the backup: " + told.Message
	}
	if lacks := lackedBy(seen.cluster.Status.Members, status.Source); lacks != "" {
		if message != "" {
			message += "; and "
		}
		message += fmt.Sprintf("the backup was copied from %s, which lacks rows of %s", status.Source, lacks)
	}
	if message == "" {
		return
	}
	set(status, metav1.Condition{Type: v1.ConditionNonTransactionalTables, Status: metav1.ConditionTrue, Reason: reasonRowsMissing, Message: cleanMessage(message)}, seen.now)
}

// lackedBy names the tables that a member lacks rows of.
func lackedBy(members []v1.Member, name string) string {
	for _, member := range members {
		if member.Name == name {
			return member.LacksRowsOf
		}
	}
	return ""
}

// tellTables tells of a backup that lacks rows.
func tellTables(before, after v1.MySQLBackupInstanceStatus) []reconcile.Event {
	was, is := meta.FindStatusCondition(before.Conditions, v1.ConditionNonTransactionalTables), meta.FindStatusCondition(after.Conditions, v1.ConditionNonTransactionalTables)
	if is == nil || was != nil {
		return nil
	}
	return []reconcile.Event{{Type: reconcile.Warning, Reason: is.Reason, Action: "Backup", Note: is.Message}}
}
