package clone

import (
	"errors"
	"fmt"
	"io"
)

// pieceSize is the size of the pieces that the Sink receives.
const pieceSize = 1 << 20

// file is one file of the copy, as the recipient sees it.
type file struct {
	fileDesc
	name string
	// size grows when the donor extends the file, length when the Sink receives that.
	size, length int64
	// sent reports whether the Sink knows the file.
	sent bool
	// dropped means that the donor has reported the end of the file's data. gone means that the donor has also reported the file's removal.
	dropped, gone bool
}

func (f *file) public() File { return File{Name: f.name, Size: f.size} }

// recipient turns descriptors and data into calls of the Sink. It does not know the connections.
type recipient struct {
	sink    Sink
	release uint32

	state    snapshot
	ended    bool // the donor has ended the state and has not begun the next one
	expected uint32
	files    []*file
	redo     []*file
	names    map[string]bool // of files that are not gone
	pending  []fileDesc      // what DDL did during a state, reported before the next one

	// The position in the data of StageFiles: files come one after the other, from front to back.
	lastFile, lastEnd int64

	bytes  int64
	buffer []byte
}

func newRecipient(sink Sink, release uint32) *recipient {
	return &recipient{sink: sink, release: release, state: snapshotInit, names: map[string]bool{}, lastFile: -1, buffer: make([]byte, pieceSize)}
}

// reaction is what must follow a descriptor.
type reaction struct {
	// began is the state that begins, 0 for none. estimate is the number of bytes that it will bring.
	began    snapshot
	estimate uint64
	// ended is the state that has ended, 0 for none. ack is its acknowledgement.
	ended snapshot
	ack   []byte
	// data describes the data that follows.
	data *dataDesc
}

// describe handles a descriptor.
func (r *recipient) describe(payload []byte) (reaction, error) {
	kind, err := parseHeader(payload, 0)
	if err != nil {
		return reaction{}, err
	}
	switch kind {
	case descTask:
		if len(payload) != taskLength {
			return reaction{}, protocolError("a task descriptor of %d bytes", len(payload))
		}
		return reaction{}, nil
	case descState:
		desc, err := parseState(payload)
		if err != nil {
			return reaction{}, err
		}
		return r.changeState(desc)
	case descFile:
		desc, err := parseFile(payload)
		if err != nil {
			return reaction{}, err
		}
		return reaction{}, r.describeFile(desc)
	case descData:
		desc, err := parseData(payload)
		if err != nil {
			return reaction{}, err
		}
		return reaction{data: &desc}, nil
	}
	return reaction{}, protocolError("a descriptor of type %d", kind)
}

func (r *recipient) changeState(desc stateDesc) (reaction, error) {
	if desc.ack {
		return reaction{}, nil // the donor is busy or waits, and is alive
	}
	if desc.start {
		return reaction{began: desc.state, estimate: desc.estimate}, r.begin(desc)
	}
	if r.ended || desc.state != r.state {
		return reaction{}, protocolError("the end of %v during %v", desc.state, r.state)
	}
	r.ended = true
	if err := r.finish(); err != nil {
		return reaction{}, err
	}
	desc.ack = true
	return reaction{ended: desc.state, ack: desc.encode()}, nil
}

// begin enters a state. Before that, it applies what DDL did during the last one.
func (r *recipient) begin(desc stateDesc) error {
	if desc.state != r.state+1 || !r.ended && r.state != snapshotInit {
		return protocolError("%v after %v", desc.state, r.state)
	}
	if err := r.applyDDL(); err != nil {
		return err
	}
	r.state, r.ended, r.expected = desc.state, false, desc.files
	if desc.state == snapshotDone {
		return r.settle()
	}
	return nil
}

// finish checks at the end of a state that no file is missing.
func (r *recipient) finish() error {
	if r.state != snapshotFiles && r.state != snapshotRedo {
		return nil
	}
	all := r.current()
	if uint64(len(all)) < uint64(r.expected) {
		return protocolError("%d of %d files in %v", len(all), r.expected, r.state)
	}
	for _, f := range all {
		if f.sent || f.dropped {
			continue
		}
		if err := r.send(f, 0, nil); err != nil {
			return err
		}
	}
	return nil
}

// settle gives every file the size that recovery needs to begin: the size to which the donor extended it, otherwise whole extents. Recovery
// relies on whole extents, and mysqld's own recipient makes them, too.
func (r *recipient) settle() error {
	for _, f := range append(r.files, r.redo...) {
		if f.gone {
			continue
		}
		if f.dropped {
			return protocolError("file %q ends early and is not removed", f.name)
		}
		target := f.size
		if f.spaceFlags != noSpaceFlags && f.length >= f.size {
			sizes, err := pageSizesOf(f.spaceFlags)
			if err != nil {
				return err
			}
			if extent := sizes.extent(); f.length > extent {
				target = (f.length + extent - 1) / extent * extent
			}
		}
		if target <= f.length {
			continue
		}
		if err := r.send(f, target, nil); err != nil {
			return err
		}
	}
	return nil
}

// describeFile handles the announcement of a file or of a change to one.
func (r *recipient) describeFile(desc fileDesc) error {
	if r.ended && desc.state == r.state+1 {
		r.pending = append(r.pending, desc)
		return nil
	}
	if desc.state != r.state || r.ended {
		return protocolError("a file of %v during %v", desc.state, r.state)
	}
	if desc.state == snapshotRedo {
		return r.announceRedo(desc)
	}
	if uint64(desc.index) < uint64(len(r.files)) {
		// Deleted: no more of its data comes. Otherwise it is announced again, without new information.
		if desc.deleted {
			r.files[desc.index].dropped = true
		}
		return nil
	}
	if desc.state != snapshotFiles || desc.deleted || desc.renamed {
		return protocolError("the unknown file %d (%q) during %v", desc.index, desc.name, r.state)
	}
	_, err := r.addFile(desc)
	return err
}

