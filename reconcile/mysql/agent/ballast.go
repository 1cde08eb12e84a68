package agent

import (
	"os"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

const (
	// ballastBelow is the free space below which the agent removes its ballast, in bytes: mysqld's next write may fail.
	ballastBelow = 8 << 20
	// most limits the ballast, and the free space below which a volume counts as full, in bytes.
	most = 512 << 20
)

// ballastSize returns how many bytes the agent reserves, to free them on a full volume: MySQL needs some to purge binary logs, and the
// agent to store its state.
func ballastSize(size int64) int64 { return min(size/50, most) }

// ballast is the file that reserves them. Only the goroutine that watches the disk uses it.
type ballast struct {
	file string
	// made is how many bytes the agent wrote: some file systems do not report how much space a file takes, or report it later.
	made int64
}

// keep creates the ballast if there is enough free space, and removes it if there is almost none.
func (b *ballast) keep(disk replication.Disk) error {
	wanted := ballastSize(disk.Size)
	switch {
	case disk.Size == 0:
		return nil
	case disk.Free < ballastBelow:
		b.made = 0
		return os.RemoveAll(b.file)
	case disk.Level == replication.DiskRoomy && disk.Free > disk.Size/5+wanted && !b.holds(wanted):
		return b.make(wanted)
	}
	return nil
}

// holds reports whether the file takes wanted bytes of the volume, or nearly: on some file systems the size differs each time. Anything but
// a regular file reserves nothing.
func (b *ballast) holds(wanted int64) bool {
	info, err := os.Lstat(b.file)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	return min(info.Size(), max(b.made, taken(info))) >= wanted-wanted/10
}

// make creates the file again. It follows no link.
func (b *ballast) make(wanted int64) error {
	b.made = 0
	if err := os.RemoveAll(b.file); err != nil {
		return err
	}
	if err := reserve(b.file, wanted); err != nil {
		return err
	}
	b.made = wanted
	return nil
}
