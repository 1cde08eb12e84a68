package pki

import (
	"crypto/tls"
	"crypto/x509"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEnsure(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "pki")
	now := time.Now()
	requests := []Request{
		{File: "server", CommonName: "api", Names: []string{"kubernetes"}, Addresses: []netip.Addr{netip.MustParseAddr("10.250.0.1")}},
		{File: "admin", CommonName: "admin", Organizations: []string{"system:masters"}},
	}
	if err := Ensure(dir, requests, now); err != nil {
		t.Fatal(err)
	}

	server := load(t, dir, "server")
	roots := x509.NewCertPool()
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil || !roots.AppendCertsFromPEM(ca) {
		t.Fatalf("read the authority: %v", err)
	}
	for _, host := range []string{"kubernetes", "10.250.0.1"} {
		if _, err := server.Verify(x509.VerifyOptions{DNSName: host, Roots: roots}); err != nil {
			t.Errorf("a client reaching the server as %s refuses it: %v", host, err)
		}
	}
	admin := load(t, dir, "admin")
	if _, err := admin.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Errorf("the server refuses the client: %v", err)
	}
	if _, err := admin.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err == nil {
		t.Error("a client's certificate is good for serving")
	}
	if diff := cmp.Diff([]string{"system:masters"}, admin.Subject.Organization); diff != "" {
		t.Error(diff)
	}
}

// A repeated start must not invalidate the certificates that running components have loaded.
func TestEnsureKeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := []Request{{File: "a", CommonName: "a"}}
	if err := Ensure(dir, first, time.Now()); err != nil {
		t.Fatal(err)
	}
	before := load(t, dir, "a")
	if err := Ensure(dir, append(first, Request{File: "b", CommonName: "b"}), time.Now()); err != nil {
		t.Fatal(err)
	}
	if !before.Equal(load(t, dir, "a")) {
		t.Error("the second run replaced a certificate that was there")
	}
	roots := x509.NewCertPool()
	roots.AddCert(load(t, dir, "ca"))
	if _, err := load(t, dir, "b").Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Errorf("a certificate made later does not belong to the same authority: %v", err)
	}
}

func load(t *testing.T, dir, name string) *x509.Certificate {
	t.Helper()
	base := filepath.Join(dir, name)
	pair, err := tls.LoadX509KeyPair(base+".crt", base+".key")
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}
