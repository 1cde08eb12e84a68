package clone

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
)

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	data, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestEncoding checks the bytes that are sent, as a donor expects them.
func TestEncoding(t *testing.T) {
	t.Parallel()
	const emptyLocator = "0c 22000000 00000064 00000022 00000001 0000000000000000 0000000000000000 00000000 00 00"
	tests := map[string]struct {
		got  []byte
		want string
	}{
		"beginning, DDL allowed":     {encodeInit(false), "02010000 2c010080" + emptyLocator},
		"beginning, DDL blocked":     {encodeInit(true), "02010000 2c010000" + emptyLocator},
		"acknowledgement":            {encodeAck(locator{1, 2}, []byte{3}), "00000000 0c 02000000 0102 01000000 03"},
		"the end of a stage":         {stateDesc{state: 3, task: 1, chunks: 2, files: 4, estimate: 5, disk: 6, ack: true}.encode(), "00000064 0000002e 00000003 00000003 00000001 00000002 00000004 0000000000000005 0000000000000006 0002"},
		"the beginning of a stage":   {stateDesc{state: 2, start: true}.encode(), "00000064 0000002e 00000003 00000002 00000000 00000000 00000000 0000000000000000 0000000000000000 0001"},
		"a request for TLS":          {loginPrefix(), "01aa0800 ffffff00 2d" + strings.Repeat("00", 23)},
		"a proof of no password":     {scramble("", []byte("12345678901234567890")), ""},
		"a proof of the password":    {scramble("clone me", []byte("12345678901234567890")), "e2157dc47c60dfdf4476badf721a63d7f39a7b3aa436f9a5e0eecc1e05a2d722"},
		"the first page, its header": {mustFirstPage(t, fileDesc{space: 0x1234, spaceFlags: plainFlags})[4:58], "00000000 00016250 00000001 0000000000000000 0000 0000000000000000 00001234 00001234 00000000 00000000 00000000 00004021"},
	}
	for what, test := range tests {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			if difference := cmp.Diff(unhex(t, test.want), test.got, cmpopts.EquateEmpty()); difference != "" {
				t.Error(difference)
			}
		})
	}
}

func mustFirstPage(t testing.TB, desc fileDesc) []byte {
	t.Helper()
	page, err := firstPage(desc, release)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

func TestParseFile(t *testing.T) {
	t.Parallel()
	data := unhex(t, `00000064 00000046 00000004  00000002 0000000000010000 0000000000008000 00004021 00001000 0009
		00000007 00000003 00000001 00000002 00000008 2e2f612f62633100`)
	binary.BigEndian.PutUint32(data[4:], uint32(len(data)))
	want := fileDesc{state: snapshotFiles, size: 65536, spaceFlags: plainFlags, space: 7, index: 3, renamed: true, name: "./a/bc1"}
	got, err := parseFile(data)
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func TestParseData(t *testing.T) {
	t.Parallel()
	data := unhex(t, `00000064 00000034 00000005  00000003 00000000 00000001 00000002 00000009 00004000 0000000100000000 0000000200000000`)
	want := dataDesc{state: snapshotPages, file: 9, length: 16384, offset: 1 << 32, size: 2 << 32}
	got, err := parseData(data)
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func TestParseLocators(t *testing.T) {
	t.Parallel()
	const header = "00000064 00000022 00000001"
	body := strings.Repeat("11", 22)
	tests := map[string]struct {
		payload string
		version uint32
		err     string
	}{
		"the newest protocol": {payload: "02010000 0c 22000000" + header + body, version: protocolV3},
		"the oldest protocol": {payload: "00010000 0c 22000000" + header + body, version: protocolV1},
		"a future protocol":   {payload: "03010000 0c 22000000" + header + body, err: "clone protocol 0x103"},
		"another engine":      {payload: "02010000 2a 22000000" + header + body, err: "storage engine number 42"},
		"two engines":         {payload: "02010000 0c 22000000" + header + body + "2a 00000000", err: "more than one"},
		"cut short":           {payload: "02010000 0c 220000", err: "locators of 8 bytes"},
		"future descriptors": {payload: "02010000 0c 22000000 00000065 00000022 00000001" + body,
			err: "descriptor version 101"},
	}
	for reason, test := range tests {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			version, of, err := parseLocators(unhex(t, test.payload))
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error is %v, want %q", err, test.err)
				}
				return
			}
			if err != nil || version != test.version || len(of) != 34 {
				t.Errorf("got %#x, %d bytes, %v", version, len(of), err)
			}
		})
	}
}

