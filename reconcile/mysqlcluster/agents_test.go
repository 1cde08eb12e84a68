package mysqlcluster

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mysql-operator/mysql-operator/reconcile/replication"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// TestStatusTellsWhichAgentsAreOfAnotherRelease decides anew on what was seen: a member whose agent may be misunderstood is named in a
// condition, and the cluster goes on.
func TestStatusTellsWhichAgentsAreOfAnotherRelease(t *testing.T) {
	t.Parallel()
	speaking := func(second int) *scene {
		s := healthy(t, 2)
		s.record.Revision = 1
		for ordinal, protocol := range []int{replication.Protocol, second} {
			s.member(ordinal, true, func(status *replication.Status) {
				status.Protocol, status.Held, status.Origin = protocol, s.record, replication.OriginMember
			})
		}
		s.cluster.Status.Primary, s.cluster.Status.Epoch, s.cluster.Status.Revision = s.record.Primary, s.record.Epoch, s.record.Revision
		s.cluster.Status.InSync, s.cluster.Status.RequiredAcks = s.record.InSync, int32(s.record.RequiredAcks)
		return s
	}
	for word, protocol := range map[string]int{"older": 0, "newer": replication.Protocol + 1} {
		s := speaking(protocol)
		decision := replication.Decide(view(s.cluster, s.seen))
		status := s.report(decision.Note, nil).status()
		if got := conditionOf(t, status, v1.ConditionReady); got != "False "+string(replication.ReasonAgentRelease) {
			t.Errorf("%s: Ready is %s", word, got)
		}
		if ready := meta.FindStatusCondition(status.Conditions, v1.ConditionReady); !strings.Contains(ready.Message, word) || !strings.Contains(ready.Message, "db-1") {
			t.Errorf("%s: Ready says %q", word, ready.Message)
		}
		if len(decision.Assignments) != 2 {
			t.Errorf("%s: the members are not told their roles: %v", word, decision.Assignments)
		}
	}
	s := speaking(replication.Protocol)
	if decision := replication.Decide(view(s.cluster, s.seen)); decision.Note != nil {
		t.Errorf("all speak the same, and it notes %+v", decision.Note)
	}
}
