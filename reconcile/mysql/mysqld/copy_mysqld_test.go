package mysqld

import "testing"

// TestCopiesAreLimitedMysqld: mysqld gets the limit before it reads anything of its donor. How well it keeps to it only long copies show:
// each of its threads may have all of the limit until it has seen how fast they are together (MySQL source, Client_Stat::task_target).
func TestCopiesAreLimitedMysqld(t *testing.T) {
	t.Parallel()
	certificates, b := writeCertificates(t), bootstrap("root's")
	server, nobody := newMysqld(t, certificates), &mysqld{port: freePort(t)}
	agent := server.start(t, sqlOf(t, b), b.Agent, append(withSemiSync(), "--plugin-load-add=mysql_clone.so")...)
	for limit, want := range map[int64]int{16 << 20: 16, 1: 1, 3<<20 - 1: 2} {
		if err := agent.Clone(t.Context(), sourceAt(nobody, certificates, b.Clone), limit); err == nil {
			t.Error("it copies somebody who is not there")
		}
		var got int
		if err := agent.db.QueryRowContext(t.Context(), "SELECT @@GLOBAL.clone_max_data_bandwidth").Scan(&got); err != nil || got != want {
			t.Errorf("with a limit of %d bytes mysqld reads %d MiB a second, %v; want %d", limit, got, err, want)
		}
	}
}
