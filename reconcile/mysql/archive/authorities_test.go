package archive

import (
	"crypto/x509"
	"testing"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// The image has only the program: without built-in CAs it could not connect to any cloud.
func TestAMachineWithoutAuthoritiesTrustsThePublicOnes(t *testing.T) {
	t.Parallel()
	pool := x509.NewCertPool()
	if err := fillWithPublicRoots(pool); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Amazon Root CA 1", "GTS Root R1", "DigiCert Global Root G2"} { // of S3, Google and Azure
		root := publicRoot(t, name)
		if _, err := root.Verify(x509.VerifyOptions{Roots: pool}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAMachineWithAuthoritiesTrustsNoOthers(t *testing.T) {
	t.Parallel()
	pool, only := x509.NewCertPool(), x509.NewCertPool()
	pool.AddCert(publicRoot(t, "Amazon Root CA 1"))
	only.AddCert(publicRoot(t, "Amazon Root CA 1"))
	if err := fillWithPublicRoots(pool); err != nil || !pool.Equal(only) {
		t.Errorf("the pool has other CAs: %v", err)
	}
}

func publicRoot(t *testing.T, name string) *x509.Certificate {
	t.Helper()
	for root := range bundle.Roots() {
		certificate, err := x509.ParseCertificate(root.Certificate)
		if err != nil {
			t.Fatal(err)
		}
		if certificate.Subject.CommonName == name {
			return certificate
		}
	}
	t.Fatalf("%s is not among the built-in CAs", name)
	return nil
}
