package binlog

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

const (
	serverA = "aaaaaaaa-0000-1111-2222-0123456789ab"
	serverB = "bbbbbbbb-0000-1111-2222-0123456789ab"
)

// log is a binary log that a test builds event by event.
type log struct {
	data []byte
	// starts are the positions of GTID events.
	starts []int
	// events are the positions of all events.
	events []int
}

// newLog begins a log that is in use, after the previous GTIDs.
func newLog(previous ...source) *log {
	l := &log{data: []byte(magic)}
	return l.format(inUse, formatOf(algorithmCRC32)).event(kindPrevious, encode(previous...))
}

// source is an element of a set of previous GTIDs: intervals are pairs of first and end.
type source struct {
	server    string
	intervals []uint64
}

func encode(all ...source) []byte {
	data := number(uint64(len(all)))
	for _, s := range all {
		data = append(append(data, idOf(s.server)...), number(uint64(len(s.intervals)/2))...)
		for _, value := range s.intervals {
			data = append(data, number(value)...)
		}
	}
	return data
}

func number(value uint64) []byte { return binary.LittleEndian.AppendUint64(nil, value) }

func idOf(server string) []byte {
	id, err := hex.DecodeString(strings.ReplaceAll(server, "-", ""))
	if err != nil {
		panic(err)
	}
	return id
}

// formatOf is the content of a format description.
func formatOf(algorithm byte) []byte {
	body := make([]byte, headerLengthAt+1+42+1)
	body[0], body[headerLengthAt], body[headerLengthAt+int(kindQuery)] = formatVersion, headerSize, queryFixed
	copy(body[2:], "9.7.4")
	body[len(body)-1] = algorithm
	return body
}

// sealed returns an event with header and checksum.
func sealed(at int, of kind, flags uint16, body []byte) []byte {
	size := headerSize + len(body) + sumSize
	data := binary.LittleEndian.AppendUint32(nil, 1_700_000_000)
	data = append(data, byte(of))
	data = binary.LittleEndian.AppendUint32(data, 17)
	data = binary.LittleEndian.AppendUint32(data, uint32(size))
	data = binary.LittleEndian.AppendUint32(data, uint32(at+size))
	data = binary.LittleEndian.AppendUint16(data, flags)
	data = append(data, body...)
	return binary.LittleEndian.AppendUint32(data, crc32.ChecksumIEEE(data))
}

// format adds a format description. Its checksum does not cover the flag that the file is in use.
func (l *log) format(flags uint16, body []byte) *log {
	data := sealed(len(l.data), kindFormat, flags&^inUse, body)
	binary.LittleEndian.PutUint16(data[flagsAt:], flags)
	l.data = append(l.data, data...)
	return l
}

func (l *log) event(of kind, body []byte) *log {
	l.events = append(l.events, len(l.data))
	l.data = append(l.data, sealed(len(l.data), of, 0, body)...)
	return l
}

func (l *log) gtid(server string, gno uint64) *log {
	l.starts = append(l.starts, len(l.data))
	return l.event(kindGTID, append(append([]byte{0}, idOf(server)...), append(number(gno), make([]byte, 17)...)...))
}

func (l *log) query(statement string) *log {
	fixed := make([]byte, queryFixed)
	fixed[8] = 4
	binary.LittleEndian.PutUint16(fixed[11:], 3)
	return l.event(kindQuery, slices.Concat(fixed, []byte("varshop\x00"+statement)))
}

// rows adds a table's description and a change of its rows.
func (l *log) rows() *log {
	return l.event(kindTableMap, []byte("table")).event(kindWriteRows, []byte("row"))
}
func (l *log) xid() *log { return l.event(kindXID, number(7)) }

// change adds a complete transaction that changes rows.
func (l *log) change(server string, gno uint64) *log {
	return l.gtid(server, gno).query("BEGIN").rows().xid()
}

// ddl adds a complete transaction of one statement.
func (l *log) ddl(server string, gno uint64) *log {
	return l.gtid(server, gno).query("CREATE TABLE t (a INT)")
}

// raw adds bytes.
func (l *log) raw(data ...byte) *log {
	l.data = append(l.data, data...)
	return l
}

// cut removes bytes from the end.
func (l *log) cut(count int) *log {
	l.data = l.data[:len(l.data)-count]
	return l
}

// flip changes a byte, counted from the end.
func (l *log) flip(fromEnd int) *log {
	l.data[len(l.data)-fromEnd] ^= 0x55
	return l
}

func (l *log) read(t *testing.T, has string) (Tail, error) {
	t.Helper()
	return readData(t, l.data, has)
}

func readData(t *testing.T, data []byte, has string) (Tail, error) {
	t.Helper()
	return ReadTail(t.Context(), bytes.NewReader(data), int64(len(data)), parse(t, has))
}

func parse(t *testing.T, text string) replication.GTIDSet {
	t.Helper()
	set, err := replication.ParseGTIDSet(text)
	if err != nil {
		t.Fatal(err)
	}
	return set
}
