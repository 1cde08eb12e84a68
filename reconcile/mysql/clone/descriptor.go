package clone

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// descriptorVersion is the only version of InnoDB's descriptors so far, since clone exists (8.0.17).
const descriptorVersion = 100

// Types of descriptors. All their numbers are big-endian. Each descriptor begins with version, length and type, of 4 bytes each.
const (
	descLocator = 1
	descTask    = 2
	descState   = 3
	descFile    = 4
	descData    = 5
)

const (
	headerLength  = 12
	locatorLength = headerLength + 8 + 8 + 4 + 1 + 1
	taskLength    = headerLength + 3*4
	stateLength   = headerLength + 4*4 + 2*8 + 2
	fileLength    = headerLength + 4 + 2*8 + 2*4 + 2 + 5*4
	dataLength    = headerLength + 6*4 + 2*8
)

// snapshot is a state of the donor's snapshot.
type snapshot uint32

const (
	snapshotInit  snapshot = 1
	snapshotFiles snapshot = 2
	snapshotPages snapshot = 3
	snapshotRedo  snapshot = 4
	snapshotDone  snapshot = 5
)

func (s snapshot) String() string {
	if s == snapshotInit {
		return "INIT"
	}
	if stage := s.stage(); stage != 0 {
		return stage.String()
	}
	return fmt.Sprintf("state %d", uint32(s))
}

// stage is the stage of the state; 0 if the state is not a stage.
func (s snapshot) stage() Stage {
	switch s {
	case snapshotFiles:
		return StageFiles
	case snapshotPages:
		return StagePages
	case snapshotRedo:
		return StageRedo
	case snapshotDone:
		return StageDone
	case snapshotInit:
	}
	return 0
}

// parseHeader checks a descriptor's header against the known version and the received length, and returns its type. If want is 0, it
// accepts any type.
func parseHeader(data []byte, want uint32) (uint32, error) {
	if len(data) < headerLength {
		return 0, protocolError("a descriptor of %d bytes", len(data))
	}
	version, length, kind := binary.BigEndian.Uint32(data), binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if version != descriptorVersion {
		return 0, protocolError("descriptor version %d; only %d is supported", version, descriptorVersion)
	}
	// The locator is sent in a larger buffer.
	if uint64(length) > uint64(len(data)) || kind != descLocator && uint64(length) != uint64(len(data)) {
		return 0, protocolError("a descriptor of type %d that says it has %d bytes and has %d", kind, length, len(data))
	}
	if want != 0 && kind != want {
		return 0, protocolError("a descriptor of type %d instead of %d", kind, want)
	}
	return kind, nil
}

func header(length, kind uint32) []byte {
	data := binary.BigEndian.AppendUint32(nil, descriptorVersion)
	data = binary.BigEndian.AppendUint32(data, length)
	return binary.BigEndian.AppendUint32(data, kind)
}

// newLocator identifies no copy yet, only the version.
func newLocator() locator {
	return append(header(locatorLength, descLocator), make([]byte, locatorLength-headerLength)...)
}

// fields reads the numbers of a descriptor one after the other. The caller has checked the length.
type fields []byte

func (f *fields) uint16() uint16 {
	value := binary.BigEndian.Uint16(*f)
	*f = (*f)[2:]
	return value
}

func (f *fields) uint32() uint32 {
	value := binary.BigEndian.Uint32(*f)
	*f = (*f)[4:]
	return value
}

func (f *fields) uint64() uint64 {
	value := binary.BigEndian.Uint64(*f)
	*f = (*f)[8:]
	return value
}

// stateDesc announces that a state of the snapshot begins or ends.
type stateDesc struct {
	state    snapshot
	task     uint32
	chunks   uint32
	files    uint32 // in StagePages: pages
	estimate uint64 // bytes to come in this state
	disk     uint64 // bytes that the files take on the donor's disk
	start    bool
	ack      bool // from the donor: only a sign of life
}

const (
	stateStart = 1 << 0
	stateAck   = 1 << 1
)

func parseState(data []byte) (stateDesc, error) {
	if len(data) != stateLength {
		return stateDesc{}, protocolError("a state descriptor of %d bytes", len(data))
	}
	f := fields(data[headerLength:])
	desc := stateDesc{state: snapshot(f.uint32()), task: f.uint32(), chunks: f.uint32(), files: f.uint32(), estimate: f.uint64(), disk: f.uint64()}
	flags := f.uint16()
	desc.start, desc.ack = flags&stateStart != 0, flags&stateAck != 0
	if unknown := flags &^ (stateStart | stateAck); unknown != 0 {
		return stateDesc{}, protocolError("flags %#x of a state", unknown)
	}
	return desc, nil
}

