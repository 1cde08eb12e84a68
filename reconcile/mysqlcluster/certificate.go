package mysqlcluster

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mysql-operator/mysql-operator/pki"
)

const (
	authorityLife = 10 * 365 * 24 * time.Hour
	memberLife    = 365 * 24 * time.Hour
	// clockSkew is how far the clocks of two machines may be apart.
	clockSkew = time.Hour
)

// newAuthority makes a cluster's own CA.
func newAuthority(n names, now time.Time) (pki.Pair, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: n.cluster + "." + n.namespace + " mysql-operator CA"},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(authorityLife),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	return pki.Issue(template, nil)
}

// newMemberCertificate serves all members: as mysqld and agent, and as a client of each other.
func newMemberCertificate(n names, authority *tls.Certificate, now time.Time) (pki.Pair, error) {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: n.cluster + "." + n.namespace},
		NotBefore:   now.Add(-clockSkew),
		NotAfter:    now.Add(memberLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    memberNames(n),
	}
	return pki.Issue(template, authority)
}

func memberNames(n names) []string {
	return slices.Concat([]string{"*." + n.pods() + "." + n.namespace + ".svc", "localhost"}, serviceNames(n, n.cluster), serviceNames(n, n.read()))
}

func serviceNames(n names, service string) []string {
	return []string{service, service + "." + n.namespace, n.service(service), n.service(service) + ".cluster.local"}
}

// memberCertificateFits says whether a member certificate is the authority's, names everything it has to, and is not about to end.
func memberCertificateFits(n names, authority *tls.Certificate, member pki.Pair, now time.Time) error {
	parsed, err := member.Parse()
	if err != nil {
		return err
	}
	if pki.Renewable(parsed.Leaf, now) {
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
