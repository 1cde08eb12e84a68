package clone

import "golang.org/x/sys/unix"

// writeBackEvery is how many bytes are written before the kernel is asked to write them to the disk. The disk then works all the time,
// instead of having everything to write when files are flushed at the end. Other processes that flush their files meanwhile wait less.
const writeBackEvery = 16 << 20

// unwritten is the part of a file that the kernel has not been asked yet to write to the disk: the number of bytes, somewhere in a range.
type unwritten struct{ bytes, from, to int64 }

// add records a write.
func (u *unwritten) add(from, to int64) {
	if u.bytes == 0 {
		u.from = from
	}
	u.bytes, u.from, u.to = u.bytes+to-from, min(u.from, from), max(u.to, to)
}

// writeBack asks the kernel to begin writing to the disk. That makes nothing durable, and a failure does not matter: see
// sync_file_range(2).
func (d *Directory) writeBack() {
	if d.unwritten.bytes > 0 {
		_ = unix.SyncFileRange(int(d.open.Fd()), d.unwritten.from, d.unwritten.to-d.unwritten.from, unix.SYNC_FILE_RANGE_WRITE) // see above
	}
	d.unwritten = unwritten{}
}