func (d stateDesc) encode() []byte {
	data := header(stateLength, descState)
	for _, number := range []uint32{uint32(d.state), d.task, d.chunks, d.files} {
		data = binary.BigEndian.AppendUint32(data, number)
	}
	data = binary.BigEndian.AppendUint64(data, d.estimate)
	data = binary.BigEndian.AppendUint64(data, d.disk)
	var flags uint16
	if d.start {
		flags |= stateStart
	}
	if d.ack {
		flags |= stateAck
	}
	return binary.BigEndian.AppendUint16(data, flags)
}

// fileDesc announces a file, or a change to one.
type fileDesc struct {
	state snapshot
	size  int64
	// spaceFlags are the flags of the tablespace, or noSpaceFlags if the file is not a tablespace.
	spaceFlags uint32
	space      uint32
	index      uint32
	encrypted  bool
	renamed    bool
	deleted    bool
	name       string
}

const (
	fileZlib      = 1 << 0 // page compression: holes in the donor's file
	fileLZ4       = 1 << 1
	fileEncrypted = 1 << 2
	fileRenamed   = 1 << 3
	fileDeleted   = 1 << 4
	fileHasKey    = 1 << 5

	noSpaceFlags = 1<<32 - 1
)

func parseFile(data []byte) (fileDesc, error) {
	if len(data) < fileLength {
		return fileDesc{}, protocolError("a file descriptor of %d bytes", len(data))
	}
	f := fields(data[headerLength:])
	desc := fileDesc{state: snapshot(f.uint32())}
	size := f.uint64()
	f.uint64() // size on the donor's disk
	desc.spaceFlags = f.uint32()
	f.uint32() // block size of the donor's file system
	flags := f.uint16()
	desc.space, desc.index = f.uint32(), f.uint32()
	f.uint32() // first chunk
	f.uint32() // last chunk
	length := f.uint32()
	desc.encrypted = flags&(fileEncrypted|fileHasKey) != 0
	desc.renamed, desc.deleted = flags&fileRenamed != 0, flags&fileDeleted != 0
	if unknown := flags &^ (fileZlib | fileLZ4 | fileEncrypted | fileRenamed | fileDeleted | fileHasKey); unknown != 0 {
		return fileDesc{}, protocolError("flags %#x of a file", unknown)
	}
	var err error
	if desc.size, err = checkSize(size); err != nil {
		return fileDesc{}, err
	}
	if uint64(length) > uint64(len(f)) || !desc.encrypted && uint64(length) != uint64(len(f)) {
		return fileDesc{}, protocolError("a file name of %d bytes in %d", length, len(f))
	}
	if length == 0 {
		return desc, nil
	}
	name, isTerminated := bytes.CutSuffix(f[:length], []byte{0})
	if !isTerminated || bytes.IndexByte(name, 0) >= 0 {
		return fileDesc{}, protocolError("a file name without exactly one terminating zero: %q", f[:length])
	}
	desc.name = string(name)
	return desc, nil
}

// dataDesc precedes data of a file.
type dataDesc struct {
	state  snapshot
	file   uint32
	length int64
	offset int64
	// size is the size of the file if it is larger than announced, because the donor extended it.
	size int64
}

func parseData(data []byte) (dataDesc, error) {
	if len(data) != dataLength {
		return dataDesc{}, protocolError("a data descriptor of %d bytes", len(data))
	}
	f := fields(data[headerLength:])
	desc := dataDesc{state: snapshot(f.uint32())}
	f.uint32() // task
	f.uint32() // chunk
	f.uint32() // block
	desc.file, desc.length = f.uint32(), int64(f.uint32())
	var err error
	if desc.offset, err = checkSize(f.uint64()); err != nil {
		return dataDesc{}, err
	}
	desc.size, err = checkSize(f.uint64())
	return desc, err
}

// maxFileSize is 256 TiB: a tablespace has at most 2³² pages of 64 KiB (manual, "InnoDB Limits").
const maxFileSize = 1 << 48

func checkSize(size uint64) (int64, error) {
	if size > maxFileSize {
		return 0, protocolError("a file of %d bytes", size)
	}
	return int64(size), nil
}
