package agent

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"slices"
	"time"

	"github.com/mysql-operator/mysql-operator/pki"
)

const (
	// OperatorLife is how long an operator's certificate is valid. A caller that keeps one must renew it long before.
	OperatorLife = 24 * time.Hour
	// operatorSkew is how much the clocks of two machines may differ.
	operatorSkew = time.Hour
)

// OperatorTLS is how the operator connects to the agents and transfers of one cluster, and how it takes alarms. It trusts only the CAs of
// that cluster. It has a certificate of each CA that can sign, only in its memory, and presents the one that the other side trusts.
//
// It keeps certificates as bytes, and parses them for each connection: parsed, they take five times as much memory, and the operator keeps
// those of all clusters.
type OperatorTLS struct {
	// bundle are the CAs, in PEM.
	bundle       []byte
	certificates []tls.Certificate
}

// NewOperatorTLS creates certificates of these CAs. host is the name under which the cluster's members send alarms (AlarmHost); empty for
// none.
func NewOperatorTLS(authorities Authorities, host string, now time.Time) (*OperatorTLS, error) {
	made := &OperatorTLS{bundle: authorities.Bundle()}
	for _, one := range authorities {
		if !Signs(one, now) {
			continue
		}
		pair, err := newOperatorCertificate(one, host, now)
		if err != nil {
			return nil, err
		}
		own, err := pair.Parse()
		if err != nil {
			return nil, err
		}
		own.Leaf = nil
		made.certificates = append(made.certificates, *own)
	}
	return made, nil
}

// Client returns the configuration of a client.
func (o *OperatorTLS) Client() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.trusted(), Certificates: o.certificates}
}

// AlarmServer returns the configuration of the server that takes alarms; nil if there is no certificate. Of several CAs, members trust the
// oldest.
func (o *OperatorTLS) AlarmServer() *tls.Config {
	if len(o.certificates) == 0 {
		return nil
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: o.certificates[len(o.certificates)-1:],
		ClientCAs: o.trusted(), ClientAuth: tls.RequireAndVerifyClientCert, SessionTicketsDisabled: true,
	}
}

func (o *OperatorTLS) trusted() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(o.bundle)
	return pool
}

// Bundle returns the CAs that it trusts, in PEM.
func (o *OperatorTLS) Bundle() []byte { return o.bundle }

// HasSameCAs reports whether it trusts the same CAs as another one.
func (o *OperatorTLS) HasSameCAs(other *OperatorTLS) bool { return bytes.Equal(o.bundle, other.bundle) }

// Lasts reports whether it has certificates, and all are valid for at least half of their lifetime.
func (o *OperatorTLS) Lasts(now time.Time) bool {
	return len(o.certificates) > 0 && !slices.ContainsFunc(o.certificates, func(own tls.Certificate) bool { return !isFresh(leafOf(own), now) })
}

// KeepFrom adds certificates of an earlier OperatorTLS: those that are fresh, and whose CA is trusted but has no certificate here.
func (o *OperatorTLS) KeepFrom(former *OperatorTLS, now time.Time) {
	trusted, err := pki.ReadCertificates(o.bundle)
	if err != nil {
		return
	}
	for _, own := range former.certificates {
		leaf := leafOf(own)
		issuer := pki.Issuer(leaf, trusted)
		if issuer != nil && isFresh(leaf, now) && !slices.ContainsFunc(o.certificates, func(one tls.Certificate) bool { return leafOf(one).CheckSignatureFrom(issuer) == nil }) {
			o.certificates = append(o.certificates, own)
		}
	}
}

func isFresh(own *x509.Certificate, now time.Time) bool {
	return own.NotAfter.Sub(now) >= OperatorLife/2
}

// leafOf returns a certificate of NewOperatorTLS, parsed.
func leafOf(own tls.Certificate) *x509.Certificate {
	leaf, err := x509.ParseCertificate(own.Certificate[0])
	if err != nil {
		return &x509.Certificate{} // it is not fresh
	}
	return leaf
}

func newOperatorCertificate(authority *tls.Certificate, host string, now time.Time) (pki.Pair, error) {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: OperatorName},
		NotBefore:   now.Add(-operatorSkew),
		NotAfter:    now.Add(OperatorLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if host != "" {
		template.DNSNames, template.ExtKeyUsage = []string{host}, append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	return pki.Issue(template, authority)
}
