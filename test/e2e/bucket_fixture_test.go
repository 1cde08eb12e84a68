package e2e

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/pki"
	"github.com/mysql-operator/mysql-operator/test/kube"
)

const (
	bucketName = "backups"
	bucketUser = "e2e"
	bucketKey  = "e2e-secret-key"
)

// bucket is a real S3 server on this machine, reached by Pods through a line that can be cut. It speaks TLS with a CA of its own.
type bucket struct {
	// ca is the certificate that clients have to trust, in PEM; endpoint is its URL as Pods reach it; root is where it keeps what it is given.
	ca, endpoint, root string
	line               *line
}

func startBucket(p *place) *bucket {
	p.t.Helper()
	// Nothing happens if it is up to date.
	build := exec.CommandContext(p.t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-o", mustAbs(p.t.T, ".dev/bin/s3gateway"), ".")
	build.Dir, build.Env = "reconcile/mysql/archive/testdata/gateway", append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if output, err := build.CombinedOutput(); err != nil {
		p.t.Fatalf("build the S3 server: %v\n%s", err, output)
	}
	b := &bucket{root: p.t.TempDir()}
	machine := machineAddress(p)
	certificate, key := b.certificate(p.t.T, machine)
	if err := os.MkdirAll(filepath.Join(b.root, "data", bucketName), 0o700); err != nil {
		p.t.Fatal(err)
	}
	behind := freeAddress(p.t.T)
	ctx, cancel := context.WithCancel(context.WithoutCancel(p.t.Context()))
	server := exec.CommandContext(ctx, ".dev/bin/s3gateway", "--addr", behind, "--auth-key", bucketUser+","+bucketKey,
		"--cert", certificate, "--key", key, filepath.Join(b.root, "data"))
	if err := server.Start(); err != nil {
		cancel()
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		cancel()
		_ = server.Wait() // it was killed
	})
	b.line = startLine(p.t.T, machine, behind)
	b.endpoint = "https://" + b.line.listener.Addr().String()
	p.wait("the S3 server to listen", changeLimit, func(context.Context) (bool, string) {
		connection, err := net.DialTimeout("tcp", behind, time.Second)
		if err != nil {
			return false, err.Error()
		}
		return connection.Close() == nil, ""
	})
	return b
}

// certificate writes a certificate for the server's address, and keeps its CA.
func (b *bucket) certificate(t *testing.T, address string) (certificate, key string) {
	t.Helper()
	now := time.Now()
	authority, err := pki.Issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "a company's own CA"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := authority.Parse()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := pki.Issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: address}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IPAddresses: []net.IP{net.ParseIP(address)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, signer)
	if err != nil {
		t.Fatal(err)
	}
	b.ca = string(authority.Certificate)
	certificate, key = filepath.Join(b.root, "tls.crt"), filepath.Join(b.root, "tls.key")
	for file, content := range map[string][]byte{certificate: pair.Certificate, key: pair.Key} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certificate, key
}

// url is a folder of the bucket, as a manifest names it.
func (b *bucket) url(folder string) string {
	query := url.Values{"endpoint": {b.endpoint}, "region": {"us-east-1"}, "use_path_style": {"true"}}
	return fmt.Sprintf("s3://%s/%s?%s", bucketName, folder, query.Encode())
}

// countFiles counts what the bucket has of a backup, by the backup's name.
func (b *bucket) countFiles(p *place, backup string) int {
	p.t.Helper()
	count := 0
	err := filepath.WalkDir(filepath.Join(b.root, "data", bucketName), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && strings.Contains(path, "/"+p.namespace+"/"+p.cluster+"/"+backup) {
			count++
		}
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return count
}

// secret is the manifest of the Secret with the server's credentials, its address and its CA.
func (b *bucket) secret(name, key string) string {
	indented := ""
	for line := range strings.SplitSeq(strings.TrimSpace(b.ca), "\n") {
		indented += "    " + line + "\n"
	}
	return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: %s}\nstringData:\n  AWS_ACCESS_KEY_ID: %s\n  AWS_SECRET_ACCESS_KEY: %s\n  endpoint: %s\n  ca.crt: |\n%s",
		name, bucketUser, key, b.endpoint, indented)
}

// machineAddress is this machine's, as Pods reach it: where the API server listens.
func machineAddress(p *place) string {
	p.t.Helper()
	config, err := p.kubectl.Rest()
	if err != nil {
		p.t.Fatal(err)
	}
	if !kube.IsDevCluster(p.kubectl.Config) {
		p.t.Skip("Pods of another cluster may not reach a server on this machine")
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		p.t.Fatal(err)
	}
	return server.Hostname()
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

func mustAbs(t *testing.T, path string) string {
	t.Helper()
	absolute, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return absolute
}

// line forwards connections until it is cut. A cut closes the open ones, and new ones as soon as they are accepted.
type line struct {
	listener net.Listener
	to       string
	mu       sync.Mutex
	isCut    bool
	// left is the number of bytes that clients may send before the line cuts itself; negative without a limit.
	left int64
	open map[net.Conn]bool
}

func startLine(t *testing.T, address, to string) *line {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	l := &line{listener: listener, to: to, left: -1, open: map[net.Conn]bool{}}
	go l.run()
	t.Cleanup(func() {
		_ = listener.Close()
		l.cutAfter(0)
	})
	return l
}

func (l *line) run() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return // closed
		}
		go l.carry(client)
	}
}

func (l *line) carry(client net.Conn) {
	server, err := net.Dial("tcp", l.to)
	if err != nil {
		_ = client.Close()
		return
	}
	if !l.register(client, server) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { forward(server, io.TeeReader(client, counter{l}), client) })
	both.Go(func() { forward(client, server, server) })
	both.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, client)
	delete(l.open, server)
}

// register reports whether the line is not cut. It closes both connections otherwise.
func (l *line) register(client, server net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[client], l.open[server] = true, true
	l.closeIfCut()
	return !l.isCut
}

// forward copies until either side ends, and closes both.
func forward(to net.Conn, from io.Reader, source net.Conn) {
	_, _ = io.Copy(to, from) // how it ended does not matter
	_ = to.Close()
	_ = source.Close()
}

// counter counts what clients send, and cuts the line when that is enough.
type counter struct{ line *line }

func (c counter) Write(data []byte) (int, error) {
	c.line.mu.Lock()
	defer c.line.mu.Unlock()
	if c.line.left >= 0 {
		c.line.left = max(0, c.line.left-int64(len(data)))
		c.line.isCut = c.line.left == 0
		c.line.closeIfCut()
	}
	return len(data), nil
}

// cutAfter cuts the line when clients have sent so many more bytes, with 0 at once.
func (l *line) cutAfter(bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left, l.isCut = bytes, bytes == 0
	l.closeIfCut()
}

func (l *line) closeIfCut() {
	if !l.isCut {
		return
	}
	for connection := range l.open {
		_ = connection.Close()
	}
	clear(l.open)
}

func (l *line) mend() { l.cutAfter(-1) }
