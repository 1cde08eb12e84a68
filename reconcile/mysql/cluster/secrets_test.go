package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/pki"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
)

func TestPasswordFault(t *testing.T) {
	t.Parallel()
	key := agent.PasswordKey
	tests := map[string]struct {
		content map[string][]byte
		says    string
	}{
		"a good one":                         {map[string][]byte{key: []byte("secret")}, ""},
		"with a line break at its end":       {map[string][]byte{key: []byte("secret\n")}, ""},
		"quotes, backslashes, unicode":       {map[string][]byte{key: []byte(`it's "a" \ пароль 🔑`)}, ""},
		"as long as MySQL takes":             {map[string][]byte{key: []byte(strings.Repeat("a", 256))}, ""},
		"longer":                             {map[string][]byte{key: []byte(strings.Repeat("a", 257))}, "256 bytes"},
		"longer in bytes, not in characters": {map[string][]byte{key: []byte(strings.Repeat("é", 129))}, "256 bytes"},
		"no such key":                        {map[string][]byte{"Password": []byte("secret")}, `no key "password"`},
		"nothing at all":                     {nil, `no key "password"`},
		"empty":                              {map[string][]byte{key: {}}, "empty"},
		"only a line break":                  {map[string][]byte{key: []byte("\n")}, "empty"},
		"a NUL character":                    {map[string][]byte{key: []byte("a\x00b")}, "NUL"},
		"not text":                           {map[string][]byte{key: {0xff, 0xfe}}, "UTF-8"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := passwordFault(test.content)
			if (got == "") != (test.says == "") || !strings.Contains(got, test.says) {
				t.Errorf("got %q, want it to have %q", got, test.says)
			}
			if value := string(test.content[key]); len(value) > 1 && strings.Contains(got, value) {
				t.Errorf("the message contains the password: %q", got)
			}
		})
	}
}

func TestAccountsHavePasswordsOfTheirOwn(t *testing.T) {
	t.Parallel()
	first := newAccounts()
	seen := map[string]bool{}
	for _, user := range []string{mysqld.AgentUser, mysqld.ReplicationUser, mysqld.CloneUser} {
		if len(first[user]) < 20 || seen[string(first[user])] {
			t.Errorf("%s has a password that is short or another's", user)
		}
		seen[string(first[user])] = true
	}
}

// signed creates a CA and a member certificate at a time.
func signed(t *testing.T, n names, at time.Time) (*tls.Certificate, pki.Pair) {
	t.Helper()
	made, err := newAuthority(n, at)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := made.Parse()
	if err != nil {
		t.Fatal(err)
	}
	member, err := newMemberCertificate(n, authority, at)
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
	for _, n := range []names{{"shop", "db"}, {strings.Repeat("s", 63), strings.Repeat("n", 40)}} {
		authority, member := signed(t, n, at)
		parsed, err := member.Parse()
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range []string{n.host(n.member(0)), n.host(n.member(99)), n.service(n.cluster), n.service(n.read()), n.cluster, "localhost", n.service(n.cluster) + ".cluster.local"} {
			if err := verify(authority, parsed.Leaf, host, at, x509.ExtKeyUsageServerAuth); err != nil {
				t.Errorf("%s: %v", host, err)
			}
		}
		for _, host := range []string{"db-0.other-pods.shop.svc", "a.b." + n.pods() + "." + n.namespace + ".svc", "example.com"} {
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
	n, at := names{"shop", "db"}, time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	authority, member := signed(t, n, at)
	tests := map[string]struct {
		n          names
		member     pki.Pair
		read, fits bool
	}{
		"as it was made":                   {n, member, true, true},
		"with other names":                 {names{"shop", "other"}, member, true, false},
		"damaged":                          {n, pki.Pair{Certificate: []byte("nonsense"), Key: member.Key}, false, false},
		"with the key of another":          {n, pki.Pair{Certificate: member.Certificate, Key: mustKey(t, n, authority, at)}, false, false},
		"nothing, as in an emptied Secret": {n, pki.Pair{}, false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			leaf, fits := readMemberCertificate(test.n, test.member)
			if (leaf != nil) != test.read || fits != test.fits {
				t.Errorf("it is read: %t, it fits: %t; want %t, %t", leaf != nil, fits, test.read, test.fits)
			}
		})
	}
}

func mustKey(t *testing.T, n names, authority *tls.Certificate, at time.Time) []byte {
	t.Helper()
	another, err := newMemberCertificate(n, authority, at)
	if err != nil {
		t.Fatal(err)
	}
	return another.Key
}

func TestOperatorShowsAShortLivedCertificate(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	authority, _ := signed(t, names{"shop", "db"}, at)
	security, err := agent.OperatorTLS(agent.Authorities{authority}, at)
	if err != nil {
		t.Fatal(err)
	}
	leaf := security.Certificates[0].Leaf
	if leaf.Subject.CommonName != agent.OperatorName || leaf.NotAfter.After(at.Add(agent.OperatorLife)) {
		t.Errorf("it shows %s until %s", leaf.Subject.CommonName, leaf.NotAfter)
	}
	if agent.OperatorLife < 3*secretsEvery {
		t.Error("it would expire before it is renewed")
	}
	if err := verify(authority, leaf, "", at, x509.ExtKeyUsageServerAuth); err == nil {
		t.Error("its holder could pass for a member")
	}
}

// TestConnectionsOutliveALookAtTheSecrets: each look makes another certificate. Only another CA, or the end of the certificate, makes
// another client.
func TestConnectionsOutliveALookAtTheSecrets(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	authority, _ := signed(t, names{"shop", "db"}, at)
	another, _ := signed(t, names{"shop", "db"}, at)
	look := func(known clusterMemory, authority *tls.Certificate, at time.Time) clusterMemory {
		security, err := agent.OperatorTLS(agent.Authorities{authority}, at)
		if err != nil {
			t.Fatal(err)
		}
		return known.withClients(security, at)
	}
	first := look(clusterMemory{}, authority, at)
	if first.agents == nil || first.transfers == nil {
		t.Fatal("there is no client")
	}
	if look(first, authority, at.Add(secretsEvery)).agents != first.agents {
		t.Error("a look at the same CA ends the connections")
	}
	if look(first, another, at.Add(secretsEvery)).agents == first.agents {
		t.Error("the client trusts a CA that was replaced")
	}
	if look(first, authority, at.Add(agent.OperatorLife*2/3)).agents == first.agents {
		t.Error("the client shows a certificate that is about to end")
	}
}
