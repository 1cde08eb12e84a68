package cluster

import (
	"slices"
	"testing"

	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// TestLeastAcks: a cluster that grows, or that is restored, must not stop until its new members have copied all data.
func TestLeastAcks(t *testing.T) {
	t.Parallel()
	had := func(least int32, inSync int) v1.MySQLClusterStatus {
		return v1.MySQLClusterStatus{Phase: v1.PhaseReady, LeastAcks: least, InSync: slices.Repeat([]string{"db-0"}, inSync)}
	}
	for name, test := range map[string]struct {
		asked     v1.WhenReplicasLost
		members   int
		before    v1.MySQLClusterStatus
		want      int
		continues bool
	}{
		"a new cluster of three, or a restored one": {"", 3, had(0, 1), 0, true},
		"a replica is in sync":                      {"", 3, had(0, 2), 0, true},
		"all are":                                   {"", 3, had(0, 3), 1, false},
		"a replica is lost":                         {"", 3, had(1, 2), 1, false},
		"all replicas are lost":                     {"", 3, had(1, 1), 1, false},
		"a new cluster of two":                      {"", 2, had(0, 2), 0, true},
		"two members become three":                  {"", 3, had(0, 2), 0, true},
		"three members become five":                 {"", 5, had(1, 3), 1, true},
		"the new ones are in sync":                  {"", 5, had(1, 5), 2, false},
		"five members become three":                 {"", 3, had(2, 3), 1, false},
		"three members become two":                  {"", 2, had(1, 3), 0, true},
		"three that may continue":                   {v1.Continue, 3, had(1, 3), 0, true},
		"a user asks for it":                        {v1.Block, 5, had(0, 1), 2, false},
		"also for two":                              {v1.Block, 2, had(0, 1), 1, false},
		"also for one":                              {v1.Block, 1, had(0, 1), 0, true},
	} {
		s := healthy(t, test.members).before(test.before)
		s.cluster.Spec.Durability.WhenReplicasLost = test.asked
		if got := durabilityOf(s.cluster); got.Least != test.want || got.Continue != test.continues {
			t.Errorf("%s: commits wait for %d and continue: %t, want %d, %t", name, got.Least, got.Continue, test.want, test.continues)
		}
	}
	s := promising(healthy(t, 3).before(had(0, 2)), 1)
	s.cluster.Spec.Durability.WhenReplicasLost = ""
	if got := s.report(nil, nil).status().LeastAcks; got != 1 {
		t.Errorf("all members are in sync now, and the status says %d", got)
	}
}
