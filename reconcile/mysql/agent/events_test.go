package agent

import (
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// TestAMemberKeepsTheEventsOfItsPrimary until it follows another one, also while none leads and while it leads itself.
func TestAMemberKeepsTheEventsOfItsPrimary(t *testing.T) {
	t.Parallel()
	kept := state{Data: replication.OriginMember}
	for _, step := range []struct {
		story   string
		role    replication.Role
		primary string
		events  []replication.ScheduledEvent
		want    int
	}{
		{"it follows a primary", replication.RoleReplica, "db-0", make([]replication.ScheduledEvent, 2), 2},
		{"that one is replaced", replication.RoleReplica, "", nil, 2},
		{"this member leads", replication.RolePrimary, "db-1", nil, 2},
		{"it is replaced", replication.RoleReplica, "", nil, 2},
		{"it continues as the primary", replication.RolePrimary, "db-1", nil, 2},
		{"it follows the next primary", replication.RoleReplica, "db-2", make([]replication.ScheduledEvent, 1), 1},
		{"events are dropped", replication.RoleReplica, "db-2", nil, 0},
	} {
		kept = kept.accepting(replication.Assignment{Role: step.role, Record: replication.Record{Primary: step.primary}, Events: step.events})
		if len(kept.Events) != step.want {
			t.Errorf("%s: it keeps %d events, want %d", step.story, len(kept.Events), step.want)
		}
	}
}
