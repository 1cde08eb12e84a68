package cluster

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// TestScheduledEventsThatDoNotRunAreTold: a replica becomes the primary, restarts, and a user enables its events.
func TestScheduledEventsThatDoNotRunAreTold(t *testing.T) {
	t.Parallel()
	reports := func(state replication.State, disabled int) *replication.Status {
		return &replication.Status{State: state, ReplicaSideDisabled: &disabled}
	}
	s := healthy(t, 2)
	status := previousStatus(s.cluster)
	for _, moment := range []struct {
		what    string
		primary *replication.Status
		want    bool
		events  int
	}{
		{"all run", reports(replication.StateWriting, 0), false, 0},
		{"a replica is about to lead", reports(replication.StatePromoting, 2), false, 0},
		{"it leads", reports(replication.StateWriting, 2), true, 1},
		{"it does not answer", nil, true, 0},
		{"it has restarted and not looked yet", &replication.Status{State: replication.StateWriting}, true, 0},
		{"a user has enabled one", reports(replication.StateWriting, 1), true, 0},
		{"and the other one", reports(replication.StateWriting, 0), false, 0},
	} {
		before := status
		status = previousStatus(s.cluster)
		status.Conditions = slices.Clone(before.Conditions)
		describeEvents(&status, moment.primary)
		if got := meta.IsStatusConditionTrue(status.Conditions, conditionEvents); got != moment.want {
			t.Errorf("%s: the condition is %t", moment.what, got)
		}
		if sent := warningEvents(before, status); len(sent) != moment.events {
			t.Errorf("%s: %d events, want %d", moment.what, len(sent), moment.events)
		}
	}
}
