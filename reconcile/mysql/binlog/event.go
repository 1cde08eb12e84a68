package binlog

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

// kind is the type code of an event (MySQL source, libs/mysql/binlog/event/binlog_event.h, Log_event_type).
type kind byte

const (
	kindQuery         kind = 2
	kindIntvar        kind = 5
	kindAppendBlock   kind = 9
	kindDeleteFile    kind = 11
	kindRand          kind = 13
	kindUserVar       kind = 14
	kindFormat        kind = 15
	kindXID           kind = 16
	kindBeginLoad     kind = 17
	kindExecuteLoad   kind = 18
	kindTableMap      kind = 19
	kindWriteRowsV1   kind = 23
	kindUpdateRowsV1  kind = 24
	kindDeleteRowsV1  kind = 25
	kindRowsQuery     kind = 29
	kindWriteRows     kind = 30
	kindUpdateRows    kind = 31
	kindDeleteRows    kind = 32
	kindGTID          kind = 33
	kindPrevious      kind = 35
	kindXAPrepare     kind = 38
	kindPartialUpdate kind = 39
	kindPayload       kind = 40
)

// isKnown reports whether an event of this kind may be in a file that mysqld is still writing and that has untagged GTIDs only. Rotate and
// Stop end a file. Incidents, tagged and anonymous GTIDs, and events of Group Replication are not understood here.
func (k kind) isKnown() bool {
	switch k {
	case kindQuery, kindIntvar, kindAppendBlock, kindDeleteFile, kindRand, kindUserVar, kindFormat, kindXID, kindBeginLoad, kindExecuteLoad,
		kindTableMap, kindWriteRowsV1, kindUpdateRowsV1, kindDeleteRowsV1, kindRowsQuery, kindWriteRows, kindUpdateRows, kindDeleteRows,
		kindGTID, kindPrevious, kindXAPrepare, kindPartialUpdate, kindPayload:
		return true
	}
	return false
}

// kept is how much of the content of an event is needed. The previous GTIDs are a set, which can be large. A statement stands behind up to
// 64 KiB of variables and 255 bytes of a database's name.
func (k kind) kept() int64 {
	switch k { //nolint:exhaustive // what the others contain is not needed
	case kindFormat:
		return 4 << 10
	case kindPrevious:
		return 4 << 20
	case kindQuery:
		return 72 << 10
	case kindGTID:
		return 25
	}
	return 0
}

const (
	// headerSize is the size of an event's header: time 4, type 1, server 4, size 4, next position 4, flags 2.
	headerSize = 19
	sumSize    = 4
	// largest is the largest event that mysqld reads, max_allowed_packet's 1 GiB, with room for what goes with a packet.
	largest = 1<<30 + 1<<20
	// inUse is the header flag LOG_EVENT_BINLOG_IN_USE_F of a format description: mysqld has not closed the file. The flag is cleared later,
	// so the checksum is that of an event without it (MySQL source, sql/log_event.cc, Log_event::write_header).
	inUse     = 0x1
	kindAt    = 4
	flagsAt   = 17
	buffered  = 64 << 10
	largeFile = 1 << 32
)

// event is an event of a binary log.
type event struct {
	kind      kind
	flags     uint16
	from, end int64
	// size is the size of the content: all except for header and checksum. body is the beginning of the content, as far as it is kept.
	size int64
	body []byte
	// isTorn reports that the file ends before the event does. Then there is no content. hasNoHeader reports whether its header is
	// torn. Then there is no kind either.
	isTorn, hasNoHeader bool
}

// reader reads a file event by event.
type reader struct {
	in       *bufio.Reader
	at, size int64
	body     []byte
}

func newReader(file io.ReaderAt, size int64) *reader {
	return &reader{in: bufio.NewReaderSize(io.NewSectionReader(file, 0, size), buffered), size: size}
}

// take returns the next bytes of the file, at most as many as fit in the buffer. They are valid until the next call.
func (r *reader) take(count int) ([]byte, error) {
	data, err := r.in.Peek(count)
	if err != nil {
		return nil, fmt.Errorf("read at position %d of a file of %d bytes: %w", r.at, r.size, err)
	}
	if _, err := r.in.Discard(count); err != nil {
		return nil, fmt.Errorf("read at position %d: %w", r.at, err)
	}
	r.at += int64(count)
	return data, nil
}

// next returns the next event. Its body is valid until the next call. An error means that the file cannot be read or has an event that no
// kill of mysqld leaves. A torn event is no error.
func (r *reader) next() (event, error) {
	if r.size-r.at < headerSize {
		return event{from: r.at, end: r.size, isTorn: true, hasNoHeader: true}, nil
	}
	from := r.at
	header, err := r.take(headerSize)
	if err != nil {
		return event{}, err
	}
	found, err := parseHeader(header, from)
	if err != nil {
		return event{}, fmt.Errorf("event at position %d: %w", from, err)
	}
	if found.end > r.size {
		found.isTorn = true
		r.at = r.size
		return found, nil
	}
	return r.content(found, sumOfHeader(header, found))
}

// parseHeader checks a header (MySQL source, libs/mysql/binlog/event/binlog_event.cpp, Log_event_header). A header that is consistent with
// its position is neither random data nor zeros.
func parseHeader(header []byte, from int64) (event, error) {
	size := int64(binary.LittleEndian.Uint32(header[9:]))
	found := event{
		kind: kind(header[kindAt]), flags: binary.LittleEndian.Uint16(header[flagsAt:]), from: from, end: from + size, size: size - headerSize - sumSize,
	}
	next := binary.LittleEndian.Uint32(header[13:])
	switch {
	case found.size < 0:
		return event{}, fmt.Errorf("its size of %d bytes has no room for header and checksum", size)
	case size > largest:
		return event{}, fmt.Errorf("its size of %d bytes is more than that of any event", size)
	case int64(next) != found.end%largeFile:
		return event{}, fmt.Errorf("it ends at position %d, but claims to end at position %d", found.end, next)
	case !found.kind.isKnown():
		return event{}, fmt.Errorf("events of type %d are not expected here", found.kind)
	}
	return found, nil
}

// sumOfHeader begins the checksum of an event.
func sumOfHeader(header []byte, of event) uint32 {
	flags := of.flags
	if of.kind == kindFormat {
		flags &^= inUse
	}
	sum := crc32.ChecksumIEEE(header[:flagsAt])
	return crc32.Update(sum, crc32.IEEETable, binary.LittleEndian.AppendUint16(nil, flags))
}

// content reads the content of an event and compares its checksum, which begins with that of the header. A whole
// event with a wrong checksum is damaged, not torn, even at the end of the file. A kill does not leave it, and the recovery of mysqld takes
// it for a good one, because by default it does not verify checksums (source_verify_checksum).
func (r *reader) content(found event, sum uint32) (event, error) {
	r.body = r.body[:0]
	keep := min(found.size, found.kind.kept())
	for left := found.size; left > 0; {
		data, err := r.take(int(min(left, buffered)))
		if err != nil {
			return event{}, err
		}
		left -= int64(len(data))
		sum = crc32.Update(sum, crc32.IEEETable, data)
		r.body = append(r.body, data[:min(int64(len(data)), keep-int64(len(r.body)))]...)
	}
	stored, err := r.take(sumSize)
	if err != nil {
		return event{}, err
	}
	if binary.LittleEndian.Uint32(stored) != sum {
		return event{}, fmt.Errorf("event at position %d: its checksum is wrong, although the event is whole", found.from)
	}
	found.body = r.body
	return found, nil
}
