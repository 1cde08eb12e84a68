//go:build !without_pulsar

package pulsar

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	client "github.com/apache/pulsar-client-go/pulsar"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/pulsarconsumer/podenv"
)

// memoryLimit limits, in bytes, what the library keeps of messages to send.
const memoryLimit = 32 << 20

// open creates a client. It does not connect yet. It reads the credentials now; the client reads the token and the client certificate again
// for each connection.
func open(s Settings, log *slog.Logger, within limits) (client.Client, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	files := credentials{folder: s.Credentials}
	if s.Credentials != "" && !files.any() {
		return nil, fmt.Errorf("read the credentials in %s: the Secret does not exist, or has none of the keys %s: create it, or remove spec.secret", s.Credentials, strings.Join(keys(), ", "))
	}
	options := client.ClientOptions{
		URL: s.Server, ConnectionTimeout: dialTimeout, OperationTimeout: within.answer, KeepAliveInterval: within.alive,
		Logger: libraryLog(log), MemoryLimitBytes: memoryLimit,
		// Each client needs its own registry: a second client would find its metrics already registered.
		MetricsRegisterer: prometheus.NewRegistry(),
	}
	secure := strings.HasPrefix(s.Server, schemeTLS+":")
	if secure {
		config, err := files.tls()
		if err != nil {
			return nil, err
		}
		options.TLSConfig = config
	}
	switch {
	case files.has(podenv.KeyToken):
		options.Authentication = client.NewAuthenticationTokenFromFile(files.path(podenv.KeyToken))
		if !secure {
			log.Warn("sending the token without TLS: anyone who can read the connection can use it", "server", s.Server)
		}
	case files.has(podenv.KeyCertificate) && secure:
		options.Authentication = client.NewAuthenticationTLS(files.path(podenv.KeyCertificate), files.path(podenv.KeyPrivate))
	}
	opened, err := client.NewClient(options)
	if err != nil {
		return nil, fmt.Errorf("open a client for %s: %w", s.Server, err)
	}
	return opened, nil
}

// credentials is a folder with the keys of a Secret as files.
type credentials struct {
	folder string
}

func keys() []string {
	return []string{podenv.KeyToken, podenv.KeyAuthority, podenv.KeyCertificate, podenv.KeyPrivate}
}

func (c credentials) path(key string) string { return filepath.Join(c.folder, key) }

func (c credentials) has(key string) bool {
	if c.folder == "" {
		return false
	}
	_, err := os.Stat(c.path(key))
	return err == nil
}

func (c credentials) any() bool {
	return slices.ContainsFunc(keys(), c.has)
}

// tls returns a configuration that verifies each broker by its own name: the library itself would verify all by the service URL's host.
func (c credentials) tls() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.has(podenv.KeyAuthority) {
		pool, err := c.authorities()
		if err != nil {
			return nil, err
		}
		config.RootCAs = pool
	}
	if c.has(podenv.KeyCertificate) {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(c.path(podenv.KeyCertificate), c.path(podenv.KeyPrivate))
			if err != nil {
				return nil, fmt.Errorf("read the client certificate: %w", err)
			}
			return &pair, nil
		}
	}
	return config, nil
}

var errNoCertificates = errors.New("it has no certificate in PEM form")

func (c credentials) authorities() (*x509.CertPool, error) {
	content, err := os.ReadFile(c.path(podenv.KeyAuthority))
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("read the certificate authority %s: %w", c.path(podenv.KeyAuthority), errNoCertificates)
	}
	return pool, nil
}
