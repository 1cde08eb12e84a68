package agent

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"time"

	"github.com/mysql-operator/mysql-operator/pki"
)

const (
	// OperatorLife is how long a certificate of OperatorTLS is valid. A caller that keeps one must renew it long before.
	OperatorLife = 24 * time.Hour
	// operatorSkew is how much the clocks of two machines may differ.
	operatorSkew = time.Hour
)

// OperatorTLS returns how the operator connects to the agents and transfers of the cluster with these CAs. The operator trusts only these
// CAs. It has a certificate of each CA that can sign, only in its memory, and presents the one that the other side trusts. host is the name
// under which the cluster's members send it alarms (AlarmHost); empty for none.
func OperatorTLS(authorities Authorities, host string, now time.Time) (*tls.Config, error) {
	security := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	for _, one := range authorities {
		security.RootCAs.AddCert(one.Leaf)
		if !Signs(one, now) {
			continue
		}
		made, err := newOperatorCertificate(one, host, now)
		if err != nil {
			return nil, err
		}
		own, err := made.Parse()
		if err != nil {
			return nil, err
		}
		security.Certificates = append(security.Certificates, *own)
	}
	return security, nil
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
