package binlog

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
)

// magic begins a binary log. That of an encrypted one begins with 0xfd (MySQL source, sql/binlog_ostream.h).
const magic = "\xfebin"

const (
	formatVersion = 4
	// A format description has: version 2, server version 50, time 4, header length 1, one length for each type, checksum algorithm 1.
	formatLeast    = 2 + 50 + 4 + 1 + int(kindGTID) + 1
	headerLengthAt = 2 + 50 + 4
	algorithmCRC32 = 1
)

// readHead reads what precedes the transactions: the magic bytes, the format description and the set of previous GTIDs.
func readHead(r *reader) (numbers, error) {
	if r.size < int64(len(magic)) {
		return nil, fmt.Errorf("a file of %d bytes is no binary log", r.size)
	}
	begin, err := r.take(len(magic))
	if err != nil {
		return nil, err
	}
	if string(begin) != magic {
		return nil, fmt.Errorf("the file begins with %x: it is encrypted or no binary log", begin)
	}
	format, err := r.need(kindFormat)
	if err != nil {
		return nil, fmt.Errorf("format description: %w", err)
	}
	if err := checkFormat(format); err != nil {
		return nil, fmt.Errorf("format description: %w", err)
	}
	previous, err := r.need(kindPrevious)
	if err != nil {
		return nil, fmt.Errorf("previous GTIDs: %w", err)
	}
	if previous.size > int64(len(previous.body)) {
		return nil, fmt.Errorf("previous GTIDs: a set of %d bytes is too large", previous.size)
	}
	set, err := parsePrevious(previous.body)
	if err != nil {
		return nil, fmt.Errorf("previous GTIDs: %w", err)
	}
	return set, nil
}

// need returns the next event if it is complete and of this kind.
func (r *reader) need(want kind) (event, error) {
	found, err := r.next()
	switch {
	case err != nil:
		return event{}, err
	case found.isTorn:
		return event{}, fmt.Errorf("the event at position %d is not complete", found.from)
	case found.kind != want:
		return event{}, fmt.Errorf("the event at position %d has type %d instead of %d", found.from, found.kind, want)
	}
	return found, nil
}

// checkFormat checks a format description (MySQL source, libs/mysql/binlog/event/control_events.h, Format_description_event).
func checkFormat(format event) error {
	body := format.body
	if format.size < int64(formatLeast) || format.size > int64(len(body)) {
		return fmt.Errorf("its content has %d bytes", format.size)
	}
	version := binary.LittleEndian.Uint16(body)
	algorithm := body[len(body)-1]
	queryLength := body[headerLengthAt+int(kindQuery)]
	switch {
	case version != formatVersion:
		return fmt.Errorf("the version of the format is %d, not %d", version, formatVersion)
	case body[headerLengthAt] != headerSize:
		return fmt.Errorf("headers have %d bytes, not %d", body[headerLengthAt], headerSize)
	case int(queryLength) != queryFixed:
		return fmt.Errorf("statements begin with %d bytes, not %d", queryLength, queryFixed)
	case algorithm != algorithmCRC32:
		return fmt.Errorf("the checksum algorithm is %d, not CRC32", algorithm)
	case format.flags&inUse == 0:
		return errors.New("mysqld closed the file, so it was not killed while it wrote it")
	}
	return nil
}

const (
	uuidSize     = 16
	numberSize   = 8
	intervalSize = 2 * numberSize
)

// parsePrevious parses the set of GTIDs that are in earlier files (MySQL source, sql/rpl_gtid_set.cc, Gtid_set::add_gtid_encoding). The
// highest byte of the number of sources is the encoding: 0 without tags.
func parsePrevious(data []byte) (numbers, error) {
	rest := bytesLeft{data}
	count, ok := rest.number()
	if !ok {
		return nil, errors.New("the set has no number of sources")
	}
	if encoding := count >> 56; encoding != 0 {
		return nil, fmt.Errorf("the set has encoding %d: a GTID has a tag", encoding)
	}
	if count > uint64(len(rest.data))/(uuidSize+numberSize) {
		return nil, fmt.Errorf("the set is too short for %d sources", count)
	}
	set := numbers{}
	for range count {
		id, list, err := parseSource(&rest)
		if err != nil {
			return nil, err
		}
		if _, twice := set[id]; twice {
			return nil, fmt.Errorf("the set has source %s twice", id)
		}
		set[id] = list
	}
	if len(rest.data) > 0 {
		return nil, fmt.Errorf("%d bytes follow the set", len(rest.data))
	}
	return set, nil
}

// parseSource parses the intervals of one source. They are in ascending order, and none touches the next.
func parseSource(rest *bytesLeft) (uuid, []interval, error) {
	var id uuid
	copy(id[:], rest.take(uuidSize))
	count, ok := rest.number()
	if !ok || count == 0 || count > uint64(len(rest.data))/intervalSize {
		return uuid{}, nil, fmt.Errorf("the set is too short for the %d intervals of source %s, or has none", count, id)
	}
	list := make([]interval, 0, count)
	least := uint64(1)
	for range count {
		first, _ := rest.number()
		end, _ := rest.number()
		if first < least || end <= first || end > math.MaxInt64 {
			return uuid{}, nil, fmt.Errorf("source %s has an interval from %d to before %d behind one to before %d", id, first, end, least-1)
		}
		list = append(list, interval{first: int64(first), end: int64(end)}) //nolint:gosec // both are at most MaxInt64
		least = end + 1
	}
	return id, list, nil
}

// bytesLeft is data that is parsed from its beginning.
type bytesLeft struct{ data []byte }

// take returns the next bytes. It returns nil if there are less.
func (b *bytesLeft) take(count int) []byte {
	if len(b.data) < count {
		b.data = nil
		return nil
	}
	taken := b.data[:count]
	b.data = b.data[count:]
	return taken
}

func (b *bytesLeft) number() (value uint64, ok bool) {
	data := b.take(numberSize)
	if data == nil {
		return 0, false
	}
	return binary.LittleEndian.Uint64(data), true
}

// uuid is the UUID of a server.
type uuid [uuidSize]byte

// String formats a UUID as GTIDs do.
func (u uuid) String() string {
	text := hex.EncodeToString(u[:])
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}
