package agent

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/test/sample"
)

// onVolumeOf puts the member's volume on a separate file system in memory.
func onVolumeOf(t *testing.T, size string) func(Layout) {
	return func(layout Layout) {
		t.Helper()
		if err := unix.Mount("tmpfs", layout.Volume, "tmpfs", 0, "mode=0750,size="+size); err != nil {
			t.Fatalf("mount a volume of %s, which requires root: %v", size, err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(layout.Volume, 0); err != nil {
				t.Errorf("unmount the volume: %v", err)
			}
		})
	}
}

// TestAFullVolumeMysqld: the agent purges binary logs before the volume is full. When something else fills the volume, commits hang. The
// member reports that within ten seconds, and recovers by itself once there is space.
func TestAFullVolumeMysqld(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 0)
	ca := newAuthority(t)
	m := startRealMember(t, ca, onVolumeOf(t, "640m"))
	m.leads(t, 1, 0)
	db := m.open(t, "root", "root's", nil, ca)
	run := func(ctx context.Context, statement string) error {
		_, err := db.ExecContext(ctx, statement)
		return err
	}
	for _, statement := range []string{"CREATE DATABASE shop", "CREATE TABLE shop.counter (id INT PRIMARY KEY, n INT, filler LONGTEXT)", "INSERT INTO shop.counter VALUES (1, 0, REPEAT('x', 2000000))"} {
		if err := run(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	level := func() replication.DiskLevel { return m.agent.Status().Disk.Level }
	m.until(t, "the member has ballast", func() bool { return exists(m.layout.ballast()) })

	t.Log("a client updates one row repeatedly")
	updates := 0
	m.until(t, "the volume fills up", func() bool {
		updates++
		if err := run(t.Context(), "UPDATE shop.counter SET n = n + 1, filler = REPEAT('y', 2000000 + n) WHERE id = 1"); err != nil {
			t.Fatal(err)
		}
		// Memory fills faster than the agent checks it.
		if err := m.agent.lookAtDisk(&ballast{file: m.layout.ballast()}); err != nil {
			t.Fatal(err)
		}
		return level() != replication.DiskRoomy
	})
	m.until(t, "binary logs are purged, and there is room", func() bool { return level() == replication.DiskRoomy })
	if first := firstBinaryLog(t, db); first == "binlog.000001" || updates < 20 {
		t.Errorf("after %d updates the first binary log is %s", updates, first)
	}

	t.Log("another program fills the volume")
	filler := filepath.Join(m.layout.Volume, "filler")
	_, free, err := m.layout.room()
	if err != nil {
		t.Fatal(err)
	}
	if err := reserve(filler, free-3<<20); err != nil {
		t.Fatal(err)
	}
	filled := time.Now()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int)
	go func() {
		done := 0
		for ctx.Err() == nil && run(ctx, "UPDATE shop.counter SET n = n + 1 WHERE id = 1") == nil {
			done++
		}
		ended <- done
	}()
	m.until(t, "the member reports that its volume is full", func() bool { return level() == replication.DiskFull })
	t.Logf("the member reported it after %s", time.Since(filled).Round(time.Millisecond))
	m.until(t, "the ballast is removed", func() bool { return !exists(m.layout.ballast()) })
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	m.until(t, "there is room, and ballast", func() bool { return level() == replication.DiskRoomy && exists(m.layout.ballast()) })
	m.until(t, "clients write", func() bool {
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return run(brief, "INSERT INTO shop.counter VALUES (2, 0, '') ON DUPLICATE KEY UPDATE n = n + 1") == nil
	})
	stop()
	t.Logf("%d small updates", <-ended)
}

func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

func firstBinaryLog(t *testing.T, db *sql.DB) string {
	t.Helper()
	var name, encrypted string
	var size int64
	if err := db.QueryRowContext(t.Context(), "SHOW BINARY LOGS").Scan(&name, &size, &encrypted); err != nil {
		t.Fatal(err)
	}
	return name
}
