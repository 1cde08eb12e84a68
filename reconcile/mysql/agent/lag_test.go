package agent

import (
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// TestAReplicaReportsItsLargestLag of the last five minutes, in coarse steps.
func TestAReplicaReportsItsLargestLag(t *testing.T) {
	t.Parallel()
	member, observed := newAgent(t, newLayout(t), memberState()), someObservation()
	for _, seconds := range []int64{12, 1} {
		observed.Server.Channel.LagSeconds = &seconds
		local := member.localView(observed)
		member.publish(observed, local, replication.NextStep(local), followed{})
		if status := member.Status(); *status.LagSeconds != seconds || status.BehindLately != 10 {
			t.Errorf("%d s behind: the report has %d s, and lately %d", seconds, *status.LagSeconds, status.BehindLately)
		}
	}
	member.ends++
	member.followStart()
	if lately := member.looks.lag.Lately(time.Now()); lately != 0 {
		t.Errorf("mysqld has ended, and the agent remembers a lag of %d s", lately)
	}
}
