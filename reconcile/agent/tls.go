package agent

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
)

// tlsFiles are the member's certificate files, which kubelet replaces when the operator renews them.
type tlsFiles struct {
	layout Layout
	mu     sync.Mutex
	// inUse is the certificate that mysqld is known to use, offered the one that changed saw last.
	inUse, offered []byte
	last           *parsed
}

// parsed is what the files say, and what they were when it was read.
type parsed struct {
	certificate, key, ca []byte
	pair                 tls.Certificate
	pool                 *x509.CertPool
}

func (p *parsed) same(other parsed) bool {
	return bytes.Equal(p.certificate, other.certificate) && bytes.Equal(p.key, other.key) && bytes.Equal(p.ca, other.ca)
}

// read reads the files. Their parts are parsed only when they have changed: anybody who connects makes a server read them.
func (t *tlsFiles) read() (tls.Certificate, *x509.CertPool, error) {
	var contents [3][]byte
	for i, file := range []string{t.layout.certFile(), t.layout.keyFile(), t.layout.caFile()} {
		content, err := os.ReadFile(file)
		if err != nil {
			return tls.Certificate{}, nil, fmt.Errorf("read the member's TLS files: %w", err)
		}
		contents[i] = content
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := parsed{certificate: contents[0], key: contents[1], ca: contents[2]}
	if t.last != nil && t.last.same(now) {
		return t.last.pair, t.last.pool, nil
	}
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

// server reads the files anew for every connection, so that renewed certificates are in force at once. Clients without a
// certificate may connect: kubelet's probes have none. What they may ask for is decided for each route. No session is resumed, so that every
// connection is held against the CA of now.
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

// changed says whether the files differ from those that mysqld is known to use. At the agent's start nothing is known: they may have been
// renewed since mysqld started, while no agent ran.
func (t *tlsFiles) changed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, err := os.ReadFile(t.layout.certFile())
	if err != nil {
		return false
	}
	t.offered = now
	return !bytes.Equal(now, t.inUse)
}

// taken notes that mysqld uses the files as they were when they were last looked at; it may have read later ones, and reads them again then.
func (t *tlsFiles) taken() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inUse = t.offered
}
