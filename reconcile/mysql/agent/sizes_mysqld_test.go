package agent

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/sizing"
	"github.com/mysql-operator/mysql-operator/test/sample"
)

// smallest returns the smallest memory and CPU that a member may have.
func smallest() sizing.Resources {
	return sizing.Resources{Memory: 512 << 20, CPU: 1000, Volume: 1 << 30}
}

// TestMysqldTakesTheSizesItIsGiven: mysqld knows every setting, and rounds none of them.
func TestMysqldTakesTheSizesItIsGiven(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	m := startRealMember(t, ca)
	m.until(t, "mysqld answers", func() bool { return m.agent.Status().State != replication.StateStarting })
	db := m.open(t, "root", "root's", nil, ca)
	for name, want := range sizing.Tune(smallest()) {
		var found, value string
		if err := db.QueryRowContext(t.Context(), "SHOW GLOBAL VARIABLES LIKE '"+name+"'").Scan(&found, &value); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if value != want {
			t.Errorf("%s is %s, want %s", name, value, want)
		}
	}
	// mysqld reserves 256 asynchronous requests for each of its two read threads, its two write threads and one more thread, and one
	// request to test whether it can: 65,536 of fs.aio-max-nr are enough for 51 such members. The kernel's own count covers all processes.
	// A process's memory map shows its reservations.
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", m.pid(t)))
	if err != nil {
		t.Fatal(err)
	}
	if contexts := strings.Count(string(maps), "/[aio]"); contexts > 6 {
		t.Errorf("mysqld has reserved asynchronous requests %d times, want at most 6 times", contexts)
	}
}

// TestMysqldLeavesThePoolBesideTheUsersInstances: MySQL rounds a pool up to whole chunks in all instances. The operator's size needs no
// rounding.
func TestMysqldLeavesThePoolBesideTheUsersInstances(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 2)
	ca := newAuthority(t)
	m := startRealMember(t, ca)
	m.until(t, "mysqld answers", func() bool { return m.agent.Status().State != replication.StateStarting })
	prepared := read(t, m.layout.serverConfig())
	for _, users := range []string{
		"innodb_buffer_pool_instances = 8\n",
		"innodb_buffer_pool_chunk_size = 100M\ninnodb_buffer_pool_instances = 10\n",
		"innodb_buffer_pool_chunk_size = 1G\ninnodb_buffer_pool_instances = 3\n",
	} {
		given := sizing.Resources{Memory: 2200 << 20}
		tuned := sizing.TuneWithConfig(given, users)
		write(t, m.layout.serverConfig(), prepared+tuned.Config()+users)
		m.crashes(t)
		m.until(t, "mysqld answers", func() bool { return m.agent.Status().State != replication.StateStarting })
		var size string
		if err := m.open(t, "root", "root's", nil, ca).QueryRowContext(t.Context(), "SELECT @@innodb_buffer_pool_size").Scan(&size); err != nil {
			t.Fatal(err)
		}
		if want := tuned["innodb_buffer_pool_size"]; size != want {
			t.Errorf("%q: the pool has %s bytes, want %s", users, size, want)
		}
		if told := sizing.Overcommitted(given.Memory, sizing.Settings{"innodb_buffer_pool_size": size}); told != "" {
			t.Errorf("%q: %s", users, told)
		}
	}
}
