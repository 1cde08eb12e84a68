package cluster

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// TestPreparedTransactionsAreTold: the primary has some, restarts, and they are gone. Another number of them causes no other event.
func TestPreparedTransactionsAreTold(t *testing.T) {
	t.Parallel()
	s := healthy(t, 2)
	status := previousStatus(s.cluster)
	writing := func(left *int) *replication.Status {
		return &replication.Status{State: replication.StateWriting, Transactions: replication.Transactions{Prepared: 3, Left: left}}
	}
	for _, moment := range []struct {
		name    string
		primary *replication.Status
		want    bool
		events  int
	}{
		{"it is not known", writing(nil), false, 0},
		{"none", writing(new(0)), false, 0},
		{"two are old", writing(new(2)), true, 1},
		{"three are", writing(new(3)), true, 0},
		{"the primary does not answer", nil, true, 0},
		{"it restarts", &replication.Status{State: replication.StateStarting}, true, 0},
		{"its agent does not know yet", writing(nil), true, 0},
		{"they are gone", writing(new(0)), false, 0},
	} {
		before := status
		status = previousStatus(s.cluster)
		status.Conditions = slices.Clone(before.Conditions)
		describePrepared(&status, moment.primary)
		if got := meta.IsStatusConditionTrue(status.Conditions, conditionPrepared); got != moment.want {
			t.Errorf("%s: %t", moment.name, got)
		}
		if events := warningEvents(before, status); len(events) != moment.events {
			t.Errorf("%s: events %+v, want %d", moment.name, events, moment.events)
		}
	}
}
