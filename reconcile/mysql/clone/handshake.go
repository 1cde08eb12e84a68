package clone

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// Capabilities of a client (MySQL Internals, "Capabilities Flags"). CLIENT_DEPRECATE_EOF is missing, so that results have the classic
// format.
const (
	clientLongPassword     = 0x1
	clientProtocol41       = 0x200
	clientSSL              = 0x800
	clientTransactions     = 0x2000
	clientSecureConnection = 0x8000
	clientPluginAuth       = 0x80000

	capabilities = clientLongPassword | clientProtocol41 | clientSSL | clientTransactions | clientSecureConnection | clientPluginAuth
)

const (
	handshakeVersion = 10
	charsetUTF8MB4   = 45 // utf8mb4_general_ci
	authPlugin       = "caching_sha2_password"

	replyOK       = 0x00
	replyMore     = 0x01
	replyEOF      = 0xfe
	replyError    = 0xff
	moreFastOK    = 0x03
	moreFullLogin = 0x04
)

// connectTimeout limits one login, from the first packet to the last.
const connectTimeout = 10 * time.Second

// session is a logged-in connection.
type session struct {
	*packetConn
	line *timedConn
	// thread is the argument of KILL. version is the version that the donor reports.
	thread  uint32
	version string
}

// close ends the connection.
func (s *session) close() { _ = s.line.Close() } // the last data sent does not matter

// greeting is the first packet of a server.
type greeting struct {
	version string
	thread  uint32
	nonce   []byte
	flags   uint32
}

// connect logs in over TLS. After the login, no read or write takes longer than silence.
func connect(ctx context.Context, donor Donor, silence time.Duration) (*session, error) {
	address := net.JoinHostPort(donor.Host, strconv.Itoa(donor.Port))
	if donor.TLS == nil {
		return nil, fmt.Errorf("connect to donor %s: TLS is not configured, and a copy of all data must not be sent without it", address)
	}
	bounded, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	raw, err := (&net.Dialer{}).DialContext(bounded, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connect to donor %s: %w", address, err)
	}
	s := &session{line: &timedConn{Conn: raw, silence: connectTimeout}}
	stop := context.AfterFunc(bounded, s.line.interrupt)
	err = s.login(bounded, donor)
	if !stop() && (err == nil || errors.Is(err, errCancelled)) {
		err = context.Cause(bounded)
	}
	if err != nil {
		s.close()
		return nil, fmt.Errorf("log in to donor %s as %s: %w", address, donor.Account.User, err)
	}
	s.line.silence = silence
	return s, nil
}

func (s *session) login(ctx context.Context, donor Donor) error {
	plain := newWire(s.line)
	first, err := plain.read()
	if err != nil {
		return err
	}
	hello, err := parseGreeting(first)
	if err != nil {
		return err
	}
	if hello.flags&clientSSL == 0 {
		return fmt.Errorf("the server does not offer TLS; configure a certificate on it")
	}
	s.thread, s.version = hello.thread, hello.version
	if err := plain.write(loginPrefix()); err != nil {
		return err
	}
	if plain.reader.Buffered() != 0 {
		return protocolError("data before TLS began")
	}
	security := donor.TLS.Clone()
	if security.ServerName == "" {
		security.ServerName = donor.Host
	}
	encrypted := tls.Client(s.line, security)
	if err := encrypted.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("TLS handshake: %w", err)
	}
	s.packetConn = newWire(encrypted)
	s.sequence = plain.sequence
	return s.authenticate(donor, hello.nonce)
}

// authenticate proves the password: by its hash if the server has the password in its cache, otherwise by sending the password itself,
// which TLS encrypts (manual, "Caching SHA-2 Pluggable Authentication").
func (s *session) authenticate(donor Donor, nonce []byte) error {
	response := loginPrefix()
	response = append(response, donor.Account.User...)
	response = append(response, 0)
	proof := scramble(donor.Account.Password, nonce)
	response = append(response, byte(len(proof)&0xff)) // a hash, or nothing
	response = append(response, proof...)
	response = append(response, authPlugin...)
	if err := s.write(append(response, 0)); err != nil {
		return err
	}
	for {
		reply, err := s.read()
		if err != nil {
			return err
		}
		if done, err := s.answer(donor, reply); done || err != nil {
			return err
		}
	}
}

