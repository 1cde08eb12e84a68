package cluster

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// TestWhatUsersMustEndIsTold: a primary has transactions that are left prepared, or scheduled events that do not run. It restarts, and
// users end them. Another number of them causes no other event.
func TestWhatUsersMustEndIsTold(t *testing.T) {
	t.Parallel()
	for condition, count := range map[string]func(*replication.Status, *int){
		conditionPrepared: func(s *replication.Status, left *int) {
			s.Transactions = replication.Transactions{Prepared: 3, Left: left}
		},
		conditionEvents: func(s *replication.Status, disabled *int) { s.ReplicaSideDisabled = disabled },
	} {
		reports := func(state replication.State, left *int) *replication.Status {
			reported := &replication.Status{State: state}
			count(reported, left)
			return reported
		}
		s := healthy(t, 2)
		status := previousStatus(s.cluster)
		for _, moment := range []struct {
			what    string
			primary *replication.Status
			want    bool
			events  int
		}{
			{"it is not known", reports(replication.StateWriting, nil), false, 0},
			{"none", reports(replication.StateWriting, new(0)), false, 0},
			{"a replica is about to lead", reports(replication.StatePromoting, new(2)), false, 0},
			{"it leads with two", reports(replication.StateWriting, new(2)), true, 1},
			{"there are three", reports(replication.StateWriting, new(3)), true, 0},
			{"it does not answer", nil, true, 0},
			{"it restarts", reports(replication.StateStarting, nil), true, 0},
			{"it has not looked yet", reports(replication.StateWriting, nil), true, 0},
			{"a user has ended two", reports(replication.StateWriting, new(1)), true, 0},
			{"and the other one", reports(replication.StateWriting, new(0)), false, 0},
		} {
			before := status
			status = previousStatus(s.cluster)
			status.Conditions = slices.Clone(before.Conditions)
			describeLeft(&status, moment.primary)
			if got := meta.IsStatusConditionTrue(status.Conditions, condition); got != moment.want {
				t.Errorf("%s: %s: the condition is %t", condition, moment.what, got)
			}
			if sent := warningEvents(before, status); len(sent) != moment.events {
				t.Errorf("%s: %s: %d events, want %d", condition, moment.what, len(sent), moment.events)
			}
		}
	}
}
