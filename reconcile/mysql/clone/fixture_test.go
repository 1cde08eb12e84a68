package clone

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// recorder is a Sink that records its calls.
type recorder struct {
	calls []string
	fail  error
}

func (r *recorder) Write(file File, offset int64, data []byte) error {
	r.calls = append(r.calls, fmt.Sprintf("write %s(%d) %d+%d", file.Name, file.Size, offset, len(data)))
	return r.fail
}

func (r *recorder) Rename(from, to string) error {
	r.calls = append(r.calls, "rename "+from+" "+to)
	return r.fail
}

func (r *recorder) Remove(name string) error {
	r.calls = append(r.calls, "remove "+name)
	return r.fail
}

// Descriptors of a donor, made by hand.

func taskBytes() []byte {
	return append(header(taskLength, descTask), make([]byte, 12)...)
}

func startBytes(state snapshot, files int) []byte {
	return stateDesc{state: state, files: uint32(files), start: true, estimate: 1000}.encode()
}

func endBytes(state snapshot) []byte { return stateDesc{state: state}.encode() }

func aliveBytes(state snapshot) []byte { return stateDesc{state: state, ack: true}.encode() }

// plainFlags are the flags of a tablespace of a table with ROW_FORMAT=DYNAMIC and pages of 16 KiB.
const plainFlags = 0x4021

func fileBytes(desc fileDesc, flags uint16) []byte {
	name := desc.name
	if name != "" {
		name += "\x00"
	}
	data := header(uint32(fileLength+len(name)), descFile)
	data = binary.BigEndian.AppendUint32(data, uint32(desc.state))
	data = binary.BigEndian.AppendUint64(data, uint64(desc.size))
	data = binary.BigEndian.AppendUint64(data, uint64(desc.size))
	data = binary.BigEndian.AppendUint32(data, desc.spaceFlags)
	data = binary.BigEndian.AppendUint32(data, 4096)
	if desc.renamed {
		flags |= fileRenamed
	}
	if desc.deleted {
		flags |= fileDeleted
	}
	if desc.encrypted {
		flags |= fileEncrypted
	}
	data = binary.BigEndian.AppendUint16(data, flags)
	for _, number := range []uint32{desc.space, desc.index, 1, 1, uint32(len(name))} {
		data = binary.BigEndian.AppendUint32(data, number)
	}
	return append(data, name...)
}

func dataBytes(desc dataDesc) []byte {
	data := header(dataLength, descData)
	for _, number := range []uint32{uint32(desc.state), 0, 1, 1, desc.file, uint32(desc.length)} {
		data = binary.BigEndian.AppendUint32(data, number)
	}
	data = binary.BigEndian.AppendUint64(data, uint64(desc.offset))
	return binary.BigEndian.AppendUint64(data, uint64(desc.size))
}

// step is one message of a donor: a descriptor, and the data after it.
type step struct {
	descriptor []byte
	data       string
}

func steps(all ...any) []step {
	var list []step
	for _, one := range all {
		switch one := one.(type) {
		case []byte:
			list = append(list, step{descriptor: one})
		case step:
			list = append(list, one)
		}
	}
	return list
}

// table announces the tablespace of a table.
func table(state snapshot, index uint32, name string, size int64) []byte {
	return fileBytes(fileDesc{state: state, index: index, space: 100 + index, name: name, size: size, spaceFlags: plainFlags}, 0)
}

func changed(state snapshot, index uint32, name string, change func(*fileDesc)) []byte {
	desc := fileDesc{state: state, index: index, space: 100 + index, name: name, size: 7 << 14, spaceFlags: plainFlags}
	change(&desc)
	return fileBytes(desc, 0)
}

func renamed(desc *fileDesc) { desc.renamed = true }
func deleted(desc *fileDesc) { desc.deleted = true }
func same(*fileDesc)         {}

func redoFile(index uint32, size int64) []byte {
	return fileBytes(fileDesc{state: snapshotRedo, index: index, space: redoSpace, size: size, spaceFlags: noSpaceFlags}, 0)
}

// bytesOf is some data of a file.
func bytesOf(state snapshot, file uint32, offset int64, length int) step {
	return step{descriptor: dataBytes(dataDesc{state: state, file: file, offset: offset, length: int64(length)}), data: strings.Repeat("x", length)}
}

// play sends a donor's steps to a recipient.
func play(r *recipient, list []step) error {
	for _, one := range list {
		what, err := r.describe(one.descriptor)
		if err != nil {
			return err
		}
		if what.data == nil {
			continue
		}
		if err := r.receive(*what.data, strings.NewReader(one.data)); err != nil {
			return err
		}
	}
	return nil
}
