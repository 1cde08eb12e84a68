package conversion

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"time"

	"github.com/mysql-operator/mysql-operator/pki"
)

const (
	authorityLife = 10 * 365 * 24 * time.Hour
	servingLife   = 365 * 24 * time.Hour
	// clockSkew is how far an API server's clock may be behind the operator's.
	clockSkew = time.Hour
)

// The keys of the Secret. tls.crt and tls.key are the served certificate and its key. ca.crt holds the CAs that API servers must trust: the
// newest first, whose key is ca.key, then those that it replaced.
const (
	keyCertificate  = "tls.crt"
	keyPrivate      = "tls.key"
	keyAuthorities  = "ca.crt"
	keyAuthorityKey = "ca.key"
)

// material is the parsed content of the Secret.
type material struct {
	authorities  []*x509.Certificate
	authorityKey []byte
	authority    *tls.Certificate
	serving      *tls.Certificate
	servingPair  pki.Pair
}

// readMaterial parses the Secret's content. An error says what is damaged.
func readMaterial(data map[string][]byte) (*material, error) {
	authorities, err := pki.ReadCertificates(data[keyAuthorities])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", keyAuthorities, err)
	}
	made := &material{authorities: authorities, authorityKey: data[keyAuthorityKey], servingPair: pki.Pair{Certificate: data[keyCertificate], Key: data[keyPrivate]}}
	if made.authority, err = (pki.Pair{Certificate: pki.Encode(authorities[0].Raw), Key: made.authorityKey}).Parse(); err != nil {
		return nil, fmt.Errorf("%s: %w", keyAuthorityKey, err)
	}
	if made.serving, err = made.servingPair.Parse(); err != nil {
		return nil, fmt.Errorf("%s: %w", keyCertificate, err)
	}
	if pki.Issuer(made.serving.Leaf, authorities) == nil {
		return nil, fmt.Errorf("%s: no CA of %s signed it", keyCertificate, keyAuthorities)
	}
	return made, nil
}

func (m *material) data() map[string][]byte {
	return map[string][]byte{
		keyAuthorities: m.bundle(), keyAuthorityKey: m.authorityKey,
		keyCertificate: m.servingPair.Certificate, keyPrivate: m.servingPair.Key,
	}
}

// bundle returns the caBundle.
func (m *material) bundle() []byte { return pki.Bundle(m.authorities) }

// trustedBy reports whether a client that trusts the bundle trusts our newest CA.
func (m *material) trustedBy(bundle []byte) bool {
	trusted, err := pki.ReadCertificates(bundle)
	if err != nil {
		return false
	}
	for _, one := range trusted {
		if one.Equal(m.authorities[0]) {
			return true
		}
	}
	return false
}

// serves reports whether the certificate is valid for API servers that trust the bundle, under these names.
func (m *material) serves(hosts []string, now time.Time) bool {
	return now.Before(m.serving.Leaf.NotAfter) && now.Before(m.signer().NotAfter) && covers(m.serving.Leaf, hosts)
}

// signer returns the CA that signed the served certificate.
func (m *material) signer() *x509.Certificate {
	return cmp.Or(pki.Issuer(m.serving.Leaf, m.authorities), m.authorities[0])
}

// step is a change of the material.
type step string

const (
	stepKeep step = "keep"
	// stepStart makes a CA and a certificate, and drops all former ones.
	stepStart step = "create the CA"
	// stepAuthority adds a new CA to the old one. The served certificate stays the old CA's.
	stepAuthority step = "add a new CA"
	// stepServe makes a certificate that the newest CA signs.
	stepServe step = "renew the certificate"
	// stepForget removes the CAs that no longer sign a served certificate.
	stepForget step = "remove the old CA"
)

// situation holds everything that the next step depends on.
type situation struct {
	material *material // nil: there is none, or it cannot be read
	// remembered is what this process served last, if anything. With it, the loss of the Secret leads to a new CA, but to no outage.
	remembered *material
	hosts      []string
	// leads says that this replica is the leader. Others only do what must not wait for the leader.
	leads bool
	// trusted says that API servers are known to trust the newest CA.
	trusted bool
	// overlap is how old a certificate must be until every replica serves it.
	overlap time.Duration
}

// nextStep decides. A CA is added before the certificates that need it, and removed after them.
func (s situation) nextStep(now time.Time) step {
	switch {
	case s.material == nil && s.remembered != nil && s.remembered.serves(s.hosts, now):
		return stepAuthority
	case s.material == nil:
		return stepStart
	case !now.Before(s.material.authorities[0].NotAfter):
		return stepStart
	case !s.material.serves(s.hosts, now):
		return stepServe
	case !s.leads:
		return stepKeep
	}
	return s.leaderStep(now)
}

// leaderStep decides about steps that only the leader takes.
func (s situation) leaderStep(now time.Time) step {
	switch {
	case pki.Renewable(s.material.authorities[0], now):
		return stepAuthority
	case !s.material.signer().Equal(s.material.authorities[0]):
		if s.trusted {
			return stepServe
		}
		return stepKeep
	case pki.Renewable(s.material.serving.Leaf, now):
		return stepServe
	case len(s.material.authorities) > 1 && now.Sub(s.material.serving.Leaf.NotBefore) > clockSkew+s.overlap:
		return stepForget
	}
	return stepKeep
}

func covers(leaf *x509.Certificate, hosts []string) bool {
	for _, host := range hosts {
		if leaf.VerifyHostname(host) != nil {
			return false
		}
	}
	return true
}

// take carries out a step, on a copy of the material.
func (s situation) take(next step, now time.Time) (*material, error) {
	made := &material{}
	if held := cmp.Or(s.material, s.remembered); held != nil {
		*made = *held
	}
	switch next {
	case stepKeep:
		return made, nil
	case stepForget:
		made.authorities = made.authorities[:1]
		return made, nil
	case stepServe:
		err := made.serve(s.hosts, now)
		return made, err
	case stepAuthority:
		err := made.newAuthority(s.hosts[0], now)
		return made, err
	case stepStart:
		*made = material{}
		if err := made.newAuthority(s.hosts[0], now); err != nil {
			return nil, err
		}
		err := made.serve(s.hosts, now)
		return made, err
	}
	return nil, fmt.Errorf("unknown step %q", next)
}

func (m *material) newAuthority(host string, now time.Time) error {
	pair, err := pki.Issue(&x509.Certificate{
		Subject:               pkix.Name{CommonName: "conversion webhook CA of " + host},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(authorityLife),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}, nil)
	if err != nil {
		return err
	}
	if m.authority, err = pair.Parse(); err != nil {
		return err
	}
	former := m.authorities
	m.authorities, m.authorityKey = []*x509.Certificate{m.authority.Leaf}, pair.Key
	for _, one := range former {
		if now.Before(one.NotAfter) {
			m.authorities = append(m.authorities, one)
		}
	}
	return nil
}

func (m *material) serve(hosts []string, now time.Time) error {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "conversion webhook"},
		NotBefore:   now.Add(-clockSkew),
		NotAfter:    now.Add(servingLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if address := net.ParseIP(host); address != nil {
			template.IPAddresses = append(template.IPAddresses, address)
			continue
		}
		template.DNSNames = append(template.DNSNames, host)
	}
	if end := m.authority.Leaf.NotAfter; end.Before(template.NotAfter) {
		template.NotAfter = end
	}
	pair, err := pki.Issue(template, m.authority)
	if err != nil {
		return err
	}
	m.servingPair = pair
	m.serving, err = pair.Parse()
	return err
}
