package cluster

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"slices"
	"time"

	"github.com/mysql-operator/mysql-operator/pki"
)

const (
	// authorityLife is the lifetime of a CA. The operator replaces it when a third is left.
	authorityLife = 3 * 365 * 24 * time.Hour
	memberLife    = 365 * 24 * time.Hour
	// clockSkew is how far the clocks of two machines may differ.
	clockSkew = time.Hour
)

// newAuthority creates a CA of the cluster's own. No two have the same name: in a TLS handshake, a member names the CAs that it trusts.
func newAuthority(n names, now time.Time) (pki.Pair, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: n.cluster + "." + n.namespace + " mysql-operator CA", SerialNumber: rand.Text()},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(authorityLife),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	return pki.Issue(template, nil)
}

// newMemberCertificate creates a certificate for all members: for mysqld and the agent as servers, and as clients of each other.
func newMemberCertificate(n names, authority *tls.Certificate, now time.Time) (pki.Pair, error) {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: n.cluster + "." + n.namespace},
		NotBefore:   now.Add(-clockSkew),
		NotAfter:    lifeUnder(authority, now),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    memberNames(n),
	}
	return pki.Issue(template, authority)
}

// lifeUnder returns when a member certificate expires that an authority signs now: not after the authority.
func lifeUnder(authority *tls.Certificate, now time.Time) time.Time {
	end := now.Add(memberLife)
	if authority.Leaf.NotAfter.Before(end) {
		return authority.Leaf.NotAfter
	}
	return end
}

// madeAt returns when the operator created a certificate.
func madeAt(certificate *x509.Certificate) time.Time { return certificate.NotBefore.Add(clockSkew) }

func memberNames(n names) []string {
	return slices.Concat([]string{"*." + n.pods() + "." + n.namespace + ".svc", "localhost"}, serviceNames(n, n.cluster), serviceNames(n, n.read()))
}

func serviceNames(n names, service string) []string {
	return []string{service, service + "." + n.namespace, n.service(service), n.service(service) + ".cluster.local"}
}

// readMemberCertificate parses a member certificate; leaf is nil if that fails. fits reports whether the certificate has all the names that
// it must have.
func readMemberCertificate(n names, member pki.Pair) (leaf *x509.Certificate, fits bool) {
	parsed, err := member.Parse()
	if err != nil {
		return nil, false
	}
	missing := slices.ContainsFunc(memberNames(n), func(name string) bool {
		return name[0] != '*' && parsed.Leaf.VerifyHostname(name) != nil
	})
	return parsed.Leaf, !missing
}
