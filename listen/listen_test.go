package listen

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mysql-operator/mysql-operator/pki"
)

const friend = "friend"

// many is how many strangers connect at once.
const many = 300

// authority issues certificates for one test.
type authority struct {
	t    *testing.T
	pair *tls.Certificate
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	pair, err := pki.Issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "CA"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := pair.Parse()
	if err != nil {
		t.Fatal(err)
	}
	return authority{t: t, pair: parsed}
}

func (a authority) issue(name string) tls.Certificate {
	a.t.Helper()
	pair, err := pki.Issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.pair)
	if err != nil {
		a.t.Fatal(err)
	}
	parsed, err := pair.Parse()
	if err != nil {
		a.t.Fatal(err)
	}
	return *parsed
}

func (a authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.pair.Leaf)
	return pool
}

func (a authority) server() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{a.issue("server")},
		ClientCAs: a.pool(), ClientAuth: tls.VerifyClientCertIfGiven,
	}
}

func (a authority) client(name string) *tls.Config {
	security := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: a.pool(), ServerName: "server"}
	if name != "" {
		security.Certificates = []tls.Certificate{a.issue(name)}
	}
	return security
}

func trustFriends(state tls.ConnectionState) bool {
	return len(state.VerifiedChains) > 0 && state.PeerCertificates[0].Subject.CommonName == friend
}

// serveOn runs a server until the test ends.
func serveOn(t *testing.T, server Server) string {
	t.Helper()
	if server.Handler == nil {
		server.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return listener.Addr().String()
}

// from returns a dialer that connects from a loopback address.
func from(address string) *net.Dialer {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}, Timeout: 5 * time.Second}
}

func strangersAddress(number int, each bool) string {
	if !each {
		return "127.95.0.1"
	}
	return fmt.Sprintf("127.95.%d.%d", 1+number/200, 1+number%200)
}

// client returns a client with its own connections.
func client(t *testing.T, security *tls.Config, dialer *net.Dialer) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: security, DialContext: dialer.DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 5 * time.Second}
}

// ask sends a request and reports whether it used an existing connection.
func ask(t *testing.T, by *http.Client, address string) (reused bool, err error) {
	t.Helper()
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }})
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := by.Do(request)
	if err != nil {
		return reused, err
	}
	defer answer.Body.Close()
	if _, err := io.ReadAll(answer.Body); err != nil {
		return reused, err
	}
	if answer.StatusCode != http.StatusOK {
		return reused, fmt.Errorf("it answered %s", answer.Status)
	}
	return reused, nil
}

// within fails the test if a legitimate client is not answered within a second.
func within(t *testing.T, who string, do func() error) {
	t.Helper()
	began := time.Now()
	if err := do(); err != nil {
		t.Errorf("%s is not answered: %v", who, err)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("%s waited for %s", who, took)
	}
}

func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapInuse >> 20
}

// header returns almost a megabyte; all strangers send the same bytes, so that the test itself needs little memory.
func header() []byte {
	return []byte("GET / HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X-A: "+strings.Repeat("a", 4000)+"\r\n", 240))
}

// TestStrangersTakeLittleMemory: the serving process may have as little as 128 MiB.
func TestStrangersTakeLittleMemory(t *testing.T) { //nolint:paralleltest // it measures the whole process
	signer := newAuthority(t)
	for name, story := range map[string]struct { //nolint:paralleltest // the same
		security *tls.Config
		header   []byte
	}{
		"large headers":           {nil, header()},
		"large headers, over TLS": {signer.server(), header()},
		"idle, over TLS":          {signer.server(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			address := serveOn(t, Server{TLS: story.security, Trusted: trustFriends})
			before := heap()
			for number := range many {
				connection, err := from(strangersAddress(number, true)).DialContext(t.Context(), "tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = connection.Close() })
				if story.security != nil {
					connection = tls.Client(connection, signer.client(""))
				}
				go func() { _, _ = connection.Write(story.header) }()
			}
			peak := uint64(0)
			for range 5 {
				within(t, "a new client", func() error {
					scheme := "http://"
					if story.security != nil {
						scheme = "https://"
					}
					_, err := ask(t, client(t, signer.client(""), from("127.0.0.1")), scheme+address)
					return err
				})
				peak = max(peak, heap())
			}
			if peak > before+32 {
				t.Errorf("the heap grew from %d to %d MiB", before, peak)
			}
		})
	}
}

// TestNobodyIsKeptOut: neither strangers that hold connections open nor those that connect again and again keep other clients out.
func TestNobodyIsKeptOut(t *testing.T) {
	t.Parallel()
	for name, each := range map[string]bool{"one stranger": false, "many strangers": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := serveOn(t, Server{})
			for number := range many {
				connection, err := from(strangersAddress(number, each)).DialContext(t.Context(), "tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = connection.Close() })
			}
			for _, own := range []string{"127.0.0.1", strangersAddress(0, each)} {
				within(t, "the client at "+own, func() error {
					_, err := ask(t, client(t, nil, from(own)), "http://"+address)
					return err
				})
			}
		})
	}
}

