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
	// inUse are the files that mysqld is known to use, offered those that changed saw last; nil before there are any.
	inUse, offered *contents
	last           *parsed
}

// contents are what the files hold.
type contents struct{ certificate, key, ca []byte }

func (c *contents) same(other *contents) bool {
	return bytes.Equal(c.certificate, other.certificate) && bytes.Equal(c.key, other.key) && bytes.Equal(c.ca, other.ca)
}

// parsed is what the files say, and what they were when it was read.
type parsed struct {
	contents
	pair tls.Certificate
	pool *x509.CertPool
}

// digestLength is how many characters of a hash tell a member's files from any others that the operator gives it.
const digestLength = 16

// TLSDigest stands for a member's certificate files in its status: what is to be trusted, and what is shown.
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

// read reads the files. Their parts are parsed only when they have changed: anybody who connects makes a server read them.
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

// client is how this member connects to another.
func (t *tlsFiles) client() (*tls.Config, error) {
	pair, pool, err := t.read()
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, RootCAs: pool}, nil
}

// server reads the files anew for every connection, so that renewed certificates are in force at once. Clients without a certificate may
// connect: kubelet's probes have none. What they may ask for is decided for each route. No session is resumed, so that every connection is
// held against the CA of now.
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

// verify holds the certificate of a client against the CAs of now.
func (t *tlsFiles) verify(client *x509.Certificate) error {
	_, pool, err := t.read()
	if err != nil {
		return err
	}
	_, err = client.Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return err
}

// changed reports whether the files differ from those that mysqld is known to use. At the agent's start nothing is known: they may have
// been replaced since mysqld started, while no agent ran.
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

// taken notes that mysqld uses the files as they were when they were last looked at, and returns their digest. mysqld may have read later
// ones, and reads them again then.
func (t *tlsFiles) taken() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inUse = t.offered
	return TLSDigest(t.inUse.ca, t.inUse.certificate)
}

// unknown notes that it is not known which files mysqld uses.
func (t *tlsFiles) unknown() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inUse = nil
}
