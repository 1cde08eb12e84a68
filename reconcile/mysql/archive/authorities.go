package archive

import (
	"crypto/x509"
	"errors"
	"fmt"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// authorities returns the CAs to trust: those of the system, and the CA in ca.crt of the destination's Secret. If the system has none, as
// in an image with only this program, Mozilla's CAs are trusted instead. SSL_CERT_FILE and SSL_CERT_DIR replace the system's CAs (package
// crypto/x509).
func authorities(location Location) (*x509.CertPool, error) {
	own, err := readKey(location.CredentialsDir, "ca.crt")
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if err := fillWithPublicRoots(pool); err != nil {
		return nil, err
	}
	if own != "" && !pool.AppendCertsFromPEM([]byte(own)) {
		return nil, errors.New("read ca.crt: it has no certificate in PEM")
	}
	return pool, nil
}

// fillWithPublicRoots adds Mozilla's CAs to a pool that is empty.
func fillWithPublicRoots(pool *x509.CertPool) error {
	if !pool.Equal(x509.NewCertPool()) {
		return nil
	}
	for root := range bundle.Roots() {
		certificate, err := x509.ParseCertificate(root.Certificate)
		if err != nil {
			return fmt.Errorf("read the built-in CAs: %w", err)
		}
		if root.Constraint == nil {
			pool.AddCert(certificate)
			continue
		}
		pool.AddCertWithConstraint(certificate, root.Constraint)
	}
	return nil
}