func TestDeclare(t *testing.T) {
	t.Parallel()
	result := Result{Settings: map[string]string{}}
	for _, one := range []struct {
		response byte
		payload  string
	}{
		{responsePlugin, "01000000 61"}, {responsePluginV2, "01000000 62 02000000 6263"}, {responseCollation, "01000000 63"},
		{responseConfig, "01000000 64 01000000 65"}, {responseConfigV3, "01000000 66 00000000"},
	} {
		if known, err := result.declare(one.response, unhex(t, one.payload)); !known || err != nil {
			t.Errorf("response %d: %t, %v", one.response, known, err)
		}
	}
	want := Result{Plugins: []Plugin{{Name: "a"}, {Name: "b", Library: "bc"}}, Collations: []string{"c"}, Settings: map[string]string{"d": "e", "f": ""}}
	if difference := cmp.Diff(want, result); difference != "" {
		t.Error(difference)
	}
	for _, payload := range []string{"01000000", "ffffffff 61", "01000000 61 00", "0100"} {
		if _, err := result.declare(responseCollation, unhex(t, payload)); err == nil {
			t.Errorf("%s is accepted", payload)
		}
	}
}

func TestParseDonorError(t *testing.T) {
	t.Parallel()
	err := parseDonorError(unhex(t, "320e0000 546f6f206d616e79"))
	if difference := cmp.Diff(error(&DonorError{Number: 3634, Message: "Too many"}), err); difference != "" || !IsBusy(err) {
		t.Error(difference)
	}
}

func TestCleanName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"./a/b.ibd": "a/b.ibd", "ibdata1": "ibdata1", "./a@002db/t@002f1#p#p0.ibd": "a@002db/t@002f1#p#p0.ibd", "undo_001": "undo_001"} {
		if got, err := cleanName(name); err != nil || got != want {
			t.Errorf("%q becomes %q, %v; want %q", name, got, err, want)
		}
	}
	for _, name := range []string{"", ".", "./", "..", "../a", "a/../b", "./../a", "/a", ".//a", "a//b", "a/", "a/.", "a\\b", "a\nb", "#clone", "#clone/x", "././a"} {
		var unsupported *UnsupportedError
		if got, err := cleanName(name); !errors.As(err, &unsupported) {
			t.Errorf("%q becomes %q, %v", name, got, err)
		}
	}
}

func TestParseRelease(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]uint32{"9.7.4-2": 90704, "8.0.26": 80026, "8.4.10-debug-log": 80410, "9.7.4.0-2": 90704} {
		if got, err := parseRelease(version); err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", version, got, err, want)
		}
	}
	for _, version := range []string{"", "8.0", "mysql", "8.0.x", "800.0.1"} {
		if got, err := parseRelease(version); err == nil {
			t.Errorf("%q is %d", version, got)
		}
	}
}

func TestParseGreeting(t *testing.T) {
	t.Parallel()
	packet := append([]byte{10}, "9.7.4-2\x00"...)
	packet = append(packet, unhex(t, "2a000000 3132333435363738 00 ffff ff 0200 ffdf 15 00000000000000000000")...)
	packet = append(packet, "901234567890\x00caching_sha2_password\x00"...)
	got, err := parseGreeting(packet)
	want := greeting{version: "9.7.4-2", thread: 42, nonce: []byte("12345678901234567890"), flags: 0xdfffffff}
	if difference := cmp.Diff(want, got, cmp.AllowUnexported(greeting{})); difference != "" || err != nil {
		t.Error(difference, err)
	}
	_, err = parseGreeting(append([]byte{0xff, 0x10, 0x04}, "Too many connections"...))
	if difference := cmp.Diff(error(&DonorError{Number: 1040, Message: "Too many connections"}), err); difference != "" {
		t.Error(difference)
	}
}

func TestPageSizes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		flags  uint32
		want   pageSizes
		extent int64
	}{
		"16 KiB":                      {plainFlags, pageSizes{16 << 10, 16 << 10}, 1 << 20},
		"16 KiB compressed to 8":      {0x4029, pageSizes{16 << 10, 8 << 10}, 512 << 10},
		"16 KiB compressed to 4":      {0x4027, pageSizes{16 << 10, 4 << 10}, 256 << 10},
		"innodb_page_size=4k":         {0x40e1, pageSizes{4 << 10, 4 << 10}, 1 << 20},
		"innodb_page_size=64k":        {0x41e1, pageSizes{64 << 10, 64 << 10}, 4 << 20},
		"a redundant table, no flags": {0, pageSizes{16 << 10, 16 << 10}, 1 << 20},
	}
	for reason, test := range tests {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			got, err := pageSizesOf(test.flags)
			if err != nil || got != test.want || got.extent() != test.extent {
				t.Errorf("got %+v (extent %d), %v", got, got.extent(), err)
			}
		})
	}
	if sizes, err := pageSizesOf(0xf << 6); err == nil {
		t.Errorf("pages of %+v", sizes)
	}
}

