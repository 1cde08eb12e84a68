package mysqlcluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/agent"
)

const (
	authorityLife = 10 * 365 * 24 * time.Hour
	memberLife    = 365 * 24 * time.Hour
	operatorLife  = 24 * time.Hour
	// clockSkew is how far the clocks of two machines may be apart.
	clockSkew = time.Hour
)

// pair is a certificate with its key, both in PEM.
type pair struct{ certificate, key []byte }

// newAuthority makes a cluster's own CA.
func newAuthority(n names, now time.Time) (pair, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: n.cluster + "." + n.namespace + " mysql-operator CA"},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(authorityLife),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	return issue(template, nil)
}

// newMemberCertificate serves all members: as mysqld and agent, and as a client of each other.
func newMemberCertificate(n names, authority *tls.Certificate, now time.Time) (pair, error) {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: n.cluster + "." + n.namespace},
		NotBefore:   now.Add(-clockSkew),
		NotAfter:    now.Add(memberLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    memberNames(n),
	}
	return issue(template, authority)
}

func memberNames(n names) []string {
	return slices.Concat([]string{"*." + n.pods() + "." + n.namespace + ".svc", "localhost"}, serviceNames(n, n.cluster), serviceNames(n, n.read()))
}

func serviceNames(n names, service string) []string {
	return []string{service, service + "." + n.namespace, n.service(service), n.service(service) + ".cluster.local"}
}

// newOperatorCertificate is what the operator shows to agents; it lives in the operator's memory only.
func newOperatorCertificate(authority *tls.Certificate, now time.Time) (pair, error) {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: agent.OperatorName},
		NotBefore:   now.Add(-clockSkew),
		NotAfter:    now.Add(operatorLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	return issue(template, authority)
}

// issue makes a key and a certificate for it, signed by the authority or, without one, by itself.
func issue(template *x509.Certificate, authority *tls.Certificate) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("make a key: %w", err)
	}
	template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return pair{}, fmt.Errorf("make a serial number: %w", err)
	}
	parent, signer := template, any(key)
	if authority != nil {
		parent, signer = authority.Leaf, authority.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return pair{}, fmt.Errorf("sign certificate of %s: %w", template.Subject.CommonName, err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return pair{}, fmt.Errorf("encode key: %w", err)
	}
	return pair{
		certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}),
	}, nil
}

// parse reads a pair with its leaf.
func (p pair) parse() (*tls.Certificate, error) {
	parsed, err := tls.X509KeyPair(p.certificate, p.key)
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	return &parsed, nil
}

// renewable says whether less than a third of a certificate's life is left.
func renewable(leaf *x509.Certificate, now time.Time) bool {
	return leaf.NotAfter.Sub(now) < leaf.NotAfter.Sub(leaf.NotBefore)/3
}

// memberCertificateFits says whether a member certificate is the authority's, names everything it has to, and is not about to end.
func memberCertificateFits(n names, authority *tls.Certificate, member pair, now time.Time) error {
	parsed, err := member.parse()
	if err != nil {
		return err
	}
	if renewable(parsed.Leaf, now) {
		return errors.New("it ends soon")
	}
	if err := parsed.Leaf.CheckSignatureFrom(authority.Leaf); err != nil {
		return fmt.Errorf("it is not the cluster CA's: %w", err)
	}
	for _, name := range memberNames(n) {
		if err := parsed.Leaf.VerifyHostname(name); err != nil && name[0] != '*' {
			return err
		}
	}
	return nil
}

// operatorTLS is how the operator connects to the cluster's agents.
func operatorTLS(authority *tls.Certificate, now time.Time) (*tls.Config, error) {
	fresh, err := newOperatorCertificate(authority, now)
	if err != nil {
		return nil, err
	}
	own, err := fresh.parse()
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(authority.Leaf)
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*own}, RootCAs: pool}, nil
}

// pemOf encodes a certificate.
func pemOf(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
