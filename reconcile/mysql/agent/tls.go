package agent

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"sync"
)

// tlsFiles are the member's certificate files, which kubelet replaces when the operator renews them.
type tlsFiles struct {
	layout Layout
	mu     sync.Mutex
	// inUse are the files that mysqld is known to use, offered those that changed read last; nil before there are any.
	inUse, offered *contents
	last           *parsed
}

// contents are what the files hold.
type contents struct{ certificate, key, ca []byte }

func (c *contents) same(other *contents) bool {
	return bytes.Equal(c.certificate, other.certificate) && bytes.Equal(c.key, other.key) && bytes.Equal(c.ca, other.ca)
}

// parsed is the parsed files, with the contents that were parsed.
type parsed struct {
	contents
	pair tls.Certificate
	pool *x509.CertPool
}

// digestLength is how many characters of a hash distinguish a member's files from all others that the operator gives it.
const digestLength = 16

// TLSDigest returns a digest of a member's CA and certificate files for its status.
func TLSDigest(ca, certificate []byte) string {
	hash := sha256.New()
	for _, part := range [][]byte{ca, certificate} {
		own := sha256.Sum256(part)
		hash.Write(own[:])
	}
	return hex.EncodeToString(hash.Sum(nil))[:digestLength]
}

func (t *tlsFiles) contents() (*contents, error) {
	found := &contents{}
	for file, into := range map[string]*[]byte{t.layout.certFile(): &found.certificate, t.layout.keyFile(): &found.key, t.layout.caFile(): &found.ca} {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read the member's TLS files: %w", err)
		}
		*into = content
	}
	return found, nil
}

// read reads the files. It parses them only when they have changed, because every client that connects makes a server read them.
func (t *tlsFiles) read() (tls.Certificate, *x509.CertPool, error) {
	found, err := t.contents()
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last != nil && t.last.same(found) {
		return t.last.pair, t.last.pool, nil
	}
	now := parsed{contents: *found}
	pair, err := tls.X509KeyPair(now.certificate, now.key)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("read the member's certificate: %w", err)
	}
	now.pair, now.pool = pair, x509.NewCertPool()
	if !now.pool.AppendCertsFromPEM(now.ca) {
		return tls.Certificate{}, nil, errors.New("read the cluster's CA: no certificate in " + t.layout.caFile())
	}
	t.last = &now
	return now.pair, now.pool, nil
}

// client returns how this member connects to another.
func (t *tlsFiles) client() (*tls.Config, error) {
	pair, pool, err := t.read()
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, RootCAs: pool}, nil
}

// server returns a configuration that reads the files again for every connection, so that renewed certificates take effect at once. Clients
// without a certificate may connect, because kubelet's probes have none. Each route decides which clients it serves. Sessions are not
// resumed, so that every connection is verified against the current CA.
func (t *tlsFiles) server() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			pair, pool, err := t.read()
			if err != nil {
				return nil, err
			}
			return &tls.Config{
				MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair},
				ClientCAs: pool, ClientAuth: tls.VerifyClientCertIfGiven, SessionTicketsDisabled: true,
			}, nil
		},
	}
}

// verify verifies a client's certificate against the current CAs.
func (t *tlsFiles) verify(client *x509.Certificate) error {
	_, pool, err := t.read()
	if err != nil {
		return err
	}
	_, err = client.Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return err
}

// changed reports whether the files differ from those that mysqld is known to use. When the agent starts, none are known: kubelet may have
// replaced them since mysqld started, while no agent ran.
func (t *tlsFiles) changed() bool {
	now, err := t.contents()
	if err != nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.offered = now
	return t.inUse == nil || !now.same(t.inUse)
}

// taken records that mysqld uses the files that changed read last, and returns their digest. mysqld may have loaded later ones. If so, it
// loads them again.
func (t *tlsFiles) taken() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inUse = t.offered
	return TLSDigest(t.inUse.ca, t.inUse.certificate)
}

// unknown records that the agent does not know which files mysqld uses.
func (t *tlsFiles) unknown() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inUse = nil
}
