package agent

import (
	"context"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// TestABystanderIsNotTheOperator: the agent continues to send alarms to the operator, about all that the operator has not read.
func TestABystanderIsNotTheOperator(t *testing.T) {
	t.Parallel()
	s := serve(t)
	target := Target{Address: s.address, Host: memberHost}
	operator := NewClient(s.ca.operator(), 5*time.Second).WithAlarms(func() string { return AlarmHost("shop", "db") + ":8443" })
	looks := func(as interface {
		Status(ctx context.Context, target Target) (replication.Status, error)
	}) {
		for range 2 { // the agent has finished with the first when it answers the second over the same connection
			if status, err := as.Status(t.Context(), target); err != nil || status.Origin != replication.OriginMember {
				t.Fatalf("the member reports %+v: %v", status, err)
			}
		}
	}
	looks(operator)
	news := replication.Status{State: replication.StateBroken}.News()
	isDue := func() bool {
		next, _, isDue := s.agent.alarms.due(time.Now(), news)
		return isDue && next.to.Host == AlarmHost("shop", "db")
	}
	if !isDue() {
		t.Fatal("no alarm is due for the operator")
	}
	bystander := NewBystander(s.ca.operator(), 5*time.Second)
	defer bystander.Close()
	looks(bystander)
	if !isDue() {
		t.Error("no alarm is due any more")
	}
}
