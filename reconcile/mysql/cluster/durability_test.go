package cluster

import (
	"testing"

	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// TestLeastAcks: a cluster that grows past two members must not stop until its new members have copied all data.
func TestLeastAcks(t *testing.T) {
	t.Parallel()
	creating, ready := v1.MySQLClusterStatus{Phase: v1.PhaseCreating}, v1.MySQLClusterStatus{Phase: v1.PhaseReady}
	acking := func(least, required int32) v1.MySQLClusterStatus {
		status := ready
		status.LeastAcks, status.RequiredAcks = least, required
		return status
	}
	for name, test := range map[string]struct {
		asked   v1.WhenReplicasLost
		members int
		before  v1.MySQLClusterStatus
		want    int
	}{
		"a new cluster of three":                   {"", 3, creating, 1},
		"a new cluster of two":                     {"", 2, creating, 0},
		"a new cluster of three that may continue": {v1.Continue, 3, creating, 0},
		"one member becomes three":                 {"", 3, acking(0, 0), 0},
		"the first replica is there":               {"", 3, acking(0, 1), 1},
		"all replicas are lost":                    {"", 3, acking(1, 0), 1},
		"three members become five":                {"", 5, acking(1, 1), 1},
		"the new ones are there":                   {"", 5, acking(1, 2), 2},
		"five members become three":                {"", 3, acking(2, 2), 1},
		"three members become two":                 {"", 2, acking(1, 1), 0},
		"a user asks for it":                       {v1.Block, 5, acking(0, 0), 2},
	} {
		s := healthy(t, test.members).before(test.before)
		s.cluster.Spec.Durability.WhenReplicasLost = test.asked
		if got := leastAcks(s.cluster); got != test.want {
			t.Errorf("%s: commits wait for %d, want %d", name, got, test.want)
		}
	}
	s := promising(healthy(t, 3).before(ready), 1)
	s.cluster.Spec.Durability.WhenReplicasLost = ""
	if got := s.report(nil, nil).status().LeastAcks; got != 1 {
		t.Errorf("the status says %d", got)
	}
}
