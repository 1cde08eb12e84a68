package pki

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"testing"
	"time"
)

func template(name string, from time.Time, life time.Duration) *x509.Certificate {
	return &x509.Certificate{Subject: pkix.Name{CommonName: name}, NotBefore: from, NotAfter: from.Add(life), BasicConstraintsValid: true}
}

func TestIssue(t *testing.T) {
	t.Parallel()
	now := time.Now()
	root := template("root", now, time.Hour)
	root.IsCA, root.KeyUsage = true, x509.KeyUsageCertSign
	made, err := Issue(root, nil)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := made.Parse()
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := Issue(template("leaf", now, time.Hour), authority)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := leaf.Parse()
	if err != nil {
		t.Fatal(err)
	}
	if err := parsed.Leaf.CheckSignatureFrom(authority.Leaf); err != nil {
		t.Errorf("the leaf is not signed by its authority: %v", err)
	}
	if !bytes.Equal(Encode(parsed.Leaf.Raw), leaf.Certificate) {
		t.Error("encoding the parsed certificate does not give the certificate back")
	}
	if _, err := (Pair{Certificate: leaf.Certificate, Key: made.Key}).Parse(); err == nil {
		t.Error("a certificate with the key of another is taken")
	}
}

func TestRenewable(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	leaf := template("leaf", from, 90*time.Hour)
	for age, want := range map[time.Duration]bool{0: false, 60 * time.Hour: false, 61 * time.Hour: true, 100 * time.Hour: true} {
		if got := Renewable(leaf, from.Add(age)); got != want {
			t.Errorf("after %s of 90h: renewable %t, want %t", age, got, want)
		}
	}
}

func TestBundle(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var authorities []*x509.Certificate
	var signers []Pair
	for _, name := range []string{"new", "old"} {
		root := template(name, now, time.Hour)
		root.IsCA, root.KeyUsage = true, x509.KeyUsageCertSign
		made, err := Issue(root, nil)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := made.Parse()
		if err != nil {
			t.Fatal(err)
		}
		authorities, signers = append(authorities, parsed.Leaf), append(signers, made)
	}
	read, err := ReadCertificates(Bundle(authorities))
	if err != nil || len(read) != 2 || !read[0].Equal(authorities[0]) || !read[1].Equal(authorities[1]) {
		t.Errorf("what was bundled comes back as %v: %v", read, err)
	}
	for _, damaged := range []string{"", "no PEM", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"} {
		if _, err := ReadCertificates([]byte(damaged)); err == nil {
			t.Errorf("%q is taken for a bundle", damaged)
		}
	}
	old, err := signers[1].Parse()
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := Issue(template("leaf", now, time.Hour), old)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := leaf.Parse()
	if err != nil {
		t.Fatal(err)
	}
	if issuer := Issuer(parsed.Leaf, authorities); issuer != authorities[1] {
		t.Errorf("the issuer is %v", issuer)
	}
	if issuer := Issuer(parsed.Leaf, authorities[:1]); issuer != nil {
		t.Errorf("an issuer that is not among them is %v", issuer)
	}
}
