package mysqld

import (
	"testing"

	"github.com/mysql-operator/mysql-operator/test/rootfs"
)

// TestCopiesAreLimitedMysqld: mysqld gets the limit before it reads anything from its donor. Only long copies show how well mysqld keeps to
// the limit: each of its threads may use all of the limit until mysqld has measured their total speed (MySQL source,
// Client_Stat::task_target).
func TestCopiesAreLimitedMysqld(t *testing.T) {
	t.Parallel()
	certificates, b := writeCertificates(t), bootstrap("root's")
	server, nobody := newMysqld(t, certificates), &mysqld{port: rootfs.Port(t)}
	agent := server.start(t, sqlOf(t, b), b.Agent, append(withSemiSync(), "--plugin-load-add=mysql_clone.so")...)
	for limit, want := range map[int64]int{16 << 20: 16, 1: 1, 3<<20 - 1: 2} {
		if err := agent.Clone(t.Context(), sourceAt(nobody, certificates, b.Clone), limit); err == nil {
			t.Error("the copy of a missing donor succeeds")
		}
		var got int
		if err := agent.db.QueryRowContext(t.Context(), "SELECT @@GLOBAL.clone_max_data_bandwidth").Scan(&got); err != nil || got != want {
			t.Errorf("with a limit of %d bytes mysqld reads %d MiB a second, %v; want %d", limit, got, err, want)
		}
	}
}
