package agent

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/sizing"
)

// smallest is the least that a member may have.
func smallest() sizing.Given {
	return sizing.Given{Memory: 512 << 20, CPU: 1000, Volume: 1 << 30}
}

// TestMysqldTakesTheSizesItIsGiven: it knows every setting, and rounds none of them.
func TestMysqldTakesTheSizesItIsGiven(t *testing.T) { //nolint:paralleltest // its time limits are mysqld's
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
	// For its two threads for reading, its two for writing and one more it has reserved 256 each, and one request to try whether it can:
	// 65,536 of fs.aio-max-nr are enough for 51 such members. The kernel's own count is of all processes; what one has reserved is in its
	// memory map.
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", m.mysqld.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	if contexts := strings.Count(string(maps), "/[aio]"); contexts > 6 {
		t.Errorf("it has reserved asynchronous requests %d times, want 6 times at most", contexts)
	}
}

// TestMysqldLeavesThePoolBesideTheUsersInstances: MySQL rounds a pool up to whole chunks in all instances.
func TestMysqldLeavesThePoolBesideTheUsersInstances(t *testing.T) { //nolint:paralleltest // its time limits are mysqld's
	ca := newAuthority(t)
	m := startRealMember(t, ca)
	m.until(t, "mysqld answers", func() bool { return m.agent.Status().State != replication.StateStarting })
	prepared := read(t, m.layout.serverConfig())
	for _, users := range []string{
		"innodb_buffer_pool_instances = 8\n",
		"innodb_buffer_pool_chunk_size = 100M\ninnodb_buffer_pool_instances = 10\n",
		"innodb_buffer_pool_chunk_size = 1G\ninnodb_buffer_pool_instances = 3\n",
	} {
		given := sizing.Given{Memory: 2200 << 20}
		tuned := sizing.TuneBeside(given, users)
		write(t, m.layout.serverConfig(), prepared+tuned.Config()+users)
		m.restarts(t)
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
