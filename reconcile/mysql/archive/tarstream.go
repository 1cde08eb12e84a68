package archive

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"strings"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/clone"
)

const (
	dataFolder    = "data/"
	changesFolder = "changes/"
	// changeLimit is the maximum number of bytes of consecutive Writes that become one entry.
	changeLimit = 1 << 20
	// nameLimit is longer than any path in a data directory.
	nameLimit = 1024
	fileMode  = 0o640
)

// fileKey stands for a file's name: the memory for each file must not depend on the length of its name.
type fileKey [16]byte

func keyOf(name string) fileKey {
	sum := sha256.Sum256([]byte(name))
	return fileKey(sum[:16])
}

// checkName refuses a name that is not a plain path below the data directory, or that a shell could misread.
func checkName(name string) error {
	control := strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' })
	if control || len(name) > nameLimit || name == "." || !fs.ValidPath(name) {
		return fmt.Errorf("file name %q is not a plain path in the data directory", name)
	}
	return nil
}

// recorder writes the calls to a clone.Sink as a tar stream: each file's first pass as data/NAME, and all later changes as changes/NUMBER….
// See docs/backup-format.md.
type recorder struct {
	tar      *tar.Writer
	modified time.Time
	// files has every name that ever occurred, with the file's length, or absentFile after the file was removed.
	files map[fileKey]int64
	// names is the maximum number of names.
	names int
	// first is the file whose entry is being written.
	first *firstPass
	// change collects consecutive Writes.
	change change
	number int64
	zeros  []byte
}

// firstPass is an open entry: it has size bytes, of which written have been written.
type firstPass struct {
	name          string
	size, written int64
}

// change is data that was written to a file after its first pass.
type change struct {
	name   string
	offset int64
	data   []byte
}

func newRecorder(out io.Writer, modified time.Time) *recorder {
	return &recorder{
		tar: tar.NewWriter(out), modified: modified.UTC().Truncate(time.Second), files: map[fileKey]int64{}, names: namesLimit,
		change: change{data: make([]byte, 0, changeLimit)}, zeros: make([]byte, 64<<10),
	}
}

// write records clone.Sink's Write.
func (r *recorder) write(file clone.File, offset int64, data []byte) error {
	if err := checkName(file.Name); err != nil {
		return err
	}
	if file.Size < 0 || offset < 0 || offset > math.MaxInt64-int64(len(data)) {
		return fmt.Errorf("write %s: invalid size %d or offset %d", file.Name, file.Size, offset)
	}
	if !r.exists(file.Name) {
		if err := r.begin(file); err != nil {
			return err
		}
	}
	length := r.files[keyOf(file.Name)]
	r.files[keyOf(file.Name)] = max(length, offset+int64(len(data)))
	if len(data) == 0 {
		return r.extend(file.Name, length, offset)
	}
	if !r.continues(file.Name, offset) {
		return r.changed(file.Name, offset, data)
	}
	if err := r.pad(offset); err != nil {
		return err
	}
	within := min(int64(len(data)), r.first.size-offset)
	if _, err := r.tar.Write(data[:within]); err != nil {
		return err
	}
	r.first.written += within
	if within == int64(len(data)) {
		return nil
	}
	return r.changed(file.Name, offset+within, data[within:])
}

// continues reports whether bytes belong to the open entry.
func (r *recorder) continues(name string, offset int64) bool {
	return r.first != nil && r.first.name == name && offset >= r.first.written && offset < r.first.size
}

// exists reports whether there is a file of this name.
func (r *recorder) exists(name string) bool {
	length, used := r.files[keyOf(name)]
	return used && length != absentFile
}

// size returns the total length of all files.
func (r *recorder) size() int64 {
	var sum int64
	for _, length := range r.files {
		if length != absentFile {
			sum += length
		}
	}
	return sum
}

// extend records that a file has become longer, as a change without content.
func (r *recorder) extend(name string, from, to int64) error {
	if to <= from {
		return nil
	}
	if err := r.settle(); err != nil {
		return err
	}
	r.number++
	return r.header(changeName(r.number, to, name), 0)
}

// changeName returns the name of the entry for bytes of a file from an offset on.
func changeName(number, offset int64, name string) string {
	return fmt.Sprintf("%s%012d@%d/%s", changesFolder, number, offset, name)
}

