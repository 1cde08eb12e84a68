package agent

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// TestBallast: the agent creates the ballast once if there is space, makes it larger with the volume, and removes it if there is no space.
func TestBallast(t *testing.T) {
	t.Parallel()
	kept := ballast{file: filepath.Join(t.TempDir(), "member.ballast")}
	roomy := replication.Disk{Size: 100 * mib, Free: 80 * mib}
	for _, moment := range []struct {
		name string
		disk replication.Disk
		want int64
	}{
		{"nothing is known", replication.Disk{}, 0},
		{"too little room to make it", replication.Disk{Size: 100 * mib, Free: 21 * mib}, 0},
		{"there is room", roomy, 2 * mib},
		{"it is there", roomy, 2 * mib},
		{"the volume has another size every time", replication.Disk{Size: 101 * mib, Free: 80 * mib}, 2 * mib},
		{"the volume fills up", replication.Disk{Size: 100 * mib, Free: 9 * mib, Level: replication.DiskFull}, 2 * mib},
		{"the volume has grown", replication.Disk{Size: 150 * mib, Free: 60 * mib}, 3 * mib},
		{"the volume is full", replication.Disk{Size: 150 * mib, Free: mib, Level: replication.DiskFull}, 0},
		{"it stays full", replication.Disk{Size: 150 * mib, Free: 0, Level: replication.DiskFull}, 0},
		{"it has grown again", replication.Disk{Size: 200 * mib, Free: 100 * mib}, 4 * mib},
	} {
		if err := kept.keep(moment.disk); err != nil {
			t.Errorf("%s: %v", moment.name, err)
		}
		if got := ballastIn(kept.file); got != moment.want {
			t.Errorf("%s: the ballast takes %d bytes, want %d", moment.name, got, moment.want)
		}
	}
}

// ballastIn returns how many bytes a file takes and has.
func ballastIn(file string) int64 {
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return min(info.Size(), taken(info))
}

// TestWhatIsThereInsteadOfBallast: a crash left a part of the ballast, or another program planted something. The agent creates the ballast
// again, and does not change what a link points to.
func TestWhatIsThereInsteadOfBallast(t *testing.T) {
	t.Parallel()
	disk := replication.Disk{Size: 100 * mib, Free: 80 * mib}
	for story, plant := range map[string]func(file, victim string) error{
		"nothing in it": func(file, _ string) error { return os.WriteFile(file, nil, 0o600) },
		"a part of it":  func(file, _ string) error { return reserve(file, mib) },
		"a hole of the same size": func(file, _ string) error {
			return errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, 2*mib))
		},
		"a link":                 func(file, victim string) error { return os.Symlink(victim, file) },
		"another name of a file": func(file, victim string) error { return os.Link(victim, file) },
		"a folder":               func(file, _ string) error { return os.MkdirAll(filepath.Join(file, "deep"), 0o700) },
		"a pipe":                 func(file, _ string) error { return syscall.Mkfifo(file, 0o600) },
		"a former agent's":       func(file, _ string) error { return reserve(file, 2*mib) },
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			kept, victim := ballast{file: filepath.Join(folder, "member.ballast")}, filepath.Join(folder, "victim")
			write(t, victim, string(make([]byte, 3*mib)))
			if err := plant(kept.file, victim); err != nil {
				t.Fatal(err)
			}
			if err := kept.keep(disk); err != nil {
				t.Fatal(err)
			}
			if got := ballastIn(kept.file); got < 2*mib {
				t.Errorf("the ballast takes %d bytes", got)
			}
			if info, err := os.Lstat(victim); err != nil || info.Size() != 3*mib {
				t.Errorf("the other file is %v (%v)", info, err)
			}
			if err := kept.keep(replication.Disk{Size: 100 * mib, Level: replication.DiskFull}); err != nil || exists(kept.file) {
				t.Errorf("the ballast is not removed: %v", err)
			}
		})
	}
}

// TestBallastWhereRoomCannotBeReserved: ramfs has no fallocate, and does not report how much space a file takes. The agent writes the
// ballast once.
func TestBallastWhereRoomCannotBeReserved(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := unix.Mount("ramfs", folder, "ramfs", 0, ""); err != nil {
		t.Skipf("mounting a volume requires root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(folder, 0); err != nil {
			t.Errorf("unmount the volume: %v", err)
		}
	})
	kept := ballast{file: filepath.Join(folder, "member.ballast")}
	disk := replication.Disk{Size: 100 * mib, Free: 80 * mib}
	if err := kept.keep(disk); err != nil {
		t.Fatal(err)
	}
	made, err := os.Lstat(kept.file)
	if err != nil || made.Size() != 2*mib {
		t.Fatalf("the ballast is %v (%v)", made, err)
	}
	if err := kept.keep(disk); err != nil {
		t.Fatal(err)
	}
	if again, err := os.Lstat(kept.file); err != nil || !os.SameFile(made, again) {
		t.Errorf("the ballast is created again: %v", err)
	}
}