// TestLongMessage has a message that takes three packets, the last one empty.
func TestLongMessage(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	go func() {
		defer far.Close()
		body := make([]byte, maxPayload)
		for sequence, length := range []int{maxPayload, maxPayload, 0} {
			header := binary.LittleEndian.AppendUint32(nil, uint32(length)|uint32(sequence)<<24)
			if _, err := far.Write(append(header, body[:length]...)); err != nil {
				return
			}
		}
	}()
	m, err := newWire(near).next()
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, m); err != nil || n != 2*maxPayload {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// TestSilentServer has a server that accepts connections and sends nothing.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	donor := Donor{Host: "127.0.0.1", Port: listener.Addr().(*net.TCPAddr).Port, TLS: &tls.Config{MinVersion: tls.VersionTLS12}}
	if _, err := Copy(ctx, donor, &recorder{}, Observer{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v", err)
	}
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	defer far.Close()
	l := &timedConn{Conn: near, silence: time.Minute}
	done := make(chan error)
	go func() {
		_, err := l.Read(make([]byte, 1))
		done <- err
	}()
	l.interrupt()
	if err := <-done; !errors.Is(err, errCancelled) {
		t.Errorf("reading: %v", err)
	}
	if _, err := l.Write([]byte{1}); !errors.Is(err, errCancelled) {
		t.Errorf("writing: %v", err)
	}
}

// TestAnswer has the exchanges of a login.
func TestAnswer(t *testing.T) {
	t.Parallel()
	donor := Donor{Account: mysqld.Account{User: "u", Password: "clone me"}}
	tests := map[string]struct {
		reply []byte
		sent  string
		done  bool
		err   string
	}{
		"welcome":                         {reply: []byte{replyOK, 0, 0}, done: true},
		"the hash was right":              {reply: []byte{replyMore, moreFastOK}},
		"the server wants the password":   {reply: []byte{replyMore, moreFullLogin}, sent: "clone me\x00"},
		"the server wants another nonce":  {reply: []byte("\xfecaching_sha2_password\x0012345678901234567890\x00"), sent: string(scramble("clone me", []byte("12345678901234567890")))},
		"the account has another plugin":  {reply: []byte("\xfemysql_native_password\x00123\x00"), err: "mysql_native_password"},
		"the server wants something else": {reply: []byte{replyMore, 9}, err: "reply 0x1"},
		"the server refuses":              {reply: []byte("\xff\x15\x04#28000Access denied"), err: "error 1045: Access denied"},
		"the server says nothing":         {err: "an empty reply"},
	}
	for reason, test := range tests {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			conn := &canned{}
			done, err := (&session{packetConn: newWire(conn)}).answer(donor, test.reply)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error is %v, want %q", err, test.err)
				}
				return
			}
			sent := ""
			if len(conn.written) > 4 {
				sent = string(conn.written[4:])
			}
			if err != nil || done != test.done || sent != test.sent {
				t.Errorf("done %t, sent %q, %v", done, sent, err)
			}
		})
	}
}

// FuzzMessages passes arbitrary bytes to every parser.
func FuzzMessages(f *testing.F) {
	f.Add(table(snapshotFiles, 0, "./a.ibd", 1))
	f.Add(dataBytes(dataDesc{state: snapshotFiles}))
	f.Add(startBytes(snapshotFiles, 1))
	f.Add(append([]byte{0, 1, 0, 0, 12, 34, 0, 0, 0}, newLocator()...))
	f.Add([]byte("\x02ab\xfc\x01\x00c\xfb"))
	f.Add([]byte("\x0a9.7.4\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if desc, err := parseState(data); err == nil && len(desc.encode()) != len(data) {
			t.Error("a state changes its length")
		}
		if desc, err := parseFile(data); err == nil && strings.ContainsRune(desc.name, 0) {
			t.Errorf("name %q", desc.name)
		}
		_, _ = parseData(data)
		_, _ = parseHeader(data, 0)
		_, _, _ = parseLocators(data)
		_, _ = parseStrings(data, 2)
		_, _ = parseGreeting(data)
		_ = parseDonorError(data)
		_ = parseError(data)
		if row, err := parseRow(data, 3); err == nil && len(row) != 3 {
			t.Errorf("row %q", row)
		}
		reply := append(binary.LittleEndian.AppendUint32(nil, uint32(len(data)&0xffffff)), data...)
		s := &session{packetConn: newWire(&canned{data: reply})}
		_, _ = s.result()
	})
}

// canned is a connection on which the server has already sent everything.
type canned struct{ data, written []byte }

func (c *canned) Read(to []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	n := copy(to, c.data)
	c.data = c.data[n:]
	return n, nil
}

func (c *canned) Write(data []byte) (int, error) {
	c.written = append(c.written, data...)
	return len(data), nil
}

func (c *canned) Close() error { return nil }
