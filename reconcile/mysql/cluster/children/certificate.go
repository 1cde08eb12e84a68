package children

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
	// AuthorityLife is the lifetime of a CA. The operator replaces it when a third is left.
	AuthorityLife = 3 * 365 * 24 * time.Hour
	memberLife    = 365 * 24 * time.Hour
	// clockSkew is how far the clocks of two machines may differ.
	clockSkew = time.Hour
)

// The keys of Secret NAME-tls, and of ConfigMap NAME-ca-cert.
const (
	KeyCertificate = "tls.crt"
	KeyPrivate     = "tls.key"
	KeyAuthorities = "ca.crt"
)

// NewAuthority creates a CA of the cluster's own. No two have the same name: in a TLS handshake, a member names the CAs that it trusts.
func NewAuthority(n Names, now time.Time) (pki.Pair, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: n.Cluster + "." + n.Namespace + " mysql-operator CA", SerialNumber: rand.Text()},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(AuthorityLife),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	return pki.Issue(template, nil)
}

// NewMemberCertificate creates a certificate for all members: for mysqld and the agent as servers, and as clients of each other.
func NewMemberCertificate(n Names, authority *tls.Certificate, now time.Time) (pki.Pair, error) {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: n.Cluster + "." + n.Namespace},
		NotBefore:   now.Add(-clockSkew),
		NotAfter:    MemberExpiry(authority, now),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    memberNames(n),
	}
	return pki.Issue(template, authority)
}

// MemberExpiry returns when a member certificate expires that an authority signs now: not after the authority.
func MemberExpiry(authority *tls.Certificate, now time.Time) time.Time {
	end := now.Add(memberLife)
	if authority.Leaf.NotAfter.Before(end) {
		return authority.Leaf.NotAfter
	}
	return end
}

// CreatedAt returns when the operator created a certificate.
func CreatedAt(certificate *x509.Certificate) time.Time { return certificate.NotBefore.Add(clockSkew) }

func memberNames(n Names) []string {
	return slices.Concat([]string{"*." + n.PodsService() + "." + n.Namespace + ".svc", "localhost"}, serviceNames(n, n.Cluster), serviceNames(n, n.ReadService()))
}

func serviceNames(n Names, service string) []string {
	return []string{service, service + "." + n.Namespace, n.ServiceHost(service), n.ServiceHost(service) + ".cluster.local"}
}

// ReadMemberCertificate parses a member certificate; leaf is nil if that fails. fits reports whether the certificate has all the names that
// it must have.
func ReadMemberCertificate(n Names, member pki.Pair) (leaf *x509.Certificate, fits bool) {
	parsed, err := member.Parse()
	if err != nil {
		return nil, false
	}
	missing := slices.ContainsFunc(memberNames(n), func(name string) bool {
		return name[0] != '*' && parsed.Leaf.VerifyHostname(name) != nil
	})
	return parsed.Leaf, !missing
}
