package agent

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/test/sample"
)

// TestATornRelayLogMysqld: the machine of a replica fails, and the end of its relay log, which was not applied yet, is not on the disk.
// mysqld removes what is torn when it starts, and the receiver gets it again. So no user has to rebuild the replica.
func TestATornRelayLogMysqld(t *testing.T) {
	t.Parallel()
	const lost = 2500 // less than a transaction
	chosen := sample.New(t)
	for number, one := range []struct {
		story  string
		damage func(content []byte) []byte
	}{
		{"the end is missing", func(content []byte) []byte { return content[:len(content)-lost] }},
		{"the end is zeros", func(content []byte) []byte {
			clear(content[len(content)-lost:])
			return content
		}},
		{"the file has grown, and has only zeros there", func(content []byte) []byte { return append(content, make([]byte, 4096)...) }},
		{"a page before the last one is zeros", func(content []byte) []byte {
			last := len(content) &^ 4095
			clear(content[last-4096 : last])
			return content
		}},
	} {
		if chosen.Takes(number) {
			t.Run(one.story, func(t *testing.T) {
				t.Parallel()
				replicaWithATornRelayLog(t, one.damage)
			})
		}
	}
}

func replicaWithATornRelayLog(t *testing.T, damage func([]byte) []byte) {
	t.Helper()
	ca := newAuthority(t)
	leader, replica, db := startAcknowledging(t, ca)
	execute(t, replica.open(t, "root", "root's", nil, ca), "STOP REPLICA SQL_THREAD")
	for range 8 {
		execute(t, db, "INSERT INTO shop.orders (filler) VALUES (REPEAT('x', 3000))")
	}
	order := *replica.agent.Status().Last
	replica.stop(t)
	damageLast(t, replica.layout, damage)
	replica.start(t)
	replica.obeys(t, order)
	replica.until(t, "the replica has applied everything", func() bool {
		status := replica.agent.Status()
		return status.State == replication.StateReplicating && status.Executed.Contains(leader.agent.Status().Executed)
	})
}

// damageLast changes the relay log that has the latest transactions.
func damageLast(t *testing.T, layout Layout, damage func([]byte) []byte) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(layout.DataDir(), "relay.[0-9]*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the relay logs are %v: %v", files, err)
	}
	last := slices.Max(files)
	content, err := os.ReadFile(last)
	if err != nil {
		t.Fatal(err)
	}
	if len(content) < 20_000 {
		t.Fatalf("the last relay log has only %d bytes", len(content))
	}
	if err := os.WriteFile(last, damage(content), 0o640); err != nil {
		t.Fatal(err)
	}
}
