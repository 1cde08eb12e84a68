package replication

import (
	"testing"
	"time"
)

// TestForHowLongAPrimaryHasFailed: since it was last heard.
func TestForHowLongAPrimaryHasFailed(t *testing.T) {
	t.Parallel()
	late := func(_ *testing.T, s *Status) { s.UnansweredFor = 3 * time.Second }
	for what, test := range map[string]struct {
		story *story
		want  time.Duration
	}{
		"it works":                            {healthy(t, 3, 1), 0},
		"nothing answers for it":              {vanished(t, 4), 4 * time.Second},
		"the replicas hear it":                {vanished(t, 0), 0},
		"mysqld does not run":                 {downPrimary(t, 3, 1), usual().NotReady},
		"mysqld hangs":                        {healthy(t, 3, 1).hears(0, StateWriting, enforces(1, 2), late), 3 * time.Second},
		"mysqld hangs, a replica heard later": {hungPrimary(t, 2, time.Second).hears(0, StateWriting, enforces(1, 2), late), time.Second},
		"one replica hears it":                {vanished(t, 4).hears(1, StateReplicating, acking), 0},
		"replicas are cut off for longer": {cutOff(t, 3, 1, 0, 2).with(func(c *Cluster) {
			c.Members[1].Status.SourceSilentFor, c.Members[2].Status.SourceSilentFor = 9*time.Second, 8*time.Second
		}), 8 * time.Second},
		"its commits wait": {healthy(t, 3, 1).hears(0, StateWriting, enforces(1, 0), shortFor(5)), 5 * time.Second},
		"there is none":    {awaiting(t, 3, 1, time.Second), 0},
	} {
		if got := test.story.c.FailedFor(); got != test.want {
			t.Errorf("%s: it has failed for %s, want %s", what, got, test.want)
		}
	}
}
