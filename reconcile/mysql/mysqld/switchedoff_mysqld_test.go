package mysqld

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// TestAcksThatAreSwitchedOffAreCountedMysqld: also if commits wait again at the next look. What the agent does while commits wait does not
// count.
func TestAcksThatAreSwitchedOffAreCountedMysqld(t *testing.T) {
	t.Parallel()
	server, b := newMysqld(t, writeCertificates(t)), bootstrap("root's")
	root := server.start(t, sqlOf(t, b), Account{User: "root", Password: "root's"}, withSemiSync()...)
	agent := server.connect(t, b.Agent)
	const (
		prefix = "SET GLOBAL rpl_semi_sync_source_"
		off    = prefix + "enabled = OFF"
		on     = prefix + "enabled = ON"
	)
	count := int64(0)
	counts := func(want int64, when string, statements ...string) {
		t.Helper()
		if err := root.exec(t.Context(), when, statements...); err != nil {
			t.Fatal(err)
		}
		seen, err := agent.Observe(t.Context())
		if err != nil || seen.AcksSwitchedOff-count != want || seen.Server.SourceAcks != 1 {
			t.Errorf("%s: counted %d times, with %d acknowledgements in force: %v", when, seen.AcksSwitchedOff-count, seen.Server.SourceAcks, err)
		}
		count = seen.AcksSwitchedOff
	}
	enforce := func(acks int) {
		t.Helper()
		if err := agent.EnforceAcks(t.Context(), acks); err != nil {
			t.Fatal(err)
		}
	}
	enforce(1)
	counts(0, "the agent enforces them")
	enforce(2)
	enforce(1)
	counts(0, "the agent changes how many")
	counts(1, "a user switches them off, and on", off, "CREATE DATABASE shop", on)
	counts(1, "MySQL switches them off, and on", prefix+"timeout = 1", "CREATE DATABASE bar", prefix+"timeout = "+SemiSyncTimeout, prefix+"wait_no_replica = OFF", prefix+"wait_no_replica = ON")
	if err := agent.StopEnforcingAcks(t.Context()); err != nil {
		t.Fatal(err)
	}
	enforce(1)
	counts(1, "the agent stops enforcing them, and enforces them again")

	bounded, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := root.exec(bounded, "create", "CREATE DATABASE inn"); err == nil {
		t.Error("a commit does not wait")
	}
	var waits int64
	row := root.db.QueryRowContext(t.Context(), "SELECT ID FROM performance_schema.processlist WHERE STATE = 'Waiting for semi-sync ACK from replica'")
	if err := row.Scan(&waits); err != nil {
		t.Fatal(err)
	}
	counts(0, "a session is killed whose commit waits", fmt.Sprintf("KILL %d", waits))
	before := count
	counts(-before, "FLUSH STATUS", "FLUSH NO_WRITE_TO_BINLOG STATUS")
	counts(1, "a user switches them off, and on, after FLUSH STATUS", off, on)
}
