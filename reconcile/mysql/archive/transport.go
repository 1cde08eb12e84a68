package archive

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	dialLimit     = 30 * time.Second
	continueLimit = 5 * time.Second
	// stallStep is how many bytes are written to the connection at a time.
	stallStep  = 32 << 10
	wireBuffer = 64 << 10
)

// httpClient returns the client for a store. It uses the environment's proxy, and trusts the CAs that authorities returns. It closes a
// connection that transfers no byte for the time of a stall; a request that does transfer bytes may take any time. It follows no redirect,
// because credentials and data must go only to the address in the URL.
func httpClient(location Location, tuning tuning) (*http.Client, error) {
	pool, err := authorities(location)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: min(dialLimit, tuning.stall)}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true) // one request at a time on a connection: a stall is caused by this request
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &watchedConn{Conn: conn, stall: tuning.stall}, nil
		},
		TLSClientConfig:     &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		Protocols:           protocols,
		MaxIdleConnsPerHost: 2 * workers,
		IdleConnTimeout:     tuning.stall,
		// A store that is full, or refuses, can answer before all of an object is sent.
		ExpectContinueTimeout: continueLimit,
		ReadBufferSize:        wireBuffer,
		WriteBufferSize:       wireBuffer,
	}
	return unredirected(checkingTransport{transport}), nil
}

// unredirected returns a client that treats a redirect as the answer.
func unredirected(transport http.RoundTripper) *http.Client {
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// redactingTransport sends requests whose URLs contain credentials in the query, and keeps these out of its errors. It lends the requests'
// bodies (see lent). It follows no redirects: for them, an http.Client rewinds the body while it may still be in use.
type redactingTransport struct{ http.RoundTripper }

// Do implements policy.Transporter of Azure's SDK.
func (d redactingTransport) Do(request *http.Request) (*http.Response, error) {
	response, err := lendingTransport{d.RoundTripper}.RoundTrip(request)
	if err != nil {
		where := url.URL{Scheme: request.URL.Scheme, Host: request.URL.Host, Path: request.URL.Path}
		return nil, &url.Error{Op: request.Method, URL: where.String(), Err: err}
	}
	return response, nil
}

// readKey returns one key of the destination's Secret, without surrounding white space; empty if there is no such key.
func readKey(dir, name string) (string, error) {
	if dir == "" {
		return "", nil
	}
	content, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read credentials: %w", err)
	}
	return strings.TrimSpace(string(content)), nil
}

// readKeys returns several keys of the destination's Secret.
func readKeys(dir string, names ...string) (map[string]string, error) {
	keys := make(map[string]string, len(names))
	for _, name := range names {
		value, err := readKey(dir, name)
		if err != nil {
			return nil, err
		}
		keys[name] = value
	}
	return keys, nil
}

// watchedConn fails if no byte moves for too long in either direction. Bytes in this machine's send buffer count as moving while they
// become fewer: a slow peer has not stalled.
type watchedConn struct {
	net.Conn
	stall time.Duration
	// waiting is the number of bytes in the send buffer at the last check.
	waiting atomic.Int64
}

// Read implements net.Conn.
func (c *watchedConn) Read(p []byte) (int, error) {
	for {
		if err := c.SetReadDeadline(time.Now().Add(c.stall)); err != nil {
			return 0, err
		}
		n, err := c.Conn.Read(p)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) || !c.drains() {
			return n, err
		}
	}
}

// Write implements net.Conn. It also restarts the time limit of a pending Read.
func (c *watchedConn) Write(p []byte) (int, error) {
	written := 0
	for written < len(p) {
		if err := c.SetDeadline(time.Now().Add(c.stall)); err != nil {
			return written, err
		}
		n, err := c.Conn.Write(p[written:min(len(p), written+stallStep)])
		written += n
		if err != nil && (!errors.Is(err, os.ErrDeadlineExceeded) || (n == 0 && !c.drains())) {
			return written, err
		}
	}
	return written, c.SetReadDeadline(time.Now().Add(c.stall))
}

// drains reports whether the peer has taken bytes since the last call.
func (c *watchedConn) drains() bool {
	raw, ok := c.Conn.(syscall.Conn)
	if !ok {
		return false
	}
	control, err := raw.SyscallConn()
	if err != nil {
		return false
	}
	waiting := 0
	var asked error
	if err := control.Control(func(fd uintptr) { waiting, asked = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) }); err != nil || asked != nil {
		return false
	}
	before := c.waiting.Swap(int64(waiting))
	return waiting > 0 && int64(waiting) != before
}
