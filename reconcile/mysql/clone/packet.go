package clone

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

const (
	// maxPayload is the largest payload of one packet. A longer message is sent in several packets, of which the last is shorter (MySQL
	// Internals, "MySQL Packets").
	maxPayload = 1<<24 - 1
	// maxMessage limits every message except file data, so that a donor cannot make us allocate any amount of memory.
	maxMessage = 1 << 20
	// readBuffer holds what TLS decrypted. One record is 16 KiB.
	readBuffer = 64 << 10
)

var (
	// errCancelled is the error of reads and writes on an interrupted connection.
	errCancelled = errors.New("interrupted")
	// errEnded is the end of a connection; the end of a message is io.EOF instead.
	errEnded = errors.New("the donor closed the connection")
)

// timedConn is a network connection. Every read and write takes at most silence, and can be interrupted at any time.
type timedConn struct {
	net.Conn
	silence time.Duration

	mu          sync.Mutex
	interrupted bool
}

// Read waits for data for at most silence.
func (l *timedConn) Read(to []byte) (int, error) {
	if err := l.arm(l.SetReadDeadline); err != nil {
		return 0, err
	}
	n, err := l.Conn.Read(to)
	return n, l.explain(err)
}

// Write waits for at most silence: everything that is sent is short.
func (l *timedConn) Write(data []byte) (int, error) {
	if err := l.arm(l.SetWriteDeadline); err != nil {
		return 0, err
	}
	n, err := l.Conn.Write(data)
	return n, l.explain(err)
}

// explain distinguishes the failure that interrupt causes from others.
func (l *timedConn) explain(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil && l.interrupted {
		return errCancelled
	}
	return err
}

func (l *timedConn) arm(set func(time.Time) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.interrupted {
		return errCancelled
	}
	return set(time.Now().Add(l.silence))
}

// interrupt ends all reads and writes for good, including those in progress.
func (l *timedConn) interrupt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.interrupted = true
	_ = l.SetDeadline(time.Now()) // fails only on a closed connection, which is interrupted already
}

// packetConn reads and writes MySQL's packets.
type packetConn struct {
	conn   io.ReadWriteCloser
	reader *bufio.Reader
	// sequence is the number of the next packet. It counts on within an exchange. It restarts at 0 with every command and, while cloning,
	// with every response.
	sequence uint8
}

func newWire(conn io.ReadWriteCloser) *packetConn {
	return &packetConn{conn: conn, reader: bufio.NewReaderSize(conn, readBuffer)}
}

// write sends a message that fits into one packet.
func (w *packetConn) write(payload []byte) error {
	if len(payload) >= maxPayload {
		return fmt.Errorf("send %d bytes: too long for a packet", len(payload))
	}
	packet := appendLength(make([]byte, 0, 4+len(payload)), len(payload))
	packet[3] = w.sequence
	w.sequence++
	_, err := w.conn.Write(append(packet, payload...))
	return err
}

// appendLength appends the length of something to be sent, which is always far below 4 GiB.
func appendLength(to []byte, length int) []byte {
	return binary.LittleEndian.AppendUint32(to, uint32(length&0x7fffffff))
}

// command sends the first message of an exchange.
func (w *packetConn) command(code byte, arguments []byte) error {
	w.sequence = 0
	return w.write(append([]byte{code}, arguments...))
}

// message is a message being received. It must be read to its end before the next one.
type message struct {
	wire *packetConn
	left int  // of the current packet
	more bool // another packet follows it
}

// next begins to receive a message.
func (w *packetConn) next() (*message, error) {
	m := &message{wire: w}
	err := m.header()
	return m, err
}

func (m *message) header() error {
	var header [4]byte
	if _, err := io.ReadFull(m.wire.reader, header[:]); err != nil {
		return ended(err)
	}
	if header[3] != m.wire.sequence {
		return protocolError("packet number %d instead of %d", header[3], m.wire.sequence)
	}
	m.wire.sequence++
	m.left = int(header[0]) | int(header[1])<<8 | int(header[2])<<16
	m.more = m.left == maxPayload
	return nil
}

// Read returns io.EOF at the end of the message.
func (m *message) Read(to []byte) (int, error) {
	if m.left == 0 && m.more {
		if err := m.header(); err != nil {
			return 0, err
		}
	}
	if m.left == 0 {
		return 0, io.EOF
	}
	n, err := m.wire.reader.Read(to[:min(len(to), m.left)])
	m.left -= n
	return n, ended(err)
}

func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errEnded
	}
	return err
}

// rest reads a short message to its end.
func (m *message) rest() ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(m, maxMessage+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxMessage {
		return nil, protocolError("a message of more than %d bytes that is not file data", maxMessage)
	}
	return data, nil
}

// read receives a short message.
func (w *packetConn) read() ([]byte, error) {
	m, err := w.next()
	if err != nil {
		return nil, err
	}
	return m.rest()
}
