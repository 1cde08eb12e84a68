package clone

import "golang.org/x/sys/unix"

// writeBackEvery is how many bytes are written until the disk is asked to begin with them: it then works all the time, instead of having
// everything to do when files are flushed at the end, and others that flush theirs meanwhile have less to wait for.
const writeBackEvery = 16 << 20

// unwritten is what the disk has not been asked yet to write of a file: so many bytes, somewhere in a range.
type unwritten struct{ bytes, from, to int64 }

// add notes a write.
func (u *unwritten) add(from, to int64) {
	if u.bytes == 0 {
		u.from = from
	}
	u.bytes, u.from, u.to = u.bytes+to-from, min(u.from, from), max(u.to, to)
}

// writeBack has the disk begin with what was written. This makes nothing durable, and does not matter where it cannot be done: see
// sync_file_range(2).
func (d *Directory) writeBack() {
	if d.unwritten.bytes > 0 {
		_ = unix.SyncFileRange(int(d.open.Fd()), d.unwritten.from, d.unwritten.to-d.unwritten.from, unix.SYNC_FILE_RANGE_WRITE) // see above
	}
	d.unwritten = unwritten{}
}
