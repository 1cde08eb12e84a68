package cluster

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

const (
	// conditionPrepared is present while the primary has prepared transactions that no client ends. They came with a backup, or their
	// coordinator is gone.
	conditionPrepared = "PreparedTransactions"
	reasonPrepared    = "TransactionsLeftPrepared"

	// conditionEvents is present while scheduled events do not run on the primary, because it was a replica when they were created or altered.
	// MySQL does not say which of them users had disabled. So the primary enables only those that ran on the former one.
	conditionEvents = "ScheduledEventsDisabled"
	reasonEvents    = "EventsOfFormerPrimary"
)

// describeLeft sets or removes the conditions about what the primary has and only a user can end. Metrics report how many there are. The
// messages do not name events: any account with the privilege EVENT chooses names.
func describeLeft(status *v1.MySQLClusterStatus, primary *replication.Status) {
	if primary == nil || primary.State != replication.StateWriting {
		return
	}
	describeCount(status, primary.Transactions.Left, conditionPrepared, reasonPrepared,
		"XA transactions on %s have been prepared for more than five minutes, and hold the locks of their rows: list them with XA RECOVER, "+
			"then end each of them with XA COMMIT or XA ROLLBACK")
	describeCount(status, primary.ReplicaSideDisabled, conditionEvents, reasonEvents,
		"scheduled events do not run on %s, because they were created or altered on another primary: list them with "+
			"SELECT * FROM information_schema.EVENTS WHERE STATUS IN ('REPLICA_SIDE_DISABLED', 'SLAVESIDE_DISABLED'), then end this for each with ALTER DEFINER=… EVENT … ENABLE or DISABLE")
}

// describeCount sets or removes a condition whose message names the primary. While the primary does not know the count, its last report
// still holds.
func describeCount(status *v1.MySQLClusterStatus, count *int, condition, reason, message string) {
	switch {
	case count == nil:
	case *count == 0:
		conditionsOf(status).Remove(condition)
	default:
		conditionsOf(status).Set(condition, metav1.ConditionTrue, reason, fmt.Sprintf(message, status.Primary))
	}
}
