// Package pki creates the certificates of a dev cluster: one authority, and one key pair for every component that serves or authenticates.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster/atomicfile"
)

const (
	lifetime  = 10 * 365 * 24 * time.Hour
	clockSkew = time.Hour
)

// Request describes a key pair that the authority signs.
//
// CommonName and Organizations are the user and the groups that Kubernetes reads from a client certificate (Kubernetes documentation,
// "Authenticating", X.509 client certificates). Names and Addresses are those that clients reach a server at.
type Request struct {
	File          string // files FILE.crt and FILE.key in the folder
	CommonName    string
	Organizations []string
	Names         []string
	Addresses     []netip.Addr
}

// Ensure creates the missing files in the folder: the authority (ca.crt, ca.key), the service-account key (service-account.key, .pub) and
// each requested pair. It keeps existing files.
func Ensure(dir string, requests []Request, now time.Time) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make certificates: %w", err)
	}
	ca, err := ensureAuthority(dir, now)
	if err != nil {
		return fmt.Errorf("make certificate authority: %w", err)
	}
	if err := ensureServiceAccountKey(dir); err != nil {
		return fmt.Errorf("make service-account key: %w", err)
	}
	for _, r := range requests {
		if exists(filepath.Join(dir, r.File+".crt")) && exists(filepath.Join(dir, r.File+".key")) {
			continue
		}
		if err := ca.issue(dir, r, now); err != nil {
			return fmt.Errorf("make certificate %s: %w", r.File, err)
		}
	}
	return nil
}

type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

func ensureAuthority(dir string, now time.Time) (*authority, error) {
	certFile, keyFile := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")
	if exists(certFile) && exists(keyFile) {
		return loadAuthority(certFile, keyFile)
	}
	template, err := newTemplate(pkix.Name{CommonName: "devcluster"}, now)
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(writeKey(keyFile, key), writePEM(certFile, "CERTIFICATE", der, 0o644)); err != nil {
		return nil, err
	}
	return loadAuthority(certFile, keyFile)
}

func loadAuthority(certFile, keyFile string) (*authority, error) {
	certDER, err := readPEM(certFile)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(certDER)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", certFile, err)
	}
	keyDER, err := readPEM(keyFile)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParseECPrivateKey(keyDER)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", keyFile, err)
	}
	return &authority{certificate: certificate, key: key}, nil
}

func (a *authority) issue(dir string, r Request, now time.Time) error {
	template, err := newTemplate(pkix.Name{CommonName: r.CommonName, Organization: r.Organizations}, now)
	if err != nil {
		return err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	template.DNSNames = r.Names
	for _, address := range r.Addresses {
		template.IPAddresses = append(template.IPAddresses, net.IP(address.AsSlice()))
	}
	if len(r.Names)+len(r.Addresses) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return err
	}
	base := filepath.Join(dir, r.File)
	return errors.Join(writeKey(base+".key", key), writePEM(base+".crt", "CERTIFICATE", der, 0o644))
}

func ensureServiceAccountKey(dir string) error {
	base := filepath.Join(dir, "service-account")
	if exists(base+".key") && exists(base+".pub") {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	return errors.Join(writeKey(base+".key", key), writePEM(base+".pub", "PUBLIC KEY", public, 0o644))
}

func newTemplate(subject pkix.Name, now time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	return &x509.Certificate{SerialNumber: serial, Subject: subject, NotBefore: now.Add(-clockSkew), NotAfter: now.Add(lifetime)}, nil
}

func writeKey(file string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(file, "EC PRIVATE KEY", der, 0o600)
}

func writePEM(file, kind string, der []byte, mode fs.FileMode) error {
	return atomicfile.Write(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode)
}

func readPEM(file string) ([]byte, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, fmt.Errorf("read %s: it has no PEM block: remove it, and the next start creates it again", file)
	}
	return block.Bytes, nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
