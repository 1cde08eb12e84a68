package agent

import (
	"os"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

const (
	// ballastBelow is how little room makes the agent give its ballast free, in bytes: mysqld's next write may fail.
	ballastBelow = 8 << 20
	// most bounds the ballast, and the room with which a volume counts as full, in bytes.
	most = 512 << 20
)

// ballastSize is how many bytes the agent keeps to give free on a full volume: MySQL needs some to purge binary logs, and the agent to keep
// its state.
func ballastSize(size int64) int64 { return min(size/50, most) }

// ballast is the file that takes them. It belongs to who watches the disk.
type ballast struct {
	file string
	// made is how many bytes the agent gave it: some file systems do not tell how much a file takes, or tell it later.
	made int64
}

// keep makes the ballast where there is room for it, and removes it where there is next to none.
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

// holds says whether the file takes so many bytes of the volume, or nearly: some file systems have another size every time. Whatever else
// is there reserves nothing.
func (b *ballast) holds(wanted int64) bool {
	info, err := os.Lstat(b.file)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	return min(info.Size(), max(b.made, taken(info))) >= wanted-wanted/10
}

// make makes the file anew. It follows no link.
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
