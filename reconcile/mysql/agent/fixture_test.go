package agent

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
)

// newLayout creates the folders of one member with the files that Kubernetes mounts into them.
func newLayout(t *testing.T) Layout {
	t.Helper()
	root := t.TempDir()
	layout := Layout{
		Volume: filepath.Join(root, "volume"), Run: filepath.Join(root, "run"), Temp: filepath.Join(root, "tmp"),
		TLS: filepath.Join(root, "tls"), Accounts: filepath.Join(root, "accounts"), Root: filepath.Join(root, "root"),
	}
	for _, folder := range []string{layout.Volume, layout.Run, layout.Temp, layout.TLS, layout.Accounts, layout.Root} {
		if err := os.Mkdir(folder, 0o750); err != nil {
			t.Fatal(err)
		}
	}
	write(t, layout.rootPassword(), "root's\n")
	for _, user := range ownUsers() {
		write(t, layout.account(user), user+"-pass") // replication accepts at most 32 characters
	}
	return layout
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// stateOf reads the state that a member stores next to its data.
func stateOf(t *testing.T, layout Layout) state {
	t.Helper()
	kept, found, err := loadState(layout.stateFile())
	if err != nil || !found {
		t.Fatalf("no state: found %t, %v", found, err)
	}
	return kept
}

// newAgent returns an agent whose mysqld never answers, on a volume with the given state.
func newAgent(t *testing.T, layout Layout, kept state) *Agent {
	t.Helper()
	if err := saveState(layout.stateFile(), kept); err != nil {
		t.Fatal(err)
	}
	wanted, err := layout.wantedPasswords()
	if err != nil {
		t.Fatal(err)
	}
	if err := layout.keepPasswords(wanted); err != nil {
		t.Fatal(err)
	}
	made, err := New(layout, Identity{}, "", logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = made.local.Close() })
	return made
}

// runs has the supervisor report, and the loop look.
func runs(t *testing.T, a *Agent, now supervisor.State) {
	t.Helper()
	a.supervised(now)
	a.followStart()
}

func memberState() state { return state{Data: replication.OriginMember} }

// authority signs certificates as a cluster's CA does.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// newAuthority creates an authority with a unique name.
func newAuthority(t *testing.T) authority {
	t.Helper()
	return newAuthorityOf(t, pkix.Name{CommonName: "test CA", SerialNumber: rand.Text()})
}

func newAuthorityOf(t *testing.T, name pkix.Name) authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: name, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{t: t, cert: cert, key: key, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// issue creates a certificate and its key in PEM.
func (a authority) issue(serial int64, name string, hosts ...string) (certificate, key []byte) {
	a.t.Helper()
	own := newKey(a.t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: hosts, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, own.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		a.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

// install puts a member's certificate where kubelet mounts it.
func (a authority) install(layout Layout, serial int64, host string) {
	a.t.Helper()
	certificate, key := a.issue(serial, "db.shop", host)
	write(a.t, layout.certFile(), string(certificate))
	write(a.t, layout.keyFile(), string(key))
	write(a.t, layout.caFile(), string(a.pem))
}

// operator is how the operator connects.
func (a authority) operator() func() *tls.Config {
	security := a.client(OperatorName)
	return security.Clone
}

// client returns the TLS configuration of a client that presents a certificate with this name and trusts this authority. With an empty name
// it presents none.
func (a authority) client(name string) *tls.Config {
	a.t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	security := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
	if name == "" {
		return security
	}
	certificate, key := a.issue(99, name)
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		a.t.Fatal(err)
	}
	security.Certificates = []tls.Certificate{pair}
	return security
}

func someObservation() mysqld.Observed {
	return mysqld.Observed{Version: "9.7.4", Server: replication.Server{SuperReadOnly: true, ServerUUID: "3e11fa47-71ca-11e1-9e33-c80aa9429562", Channel: replication.Channel{IO: "No", SQL: "No"}}}
}
