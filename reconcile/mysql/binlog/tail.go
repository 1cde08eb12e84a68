package binlog

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// Tail is the end of a binary log, from the first transaction on that is not in a given set.
type Tail struct {
	// Head is where the first transaction begins: the end of format description and previous GTIDs.
	Head int64
	// From is where the tail begins. It is equal to Size if there is none.
	From int64
	// Size is the size of the file.
	Size int64
	// GTIDs are the complete transactions of the tail. A transaction whose end is missing is not among them, although it is cut off, too. So
	// GTIDs can be empty although there is a tail.
	GTIDs replication.GTIDSet
	// Empty are those of them that change nothing.
	Empty replication.GTIDSet
	// Executed are the previous GTIDs and all complete transactions of the file, those of the tail too.
	Executed replication.GTIDSet
}

// ReadTail reads the last binary log of a mysqld that was killed, and finds the tail of it that is not in has. The file must not change
// meanwhile: no mysqld may use it.
//
// An error means that the file must stay as it is. Either it could not be read, or the context ended, or the file is not exactly what this
// package understands. The text names the position and what is there. So it is an error if mysqld has closed the file, or if the tail has
// anything but changes of rows. It is also an error if a transaction of has follows one that is not in has.
//
// A GTID that is itself torn is not known. So ReadTail cannot see that has contains that transaction. The caller can: then has contains
// a transaction of this server that is not in Executed.
func ReadTail(ctx context.Context, file io.ReaderAt, size int64, has replication.GTIDSet) (Tail, error) {
	if size > largeFile {
		return Tail{}, fmt.Errorf("read binary log: a file of %d bytes is larger than positions can be", size)
	}
	known, err := numbersOf(has)
	if err != nil {
		return Tail{}, fmt.Errorf("read binary log: %w", err)
	}
	tail, err := readTail(ctx, newReader(file, size), known)
	if err != nil {
		return Tail{}, fmt.Errorf("read binary log: %w", err)
	}
	return tail, nil
}

// IsInUse reports whether mysqld has not closed a binary log: it runs, or has ended without a shutdown.
func IsInUse(file io.ReaderAt) (bool, error) {
	begin := make([]byte, len(magic)+headerSize)
	if _, err := file.ReadAt(begin, 0); err != nil {
		return false, fmt.Errorf("read binary log: %w", err)
	}
	header := begin[len(magic):]
	if string(begin[:len(magic)]) != magic || kind(header[kindAt]) != kindFormat {
		return false, fmt.Errorf("read binary log: the file begins with %x: it is encrypted or no binary log", begin)
	}
	return binary.LittleEndian.Uint16(header[flagsAt:])&inUse != 0, nil
}

func readTail(ctx context.Context, r *reader, has numbers) (Tail, error) {
	previous, err := readHead(r)
	if err != nil {
		return Tail{}, err
	}
	head := r.at
	w := &walk{has: has, executed: previous, tail: numbers{}, empty: numbers{}}
	if err := w.all(ctx, r); err != nil {
		return Tail{}, err
	}
	tail := Tail{Head: head, From: r.size, Size: r.size}
	if w.hasTail {
		tail.From = w.from
	}
	if tail.GTIDs, err = w.tail.set(); err != nil {
		return Tail{}, err
	}
	if tail.Empty, err = w.empty.set(); err != nil {
		return Tail{}, err
	}
	if tail.Executed, err = w.executed.set(); err != nil {
		return Tail{}, err
	}
	return tail, nil
}

// all passes through all events behind the head.
func (w *walk) all(ctx context.Context, r *reader) error {
	for r.at < r.size {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("stop at position %d: %w", r.at, err)
		}
		next, err := r.next()
		if err != nil {
			return err
		}
		if next.isTorn {
			return w.end(&next)
		}
		if err := w.take(next); err != nil {
			return err
		}
	}
	return w.end(nil)
}