func TestTrustedClientsKeepTheirConnections(t *testing.T) {
	t.Parallel()
	signer := newAuthority(t)
	address := serveOn(t, Server{TLS: signer.server(), Trusted: trustFriends})
	trusted := client(t, signer.client(friend), from("127.0.0.1"))
	other := client(t, signer.client("other"), from("127.0.0.1"))
	for round := range 3 {
		reused, err := ask(t, trusted, "https://"+address)
		if err != nil || reused != (round > 0) {
			t.Errorf("round %d: trusted: reused %t, %v", round, reused, err)
		}
		if reused, err := ask(t, other, "https://"+address); err != nil || reused {
			t.Errorf("round %d: not trusted: reused %t, %v", round, reused, err)
		}
		for range DefaultStrangers + 1 {
			connection, err := from("127.0.0.1").DialContext(t.Context(), "tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = connection.Close() })
		}
	}
}

// TestReservedPlacesAreFew: the oldest connections of trusted clients end when there are too many.
func TestReservedPlacesAreFew(t *testing.T) {
	t.Parallel()
	signer := newAuthority(t)
	address := serveOn(t, Server{TLS: signer.server(), Trusted: trustFriends})
	security := signer.client(friend)
	clients := make([]*http.Client, 0, trustedPlaces+1)
	for range trustedPlaces + 1 {
		clients = append(clients, client(t, security, from("127.0.0.1")))
	}
	for number, one := range clients {
		if _, err := ask(t, one, "https://"+address); err != nil {
			t.Errorf("client %d: %v", number, err)
		}
	}
	for number, want := range map[int]bool{0: false, trustedPlaces: true} {
		if reused, err := ask(t, clients[number], "https://"+address); err != nil || reused != want {
			t.Errorf("client %d: reused %t, want %t (%v)", number, reused, want, err)
		}
	}
}

func TestStrangersMayBeKept(t *testing.T) {
	t.Parallel()
	address := serveOn(t, Server{KeepStrangers: true})
	stranger := client(t, nil, from("127.0.0.1"))
	for round := range 2 {
		if reused, err := ask(t, stranger, "http://"+address); err != nil || reused != (round > 0) {
			t.Errorf("round %d: reused %t, %v", round, reused, err)
		}
	}
}

func TestLargeBodiesOfStrangersAreNotAwaited(t *testing.T) {
	t.Parallel()
	address := serveOn(t, Server{})
	for body, want := range map[string]string{
		"Content-Length: 2\r\n\r\n{}":        "200",
		"Content-Length: 1000000\r\n\r\n{}":  "",
		"Transfer-Encoding: chunked\r\n\r\n": "",
	} {
		connection, err := from("127.0.0.1").DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = connection.Close() })
		fmt.Fprintf(connection, "PUT / HTTP/1.1\r\nHost: x\r\n%s", body)
		line, err := bufio.NewReader(connection).ReadString('\n')
		if (want == "") != (err != nil) || !strings.Contains(line, want) {
			t.Errorf("%q: it answers %q (%v), want %q", body, line, err, want)
		}
	}
}

// TestLongHeadersAreNotAnswered: Go's server keeps a connection open for half a second after it has answered a long header. Strangers could
// use all connections that way.
func TestLongHeadersAreNotAnswered(t *testing.T) {
	t.Parallel()
	signer := newAuthority(t)
	for name, story := range map[string]struct {
		security *tls.Config
		size     int
		want     string
	}{
		"long":                 {nil, MaxHeader, ""},
		"long, over TLS":       {signer.server(), MaxHeader, ""},
		"many times over":      {nil, 100 * MaxHeader, ""},
		"just right":           {nil, MaxHeader - 100, "200"},
		"just right, over TLS": {signer.server(), MaxHeader - 4<<10, "200"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			connection, err := from("127.0.0.1").DialContext(t.Context(), "tcp", serveOn(t, Server{TLS: story.security}))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = connection.Close() })
			if story.security != nil {
				connection = tls.Client(connection, signer.client(""))
			}
			_, _ = fmt.Fprintf(connection, "GET / HTTP/1.1\r\nHost: x\r\nX: %s\r\n\r\n", strings.Repeat("a", story.size)) // the connection may end before everything is sent
			line, err := bufio.NewReader(connection).ReadString('\n')
			if (story.want == "") != (err != nil) || !strings.Contains(line, story.want) {
				t.Errorf("it answers %q (%v), want %q", line, err, story.want)
			}
		})
	}
}