// answer continues the login after a reply of the server. It reports whether the login is complete.
func (s *session) answer(donor Donor, reply []byte) (bool, error) {
	if len(reply) == 0 {
		return false, protocolError("an empty reply to the login")
	}
	switch reply[0] {
	case replyOK:
		return true, nil
	case replyError:
		return false, parseError(reply)
	case replyEOF:
		plugin, data, found := bytes.Cut(reply[1:], []byte{0})
		if !found || string(plugin) != authPlugin {
			return false, fmt.Errorf("the account uses the plugin %q, but only %s is supported; change the account", plugin, authPlugin)
		}
		return false, s.write(scramble(donor.Account.Password, bytes.TrimSuffix(data, []byte{0})))
	case replyMore:
		if bytes.Equal(reply, []byte{replyMore, moreFastOK}) {
			return false, nil
		}
		if bytes.Equal(reply, []byte{replyMore, moreFullLogin}) {
			return false, s.write(append([]byte(donor.Account.Password), 0))
		}
	}
	return false, protocolError("reply %#x to the login", reply[0])
}

// loginPrefix is the whole request for TLS, and the beginning of the login.
func loginPrefix() []byte {
	prefix := make([]byte, 32)
	binary.LittleEndian.PutUint32(prefix, capabilities)
	binary.LittleEndian.PutUint32(prefix[4:], maxPayload)
	prefix[8] = charsetUTF8MB4
	return prefix
}

// scramble proves knowledge of the password without sending it: SHA256(password) XOR SHA256(SHA256(SHA256(password)), nonce).
func scramble(password string, nonce []byte) []byte {
	if password == "" {
		return nil
	}
	once := sha256.Sum256([]byte(password))
	twice := sha256.Sum256(once[:])
	mask := sha256.Sum256(append(twice[:], nonce...))
	subtle.XORBytes(mask[:], mask[:], once[:])
	return mask[:]
}

// parseGreeting parses the first packet (MySQL Internals, "Protocol::HandshakeV10").
func parseGreeting(packet []byte) (greeting, error) {
	if len(packet) > 0 && packet[0] == replyError {
		return greeting{}, parseError(packet)
	}
	if len(packet) == 0 || packet[0] != handshakeVersion {
		return greeting{}, protocolError("this is not a MySQL server that speaks protocol %d", handshakeVersion)
	}
	version, rest, found := bytes.Cut(packet[1:], []byte{0})
	const fixed = 4 + 8 + 1 + 2 + 1 + 2 + 2 + 1 + 10
	if !found || len(rest) < fixed {
		return greeting{}, protocolError("a greeting of %d bytes", len(packet))
	}
	hello := greeting{version: string(version), thread: binary.LittleEndian.Uint32(rest)}
	hello.flags = uint32(binary.LittleEndian.Uint16(rest[13:])) | uint32(binary.LittleEndian.Uint16(rest[18:]))<<16
	length := max(13, int(rest[20])-8)
	tail := rest[fixed:]
	if len(tail) < length {
		return greeting{}, protocolError("a greeting without a whole nonce")
	}
	hello.nonce = append(bytes.Clone(rest[4:12]), bytes.TrimSuffix(tail[:length], []byte{0})...)
	return hello, nil
}

// parseError parses an error packet: the number, then with protocol 4.1 a marker and the SQL state, then the text.
func parseError(packet []byte) error {
	if len(packet) < 3 {
		return protocolError("an error without a number")
	}
	text := packet[3:]
	if len(text) >= 6 && text[0] == '#' {
		text = text[6:]
	}
	return &DonorError{Number: int(binary.LittleEndian.Uint16(packet[1:])), Message: string(text)}
}
