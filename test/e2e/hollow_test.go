package e2e

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/test/sample"
)

// hollowLimit is how long it takes at most until both members have the same GTIDs again: the operator looks every ten seconds at a cluster
// that is as it should be.
const hollowLimit = 30 * time.Second

// TestHollowTransactions: a monitoring account flushes on the replica, and a MEMORY table is used there after a restart. The replica serves
// on, and the primary gets the same GTIDs.
func TestHollowTransactions(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 2)
	p := newPlace(t)
	p.start(2)
	primary, replica := p.open(p.cluster, p.password), p.open(p.cluster+"-read", p.password)
	p.exec(primary, "CREATE DATABASE shop", "CREATE TABLE shop.cache (id INT PRIMARY KEY) ENGINE=MEMORY", "INSERT INTO shop.cache VALUES (1)")
	p.isSame(primary, replica)

	t.Log("a user flushes on the replica")
	before, err := value(t.Context(), replica, "SELECT @@gtid_executed")
	if err != nil {
		t.Fatal(err)
	}
	p.exec(replica, "FLUSH STATUS", "FLUSH TABLES")
	if after, err := value(t.Context(), replica, "SELECT @@gtid_executed"); err != nil || after == before {
		t.Errorf("it made no transaction, so that this test shows nothing: %s (%v)", after, err)
	}
	p.isSame(primary, replica)

	t.Log("the replica restarts, and a MEMORY table is written to")
	former := p.read("pods", p.cluster+"-1", "{.metadata.uid}")
	p.deletePod(p.cluster + "-1")
	p.wait("the replica's new Pod to be ready", readyLimit, func(ctx context.Context) (bool, string) {
		const path = `{.metadata.uid} {.status.conditions[?(@.type=="Ready")].status}`
		seen, err := p.objects.Field(ctx, core("pods"), p.namespace, p.cluster+"-1", path)
		return err == nil && !strings.HasPrefix(seen, former) && strings.HasSuffix(seen, " True"), seen
	})
	p.settled(2)
	p.exec(primary, "INSERT INTO shop.cache VALUES (2)")
	p.waitValue(replica, "SELECT COUNT(*) FROM shop.cache WHERE id = 2", "1", hollowLimit)
	p.isSame(primary, replica)
	p.hasEvent("HollowTransactionsMatched", "")
}

// isSame waits until two members have the same transactions. Meanwhile the replica has to serve.
func (p *place) isSame(primary, replica *sql.DB) {
	p.t.Helper()
	p.wait("both members to have the same transactions", hollowLimit, func(ctx context.Context) (bool, string) {
		const executed = "SELECT @@gtid_executed"
		one, err := value(ctx, primary, executed)
		if err != nil {
			return false, err.Error()
		}
		other, err := value(ctx, replica, executed)
		if err != nil {
			return false, err.Error()
		}
		if state := p.field(ctx, "{.status.members[1].state}"); state != "Replicating" {
			p.t.Fatalf("the replica is %s", state)
		}
		return one == other, one + " and " + other
	})
}