// TestEveryRequestMayHaveAHeader: each request has the whole limit for its header.
func TestEveryRequestMayHaveAHeader(t *testing.T) {
	t.Parallel()
	stranger := client(t, nil, from("127.0.0.1"))
	address := serveOn(t, Server{KeepStrangers: true})
	for round := range 4 {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+address, strings.NewReader(strings.Repeat("b", 2*MaxHeader)))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X", strings.Repeat("a", MaxHeader/2))
		answer, err := stranger.Do(request)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("round %d: %v, %v", round, answer, err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
	}
}

// TestOneClientMayAskManyThingsAtOnce: an API server opens a connection for each object to convert, all from one address.
func TestOneClientMayAskManyThingsAtOnce(t *testing.T) {
	t.Parallel()
	const atOnce = 200
	var under sync.WaitGroup
	under.Add(atOnce)
	address := serveOn(t, Server{KeepStrangers: true, Strangers: atOnce, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		under.Done()
		under.Wait()
	})})
	stranger := client(t, nil, from("127.0.0.1"))
	var asking sync.WaitGroup
	for range atOnce {
		asking.Go(func() {
			if _, err := ask(t, stranger, "http://"+address); err != nil {
				t.Error(err)
			}
		})
	}
	asking.Wait()
}

// pipes is a listener whose clients are in the same process, so that the test can simulate time.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case one := <-p.accepted:
		return one, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error   { close(p.closed); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func TestSlowClientsAreCutOff(t *testing.T) {
	t.Parallel()
	reads := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	for name, story := range map[string]struct {
		sends string
		after time.Duration
	}{
		"nothing":             {"", HeaderTime},
		"half a header":       {"GET / HTTP/1.1\r\nHost: x\r\n", HeaderTime},
		"half a body":         {"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{", DefaultRequest},
		"nothing more, later": {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", idleTime},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				line := pipes{accepted: make(chan net.Conn), closed: make(chan struct{})}
				ended := make(chan error, 1)
				go func() { ended <- Server{Handler: reads, KeepStrangers: true}.Serve(ctx, line) }()
				near, far := net.Pipe()
				line.accepted <- far
				began := time.Now()
				go func() { _, _ = near.Write([]byte(story.sends)) }()
				_, _ = io.Copy(io.Discard, near)
				if took := time.Since(began); took != story.after {
					t.Errorf("it is cut off after %s, want %s", took, story.after)
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestServeEndsAtOnce: idle clients do not delay the end.
func TestServeEndsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		line := pipes{accepted: make(chan net.Conn), closed: make(chan struct{})}
		ended := make(chan error, 1)
		go func() { ended <- Server{Handler: http.NotFoundHandler()}.Serve(ctx, line) }()
		_, far := net.Pipe()
		line.accepted <- far
		synctest.Wait()
		began := time.Now()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("it ended after %s", took)
		}
	})
}

func TestVictim(t *testing.T) {
	t.Parallel()
	for name, story := range map[string]struct {
		open string // the addresses of the open connections, the oldest first; ! means that the server is answering a request
		want int
	}{
		"all alike":                               {"a b c d", 0},
		"one has the most":                        {"a b b c", 1},
		"the newest is of those who have most":    {"a b c b", 1},
		"its oldest is being answered":            {"a b! b c", 2},
		"all of them are being answered":          {"a b! b! c", 1},
		"two have the most":                       {"a b c c b", 1},
		"only the newest is not being answered":   {"a! a! a", 0},
		"others are idle, but have fewer":         {"a b! b! c d", 1},
		"the oldest of all alike is being served": {"a! b c", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var open []*connection
			for field := range strings.FieldsSeq(story.open) {
				address, busy := strings.CutSuffix(field, "!")
				open = append(open, &connection{address: address, busy: busy})
			}
			if got := connectionToClose(open); got != open[story.want] {
				t.Errorf("%+v is closed, want number %d", got, story.want)
			}
		})
	}
}
