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
}

func (t *tlsFiles) read() (tls.Certificate, *x509.CertPool, error) {
	pair, err := tls.LoadX509KeyPair(t.layout.certFile(), t.layout.keyFile())
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("read the member's certificate: %w", err)
	}
	ca, err := os.ReadFile(t.layout.caFile())
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("read the cluster's CA: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return tls.Certificate{}, nil, errors.New("read the cluster's CA: no certificate in " + t.layout.caFile())
	}
	return pair, pool, nil
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
// certificate may connect: kubelet's probes have none. What they may ask for is decided for each route.
func (t *tlsFiles) server() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			pair, pool, err := t.read()
			if err != nil {
				return nil, err
			}
			return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.VerifyClientCertIfGiven}, nil
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
