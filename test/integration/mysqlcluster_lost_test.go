package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// TestMySQLClusterDoesWithoutALostReplica: one of two replicas does not answer, and the primary does not hear it. The primary locks it out,
// and it leaves the record, which promises the same as before. When the replica is back, it joins again.
func TestMySQLClusterDoesWithoutALostReplica(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(t, nil)
	s.apply(t, "db", "secret: root, replicas: 3")
	s.settled(t, "db")
	recorded := func(inSync ...string) {
		t.Helper()
		soon(t, func(ctx context.Context) string {
			found, err := s.cluster(ctx, "db")
			if err != nil {
				return err.Error()
			}
			if found.Status.RequiredAcks != 1 {
				t.Errorf("the record promises %d", found.Status.RequiredAcks)
			}
			if !slices.Equal(found.Status.InSync, inSync) || len(found.Status.Joining) > 0 {
				return fmt.Sprintf("in sync are %v, joining %v, want %v", found.Status.InSync, found.Status.Joining, inSync)
			}
			return ""
		})
	}
	recorded("db-0", "db-1", "db-2")
	began := time.Now()
	s.node.cutOff("db-2", true)
	<-time.After(replication.UnheardAfter)
	recorded("db-0", "db-1")
	if took := time.Since(began); took > replication.LostAfter {
		t.Errorf("it left after %s", took)
	}
	s.node.cutOff("db-2", false)
	recorded("db-0", "db-1", "db-2")
}
