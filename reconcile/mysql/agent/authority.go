package agent

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mysql-operator/mysql-operator/pki"
)

// The keys of the Secret that holds a cluster's CAs.
const (
	// authoritiesKey has the CA certificates, newest first. authorityKeysKey has the private keys of the CAs that sign.
	authoritiesKey   = "ca.crt"
	authorityKeysKey = "ca.key"

	// authorityPrefix begins the name of that Secret.
	authorityPrefix = "ca."
)

// AuthoritySecret returns the name of the Secret, in the operator's namespace, that holds a cluster's CAs. No two clusters share one,
// because the name of a namespace has no dot.
func AuthoritySecret(namespace, cluster string) string {
	return authorityPrefix + namespace + "." + cluster
}

// ClusterOf parses the name of such a Secret. ok is false for any other name.
func ClusterOf(secret string) (namespace, cluster string, ok bool) {
	rest, ours := strings.CutPrefix(secret, authorityPrefix)
	namespace, cluster, ok = strings.Cut(rest, ".")
	return namespace, cluster, ours && ok && namespace != "" && cluster != ""
}

// Authorities are the CAs that the members of a cluster trust, newest first. A CA whose key is lost has no PrivateKey: members still trust
// it, but it signs no more certificates.
type Authorities []*tls.Certificate

// ReadAuthorities reads the data of the Secret, which must have the key of the newest CA.
func ReadAuthorities(data map[string][]byte) (Authorities, error) {
	certificates, err := pki.ReadCertificates(data[authoritiesKey])
	if err != nil {
		return nil, fmt.Errorf("read the cluster's CA: %s: %w", authoritiesKey, err)
	}
	found := make(Authorities, 0, len(certificates))
	for _, one := range certificates {
		found = append(found, &tls.Certificate{Certificate: [][]byte{one.Raw}, Leaf: one, PrivateKey: keyOf(one, data[authorityKeysKey])})
	}
	if found[0].PrivateKey == nil {
		return nil, errors.New("read the cluster's CA: " + authorityKeysKey + ": the key of the newest CA is missing")
	}
	return found, nil
}

// keyOf finds a certificate's key among several; nil if it is missing.
func keyOf(certificate *x509.Certificate, keys []byte) crypto.PrivateKey {
	for block, rest := pem.Decode(keys); block != nil; block, rest = pem.Decode(rest) {
		pair := pki.Pair{Certificate: pki.Encode(certificate.Raw), Key: pem.EncodeToMemory(block)}
		if parsed, err := pair.Parse(); err == nil {
			return parsed.PrivateKey
		}
	}
	return nil
}

// Data returns the data of the Secret that holds the CAs.
func (a Authorities) Data() (map[string][]byte, error) {
	var keys bytes.Buffer
	for _, one := range a {
		if one.PrivateKey == nil {
			continue
		}
		encoded, err := x509.MarshalPKCS8PrivateKey(one.PrivateKey)
		if err != nil {
			return nil, fmt.Errorf("encode the key of the cluster's CA: %w", err)
		}
		keys.Write(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
	}
	return map[string][]byte{authoritiesKey: a.Bundle(), authorityKeysKey: keys.Bytes()}, nil
}

// Certificates returns the CA certificates, newest first.
func (a Authorities) Certificates() []*x509.Certificate {
	all := make([]*x509.Certificate, 0, len(a))
	for _, one := range a {
		all = append(all, one.Leaf)
	}
	return all
}

// Bundle returns the certificates that members and clients must trust, in PEM.
func (a Authorities) Bundle() []byte { return pki.Bundle(a.Certificates()) }

// Issuer returns the CA that signed a certificate; nil if none did.
func (a Authorities) Issuer(leaf *x509.Certificate) *tls.Certificate {
	if at := slices.IndexFunc(a, func(one *tls.Certificate) bool { return leaf.CheckSignatureFrom(one.Leaf) == nil }); at >= 0 {
		return a[at]
	}
	return nil
}

// Signs reports whether a CA can sign at a time: its key is there, and its certificate is valid.
func Signs(authority *tls.Certificate, now time.Time) bool {
	return authority.PrivateKey != nil && pki.Lasts(authority.Leaf, now)
}
