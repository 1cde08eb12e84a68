package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// conditionPrepared is present while the primary has prepared transactions that no client ends. They came with a backup, or their
// coordinator is gone.
const conditionPrepared = "PreparedTransactions"

// reasonPrepared is its reason.
const reasonPrepared = "TransactionsLeftPrepared"

// describePrepared sets or removes the condition. While the primary does not answer, or does not know yet, its last report still holds. A
// metric reports how many there are; the condition only reports that there are some.
func describePrepared(status *v1.MySQLClusterStatus, primary *replication.Status) {
	switch {
	case primary == nil || primary.State != replication.StateWriting || primary.Transactions.Left == nil:
	case *primary.Transactions.Left == 0:
		conditionsOf(status).Remove(conditionPrepared)
	default:
		conditionsOf(status).Set(conditionPrepared, metav1.ConditionTrue, reasonPrepared,
			"XA transactions on "+status.Primary+" have been prepared for more than five minutes, and hold the locks of their rows: list them with XA RECOVER, "+
				"then end each of them with XA COMMIT or XA ROLLBACK")
	}
}
