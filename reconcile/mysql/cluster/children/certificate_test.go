package children

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/pki"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
)

// signed creates a CA and a member certificate at a time.
func signed(t *testing.T, n Names, at time.Time) (*tls.Certificate, pki.Pair) {
	t.Helper()
	made, err := NewAuthority(n, at)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := made.Parse()
	if err != nil {
		t.Fatal(err)
	}
	member, err := NewMemberCertificate(n, authority, at)
	if err != nil {
		t.Fatal(err)
	}
	return authority, member
}

func verify(authority *tls.Certificate, leaf *x509.Certificate, host string, at time.Time, usage x509.ExtKeyUsage) error {
	pool := x509.NewCertPool()
	pool.AddCert(authority.Leaf)
	_, err := leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: pool, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{usage}})
	return err
}

func TestMemberCertificateServesEveryMember(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, n := range []Names{{Namespace: "shop", Cluster: "db"}, {Namespace: strings.Repeat("s", 63), Cluster: strings.Repeat("n", 40)}} {
		authority, member := signed(t, n, at)
		parsed, err := member.Parse()
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range []string{n.Host(n.Member(0)), n.Host(n.Member(99)), n.ServiceHost(n.Cluster), n.ServiceHost(n.ReadService()), n.Cluster, "localhost", n.ServiceHost(n.Cluster) + ".cluster.local"} {
			if err := verify(authority, parsed.Leaf, host, at, x509.ExtKeyUsageServerAuth); err != nil {
				t.Errorf("%s: %v", host, err)
			}
		}
		for _, host := range []string{"db-0.other-pods.shop.svc", "a.b." + n.PodsService() + "." + n.Namespace + ".svc", "example.com"} {
			if err := verify(authority, parsed.Leaf, host, at, x509.ExtKeyUsageServerAuth); err == nil {
				t.Errorf("it passes for %s", host)
			}
		}
		if err := verify(authority, parsed.Leaf, "", at.Add(-30*time.Minute), x509.ExtKeyUsageClientAuth); err != nil {
			t.Errorf("a machine whose clock is half an hour behind does not take it: %v", err)
		}
		if parsed.Leaf.Subject.CommonName == agent.OperatorName {
			t.Error("a member could pass for the operator")
		}
	}
}

func TestMemberCertificateThatIsOfNoUse(t *testing.T) {
	t.Parallel()
	n, at := Names{Namespace: "shop", Cluster: "db"}, time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	authority, member := signed(t, n, at)
	tests := map[string]struct {
		n          Names
		member     pki.Pair
		read, fits bool
	}{
		"as it was made":                   {n, member, true, true},
		"with other names":                 {Names{Namespace: "shop", Cluster: "other"}, member, true, false},
		"damaged":                          {n, pki.Pair{Certificate: []byte("nonsense"), Key: member.Key}, false, false},
		"with the key of another":          {n, pki.Pair{Certificate: member.Certificate, Key: mustKey(t, n, authority, at)}, false, false},
		"nothing, as in an emptied Secret": {n, pki.Pair{}, false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			leaf, fits := ReadMemberCertificate(test.n, test.member)
			if (leaf != nil) != test.read || fits != test.fits {
				t.Errorf("it is read: %t, it fits: %t; want %t, %t", leaf != nil, fits, test.read, test.fits)
			}
		})
	}
}

func mustKey(t *testing.T, n Names, authority *tls.Certificate, at time.Time) []byte {
	t.Helper()
	another, err := NewMemberCertificate(n, authority, at)
	if err != nil {
		t.Fatal(err)
	}
	return another.Key
}
