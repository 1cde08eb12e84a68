package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// conditionEvents is present while scheduled events do not run on the primary, because it was a replica when they were created or altered.
// MySQL does not say which of them users had disabled, so the operator enables none.
const conditionEvents = "ScheduledEventsDisabled"

// reasonEvents is its reason.
const reasonEvents = "EventsOfFormerPrimary"

// describeEvents sets or removes the condition. While the primary does not answer, or has not looked, its last report still holds. The
// message does not name events: any account with the privilege EVENT chooses names.
func describeEvents(status *v1.MySQLClusterStatus, primary *replication.Status) {
	switch {
	case primary == nil || primary.State != replication.StateWriting || primary.ReplicaSideDisabled == nil:
	case *primary.ReplicaSideDisabled == 0:
		conditionsOf(status).Remove(conditionEvents)
	default:
		conditionsOf(status).Set(conditionEvents, metav1.ConditionTrue, reasonEvents,
			"scheduled events do not run on "+status.Primary+", because they were created or altered on another primary: list them with "+
				"SELECT * FROM information_schema.EVENTS WHERE STATUS IN ('REPLICA_SIDE_DISABLED', 'SLAVESIDE_DISABLED'), then end this for each with ALTER DEFINER=… EVENT … ENABLE or DISABLE")
	}
}
