package cluster

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// TestHowLongAPassWaitsForAMember: for one that has always answered, longer than for one that did not. A takeover waits least for the
// member that it replaces.
func TestHowLongAPassWaitsForAMember(t *testing.T) {
	t.Parallel()
	now := time.Now()
	r := &reconciler{memory: newMemory(), now: func() time.Time { return now }}
	cluster := aCluster(3)
	cluster.Status.Primary = "db-0"
	for _, member := range []string{"db-0", "db-1"} {
		r.memory.failures.Waited(keyOf(cluster), unheard(member), now)
	}
	waits := func(what, member string, want time.Duration) {
		t.Helper()
		if got := r.limits(cluster, now)(member); got != want {
			t.Errorf("%s: a pass waits %s for %s, want %s", what, got, member, want)
		}
	}
	waits("at rest", "db-0", time.Second)
	waits("at rest", "db-1", time.Second)
	waits("at rest", "db-2", 2*time.Second)
	cluster.Status.Takeovers = []v1.Takeover{{From: "db-0", StartTime: metav1.NewTime(now)}}
	waits("during a takeover", "db-0", 250*time.Millisecond)
	waits("during a takeover", "db-1", time.Second)
	waits("during a takeover", "db-2", 2*time.Second)
}

// TestAPrimaryThatMissesALookIsSoonAskedAgain: one request may be lost, and a takeover waits for the second.
func TestAPrimaryThatMissesALookIsSoonAskedAgain(t *testing.T) {
	t.Parallel()
	_, found := atRest(t)
	found.cluster.Status.Primary = found.seen.members[0].Name
	found.seen.members[0].Status, found.seen.members[0].Pod = nil, true
	if due := found.prospect(found.cluster.Status).due; due != missedEvery {
		t.Errorf("the next look is due in %s", due)
	}
	found.seen.members[0].UnheardFor = time.Minute
	if due := found.prospect(found.cluster.Status).due; due == missedEvery {
		t.Error("it is asked that often without end")
	}
}
