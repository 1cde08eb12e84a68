package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
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
	for _, user := range []string{mysqld.AgentUser, mysqld.ReplicationUsers, mysqld.CloneUser} {
		if len(first[user]) < 20 || seen[string(first[user])] {
			t.Errorf("%s has a password that is short or another's", user)
		}
		seen[string(first[user])] = true
	}
}

func TestOperatorShowsAShortLivedCertificate(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	authority, _ := signed(t, children.Names{Namespace: "shop", Cluster: "db"}, at)
	n := children.Names{Namespace: "shop", Cluster: "db"}
	security, err := agent.NewOperatorTLS(agent.Authorities{authority}, agent.AlarmHost(n.Namespace, n.Cluster), at)
	if err != nil {
		t.Fatal(err)
	}
	leaf := leafOf(t, security.Client().Certificates[0])
	if leaf.Subject.CommonName != agent.OperatorName || leaf.NotAfter.After(at.Add(agent.OperatorLife)) {
		t.Errorf("it shows %s until %s", leaf.Subject.CommonName, leaf.NotAfter)
	}
	if agent.OperatorLife < 3*secretsEvery {
		t.Error("it would expire before it is renewed")
	}
	for _, host := range []string{n.Host(n.Member(0)), n.ServiceHost(n.Cluster), "localhost"} {
		if err := verify(authority, leaf, host, at, x509.ExtKeyUsageServerAuth); err == nil {
			t.Errorf("its holder could pass for %s", host)
		}
	}
}

// TestConnectionsOutliveALookAtTheSecrets: each look makes another certificate. Only another CA, or the end of the certificate, makes
// another client.
func TestConnectionsOutliveALookAtTheSecrets(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	authority, _ := signed(t, children.Names{Namespace: "shop", Cluster: "db"}, at)
	another, _ := signed(t, children.Names{Namespace: "shop", Cluster: "db"}, at)
	look := func(known clusterMemory, authority *tls.Certificate, at time.Time) clusterMemory {
		security, err := agent.NewOperatorTLS(agent.Authorities{authority}, "", at)
		if err != nil {
			t.Fatal(err)
		}
		return known.withClients(security, func() string { return "" }, at)
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

// TestSecretsOfManyClustersAreReadApart: clusters that were created together would otherwise always be looked at together.
func TestSecretsOfManyClustersAreReadApart(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	authority, _ := signed(t, children.Names{Namespace: "shop", Cluster: "db"}, at)
	security, err := agent.NewOperatorTLS(agent.Authorities{authority}, "", at)
	if err != nil {
		t.Fatal(err)
	}
	r := &reconciler{memory: newMemory()}
	seen := map[time.Duration]bool{}
	for range 100 {
		known := r.learn(aCluster(1), clusterMemory{}, certificateState{security: security}, at, true)
		again := known.lookAgain(secretsEvery).Sub(at)
		if again < secretsEvery*7/8 || again > secretsEvery {
			t.Errorf("the operator reads the Secrets again after %s", again)
		}
		seen[again] = true
	}
	if len(seen) < 90 {
		t.Errorf("the operator reads the Secrets of 100 clusters at %d times", len(seen))
	}
}
