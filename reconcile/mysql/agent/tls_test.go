package agent

import (
	"crypto/tls"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
)

// trust puts CAs where kubelet mounts them, next to the existing certificate.
func trust(t *testing.T, layout Layout, authorities ...authority) {
	t.Helper()
	var bundle []byte
	for _, one := range authorities {
		bundle = append(bundle, one.pem...)
	}
	write(t, layout.caFile(), string(bundle))
}

// TestMysqldIsToldOfEveryFile: the trusted CAs can change without the certificate.
func TestMysqldIsToldOfEveryFile(t *testing.T) {
	t.Parallel()
	layout, old, next := newLayout(t), newAuthority(t), newAuthority(t)
	old.install(layout, 1, memberHost)
	files := &tlsFiles{layout: layout}
	if !files.changed() {
		t.Fatal("at the start the agent does not know which files mysqld uses")
	}
	first := files.taken()
	if first != TLSDigest([]byte(read(t, layout.caFile())), []byte(read(t, layout.certFile()))) || len(first) != digestLength {
		t.Errorf("the digest is %q", first)
	}
	trust(t, layout, next, old)
	if !files.changed() {
		t.Error("another CA does not count as a change")
	}
	if second := files.taken(); second == first || files.changed() {
		t.Errorf("the digest is %q, was %q", second, first)
	}
	files.unknown()
	if !files.changed() {
		t.Error("mysqld has restarted, and the agent assumes that it uses the current files")
	}
	write(t, layout.caFile(), "")
	_ = files.changed()
	if _, _, err := files.read(); err == nil {
		t.Error("a member without a CA trusts a certificate")
	}
}

// TestAMemberWhoseServerRestartedReportsNoFiles until the agent has made mysqld load them.
func TestAMemberWhoseServerRestartedReportsNoFiles(t *testing.T) {
	t.Parallel()
	layout, ca := newLayout(t), newAuthority(t)
	ca.install(layout, 1, memberHost)
	member := newAgent(t, layout, memberState())
	member.tls.changed()
	member.status.TLS = member.tls.taken()
	runs(t, member, supervisor.State{Start: "next", Starts: 2, Running: true})
	if uses := member.Status().TLS; uses != "" || !member.tls.changed() {
		t.Errorf("the member reports %q", uses)
	}
}

// TestAKeptConnectionEndsWithItsCA: a client that presented a certificate of a CA that is no longer trusted can send no more requests over
// an older connection.
func TestAKeptConnectionEndsWithItsCA(t *testing.T) {
	t.Parallel()
	s := serve(t)
	next := newAuthority(t)
	security := s.ca.client(OperatorName)
	security.RootCAs.AddCert(next.cert)
	operator := NewClient(security.Clone, 5*time.Second)
	ask := func() error {
		_, err := operator.Status(t.Context(), Target{Address: s.address, Host: memberHost})
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	next.install(s.layout, 3, memberHost)
	trust(t, s.layout, next, s.ca)
	if err := ask(); err != nil {
		t.Errorf("a CA was added, but the operator of the old CA is refused: %v", err)
	}
	trust(t, s.layout, next)
	var refused *AnswerError
	if err := ask(); !errors.As(err, &refused) || refused.Code != http.StatusUnauthorized {
		t.Errorf("the old CA was removed, and its operator gets: %v", err)
	}
}

// TestOperatorShowsWhatTheMemberTrusts: the operator has a certificate of each CA, and members that know only one of the CAs accept it.
func TestOperatorShowsWhatTheMemberTrusts(t *testing.T) {
	t.Parallel()
	s := serve(t)
	now := time.Now()
	next := newAuthority(t)
	authorities := Authorities{}
	for _, one := range []authority{next, s.ca} {
		authorities = append(authorities, &tls.Certificate{Certificate: [][]byte{one.cert.Raw}, Leaf: one.cert, PrivateKey: one.key})
	}
	security, err := NewOperatorTLS(authorities, "", now)
	if err != nil {
		t.Fatal(err)
	}
	for _, trusted := range [][]authority{{s.ca}, {next, s.ca}} {
		trust(t, s.layout, trusted...)
		if _, err := NewClient(security.Client, 5*time.Second).Status(t.Context(), Target{Address: s.address, Host: memberHost}); err != nil {
			t.Errorf("a member that trusts %d of 2: %v", len(trusted), err)
		}
	}
	next.install(s.layout, 3, memberHost)
	if _, err := NewClient(security.Client, 5*time.Second).Status(t.Context(), Target{Address: s.address, Host: memberHost}); err != nil {
		t.Errorf("a member of the new CA: %v", err)
	}
}

func TestAuthoritiesAreKept(t *testing.T) {
	t.Parallel()
	now := time.Now()
	next, old := newAuthority(t), newAuthority(t)
	held := Authorities{
		{Certificate: [][]byte{next.cert.Raw}, Leaf: next.cert, PrivateKey: next.key},
		{Certificate: [][]byte{old.cert.Raw}, Leaf: old.cert},
	}
	data, err := held.Data()
	if err != nil {
		t.Fatal(err)
	}
	back, err := ReadAuthorities(data)
	if err != nil {
		t.Fatal(err)
	}
	if len(back) != 2 || !Signs(back[0], now) || Signs(back[1], now) || !slices.Equal(back.Bundle(), held.Bundle()) {
		t.Errorf("the CAs come back as %v", back)
	}
	if Signs(back[0], now.Add(2*time.Hour)) {
		t.Error("an expired CA signs")
	}
	for what, damaged := range map[string]map[string][]byte{
		"nothing": nil, "no key": {"ca.crt": data["ca.crt"]}, "no certificate": {"ca.key": data["ca.key"]},
		"the key of another": {"ca.crt": old.pem, "ca.key": data["ca.key"]}, "nonsense": {"ca.crt": []byte("x"), "ca.key": []byte("y")},
	} {
		if _, err := ReadAuthorities(damaged); err == nil {
			t.Errorf("%s is accepted as CAs", what)
		}
	}
}

func TestAuthoritySecretsTellTheirCluster(t *testing.T) {
	t.Parallel()
	if namespace, cluster, ok := ClusterOf(AuthoritySecret("shop", "db")); namespace != "shop" || cluster != "db" || !ok {
		t.Errorf("the name comes back as %s, %s", namespace, cluster)
	}
	for _, other := range []string{"", "ca.", "ca.shop", "ca..db", "ca.shop.", "shop.db", "mysql-operator-conversion"} {
		if _, _, ok := ClusterOf(other); ok {
			t.Errorf("%q is accepted as the Secret of a cluster", other)
		}
	}
}
