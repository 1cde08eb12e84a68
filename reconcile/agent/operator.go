package agent

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"time"

	"github.com/mysql-operator/mysql-operator/pki"
)

const (
	// OperatorLife is how long a certificate of OperatorTLS is good for. Whoever keeps one makes it anew long before.
	OperatorLife = 24 * time.Hour
	// operatorSkew is how far the clocks of two machines may be apart.
	operatorSkew = time.Hour

	// The keys of the Secret that holds a cluster's CA.
	authorityCertificateKey = "tls.crt"
	authorityPrivateKey     = "tls.key"
)

// Authority reads a cluster's CA from the data of its Secret, NAME-ca.
func Authority(data map[string][]byte) (*tls.Certificate, error) {
	authority, err := pki.Pair{Certificate: data[authorityCertificateKey], Key: data[authorityPrivateKey]}.Parse()
	if err != nil {
		return nil, fmt.Errorf("read the cluster's CA: %w", err)
	}
	return authority, nil
}

// OperatorTLS is how the operator connects to the agents and transfers of the cluster whose CA this is: it shows a certificate that
// lives in the operator's memory only, and trusts that CA alone.
func OperatorTLS(authority *tls.Certificate, now time.Time) (*tls.Config, error) {
	fresh, err := newOperatorCertificate(authority, now)
	if err != nil {
		return nil, err
	}
	own, err := fresh.Parse()
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(authority.Leaf)
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*own}, RootCAs: pool}, nil
}

func newOperatorCertificate(authority *tls.Certificate, now time.Time) (pki.Pair, error) {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: OperatorName},
		NotBefore:   now.Add(-operatorSkew),
		NotAfter:    now.Add(OperatorLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	return pki.Issue(template, authority)
}