func (r *recipient) announceRedo(desc fileDesc) error {
	if desc.encrypted {
		return &UnsupportedError{File: "redo log", Reason: "it is encrypted (innodb_redo_log_encrypt), and only the donor has the key"}
	}
	if uint64(desc.index) < uint64(len(r.redo)) {
		return nil
	}
	if int(desc.index) != len(r.redo) {
		return protocolError("file %d of the redo log after %d", desc.index, len(r.redo))
	}
	f := &file{fileDesc: desc, name: redoName(r.release, desc.index), size: desc.size}
	f.spaceFlags = noSpaceFlags
	r.redo = append(r.redo, f)
	return nil
}

// addFile adds a file to the copy.
func (r *recipient) addFile(desc fileDesc) (*file, error) {
	if int(desc.index) != len(r.files) {
		return nil, protocolError("file %d (%q) after %d", desc.index, desc.name, len(r.files))
	}
	name, err := cleanName(desc.name)
	if err != nil {
		return nil, err
	}
	if err := checkSupported(desc); err != nil {
		return nil, err
	}
	if r.names[name] {
		return nil, &UnsupportedError{File: name, Reason: "the donor has two files of this name, in different folders; rename one of the undo tablespaces"}
	}
	r.names[name] = true
	f := &file{fileDesc: desc, name: name, size: desc.size}
	r.files = append(r.files, f)
	return f, nil
}

func checkSupported(desc fileDesc) error {
	const encryptedSpace = 1 << 13
	if desc.encrypted || desc.spaceFlags != noSpaceFlags && desc.spaceFlags&encryptedSpace != 0 {
		return &UnsupportedError{File: desc.name, Reason: "its tablespace is encrypted, and only the donor has the key; decrypt it (ENCRYPTION='N') to back it up"}
	}
	return nil
}

// receive receives the data that a descriptor announced.
func (r *recipient) receive(desc dataDesc, data io.Reader) error {
	f, err := r.target(desc)
	if err != nil {
		return err
	}
	offset, left := desc.offset, desc.length
	for left > 0 {
		piece := r.buffer[:min(left, pieceSize)]
		if _, err := io.ReadFull(data, piece); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return protocolError("data of file %q that ends %d bytes early", f.name, left)
			}
			return err
		}
		if !f.dropped {
			if err := r.send(f, offset, piece); err != nil {
				return err
			}
		}
		offset, left = offset+int64(len(piece)), left-int64(len(piece))
	}
	_, err = data.Read(r.buffer[:1])
	if errors.Is(err, io.EOF) {
		return nil
	}
	return orProtocol(err, fmt.Sprintf("more data of file %q than announced", f.name))
}

// target returns the file of the data, and checks that the data belongs there.
func (r *recipient) target(desc dataDesc) (*file, error) {
	if desc.state != r.state || r.ended {
		return nil, protocolError("data of %v during %v", desc.state, r.state)
	}
	all := r.current()
	if uint64(desc.file) >= uint64(len(all)) {
		return nil, protocolError("data of file %d of %d", desc.file, len(all))
	}
	f := all[desc.file]
	end := desc.offset + desc.length
	// Only pages may lie beyond the announced size, because the file grew.
	if desc.length == 0 || end > maxFileSize || end > f.size && r.state != snapshotPages {
		return nil, protocolError("%d bytes at %d of file %q (%d bytes)", desc.length, desc.offset, f.name, f.size)
	}
	if r.state == snapshotFiles {
		return f, r.inOrder(int64(desc.file), desc.offset, end)
	}
	if r.state == snapshotPages && desc.offset == 0 {
		r.extend(int(desc.file), desc.size)
	}
	return f, nil
}

// current returns the files to which data of the state belongs.
func (r *recipient) current() []*file {
	switch r.state {
	case snapshotFiles, snapshotPages:
		return r.files
	case snapshotRedo:
		return r.redo
	case snapshotInit, snapshotDone:
	}
	return nil
}

// inOrder checks what a Sink relies on: one file after the other, from front to back.
func (r *recipient) inOrder(index, offset, end int64) error {
	if index < r.lastFile || index == r.lastFile && offset < r.lastEnd {
		return protocolError("data at %d of file %d out of order", offset, index)
	}
	r.lastFile, r.lastEnd = index, end
	return nil
}

// extend records that a tablespace has grown. The size is the sum of all its files, of which the last one grows.
func (r *recipient) extend(index int, size int64) {
	for size > r.files[index].size {
		next := index + 1
		if next >= len(r.files) || r.files[next].space != r.files[index].space {
			r.files[index].size = size
			return
		}
		size -= r.files[index].size
		index = next
	}
}

// send hands data to the Sink. Without data, it makes the file exist with at least offset bytes.
func (r *recipient) send(f *file, offset int64, data []byte) error {
	if err := r.sink.Write(f.public(), offset, data); err != nil {
		return fmt.Errorf("write %d bytes at %d of %s: %w", len(data), offset, f.name, err)
	}
	if !f.sent {
		f.sent, f.length = true, f.size
	}
	f.length = max(f.length, offset+int64(len(data)))
	r.bytes += int64(len(data))
	return nil
}

// count is the number of files in the copy.
func (r *recipient) count() int {
	count := len(r.redo)
	for _, f := range r.files {
		if !f.gone {
			count++
		}
	}
	return count
}
