// Package pki makes and reads certificates: P-256 keys, everything in PEM. It does not know who uses them or where they are stored.
package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// Pair is a certificate with its key, both in PEM.
type Pair struct{ Certificate, Key []byte }

// Issue makes a key and a certificate for it. The authority signs the certificate; without one, it is self-signed. Serial numbers are
// random.
func Issue(template *x509.Certificate, authority *tls.Certificate) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("make a key: %w", err)
	}
	template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return Pair{}, fmt.Errorf("make a serial number: %w", err)
	}
	parent, signer := template, any(key)
	if authority != nil {
		parent, signer = authority.Leaf, authority.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return Pair{}, fmt.Errorf("sign certificate of %s: %w", template.Subject.CommonName, err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("encode key: %w", err)
	}
	return Pair{Certificate: Encode(der), Key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})}, nil
}

// Parse reads a pair with its leaf, and checks that the key belongs to the certificate.
func (p Pair) Parse() (*tls.Certificate, error) {
	parsed, err := tls.X509KeyPair(p.Certificate, p.Key)
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	return &parsed, nil
}

// Encode returns a certificate in PEM.
func Encode(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// ReadCertificates reads a bundle: certificates in PEM, in their order. It returns an error if there is none.
func ReadCertificates(bundle []byte) ([]*x509.Certificate, error) {
	found := []*x509.Certificate{}
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("read certificate: %w", err)
		}
		found = append(found, certificate)
	}
	if len(found) == 0 {
		return nil, errors.New("there is no certificate")
	}
	return found, nil
}

// Bundle returns certificates in PEM, in their order.
func Bundle(certificates []*x509.Certificate) []byte {
	var bundle bytes.Buffer
	for _, one := range certificates {
		bundle.Write(Encode(one.Raw))
	}
	return bundle.Bytes()
}

// Issuer returns the authority that signed a certificate; nil if none of them did.
func Issuer(leaf *x509.Certificate, authorities []*x509.Certificate) *x509.Certificate {
	for _, authority := range authorities {
		if leaf.CheckSignatureFrom(authority) == nil {
			return authority
		}
	}
	return nil
}

// Lasts reports whether a certificate is valid at a time: it is not too early and not expired.
func Lasts(certificate *x509.Certificate, now time.Time) bool {
	return !now.Before(certificate.NotBefore) && now.Before(certificate.NotAfter)
}

// Renewable reports whether less than a third of a certificate's lifetime is left.
func Renewable(leaf *x509.Certificate, now time.Time) bool {
	return leaf.NotAfter.Sub(now) < leaf.NotAfter.Sub(leaf.NotBefore)/3
}