// begin opens the entry of a file that does not exist: data/NAME if the name is new, else a create entry.
func (r *recorder) begin(file clone.File) error {
	if err := r.settle(); err != nil {
		return err
	}
	if err := r.room(file.Name); err != nil {
		return err
	}
	key := keyOf(file.Name)
	name := dataFolder + file.Name
	if _, used := r.files[key]; used {
		r.number++
		name = fmt.Sprintf("%s%012d-create/%s", changesFolder, r.number, file.Name)
	}
	r.files[key] = file.Size
	r.first = &firstPass{name: file.Name, size: file.Size}
	return r.header(name, file.Size)
}

// room refuses a name for which a restore would have no room: a backup that cannot be restored must not be completed.
func (r *recorder) room(name string) error {
	if _, used := r.files[keyOf(name)]; !used && len(r.files) >= r.names {
		return fmt.Errorf("the data directory has more than %d files, which is more than a backup may have", r.names)
	}
	return nil
}

// changed records bytes of a file outside of its first pass.
func (r *recorder) changed(name string, offset int64, data []byte) error {
	if err := r.endFirst(); err != nil {
		return err
	}
	for len(data) > 0 {
		follows := name == r.change.name && offset == r.change.offset+int64(len(r.change.data))
		if !follows || len(r.change.data) == changeLimit {
			if err := r.endChange(); err != nil {
				return err
			}
			r.change.name, r.change.offset = name, offset
		}
		n := min(changeLimit-len(r.change.data), len(data))
		r.change.data = append(r.change.data, data[:n]...)
		data, offset = data[n:], offset+int64(n)
	}
	return nil
}

// rename records clone.Sink's Rename.
func (r *recorder) rename(from, to string) error {
	if err := errors.Join(checkName(from), checkName(to)); err != nil {
		return err
	}
	if !r.exists(from) {
		return fmt.Errorf("rename %s to %s: there is no such file in the copy", from, to)
	}
	if from == to {
		return nil
	}
	if err := r.room(to); err != nil {
		return err
	}
	r.files[keyOf(from)], r.files[keyOf(to)] = absentFile, r.files[keyOf(from)]
	return r.operation("rename", from, to)
}

// remove records clone.Sink's Remove. If there is no such file, it records nothing.
func (r *recorder) remove(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if !r.exists(name) {
		return nil
	}
	r.files[keyOf(name)] = absentFile
	return r.operation("remove", name, "")
}

// operation writes an entry for an operation on a file.
func (r *recorder) operation(verb, name, content string) error {
	if err := r.settle(); err != nil {
		return err
	}
	r.number++
	if err := r.header(fmt.Sprintf("%s%012d-%s/%s", changesFolder, r.number, verb, name), int64(len(content))); err != nil {
		return err
	}
	_, err := io.WriteString(r.tar, content)
	return err
}

// settle completes the open entry.
func (r *recorder) settle() error {
	if err := r.endFirst(); err != nil {
		return err
	}
	return r.endChange()
}

// endFirst completes the entry of a first pass. Bytes that were not written are zero.
func (r *recorder) endFirst() error {
	if r.first == nil {
		return nil
	}
	err := r.pad(r.first.size)
	r.first = nil
	return err
}

// pad fills the open entry with zeros up to an offset.
func (r *recorder) pad(offset int64) error {
	for r.first.written < offset {
		n, err := r.tar.Write(r.zeros[:min(int64(len(r.zeros)), offset-r.first.written)])
		r.first.written += int64(n)
		if err != nil {
			return err
		}
	}
	return nil
}

// endChange writes the change that was collected.
func (r *recorder) endChange() error {
	if len(r.change.data) == 0 {
		return nil
	}
	r.number++
	if err := r.header(changeName(r.number, r.change.offset, r.change.name), int64(len(r.change.data))); err != nil {
		return err
	}
	_, err := r.tar.Write(r.change.data)
	r.change.name, r.change.data = "", r.change.data[:0]
	return err
}

// finish ends the stream.
func (r *recorder) finish() error {
	if err := r.settle(); err != nil {
		return err
	}
	return r.tar.Close()
}

func (r *recorder) header(name string, size int64) error {
	return r.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: fileMode, ModTime: r.modified})
}
