package mover

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"

	"github.com/mysql-operator/mysql-operator/listen"
	"github.com/mysql-operator/mysql-operator/pki"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
)

// someAuthority is a cluster's CA.
func someAuthority(t *testing.T) *tls.Certificate {
	t.Helper()
	pair, err := pki.Issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "CA"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := pair.Parse()
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

// layoutWith is the layout of a Pod with the cluster's certificate.
func layoutWith(t *testing.T, authority *tls.Certificate) agent.Layout {
	t.Helper()
	layout := agent.Layout{TLS: t.TempDir()}
	pair, err := pki.Issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "db.shop"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames: []string{"*.db-pods.shop.svc"},
	}, authority)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"ca.crt": pki.Encode(authority.Leaf.Raw), "tls.crt": pair.Certificate, "tls.key": pair.Key} {
		if err := os.WriteFile(filepath.Join(layout.TLS, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return layout
}

func TestOnlyTheOperatorIsToldTheProgress(t *testing.T) {
	t.Parallel()
	authority := someAuthority(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	want := protocol.Progress{Stage: "FILE COPY", Bytes: 5, TotalBytes: 10, BytesPerSecond: 2, Source: "db-1"}
	go Environment{Layout: layoutWith(t, authority), Log: logr.Discard()}.serveOn(t.Context(), listener, &meter{progress: want})

	security, err := agent.NewOperatorTLS(agent.Authorities{authority}, "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(security *tls.Config, host string) (protocol.Progress, error) {
		client := protocol.NewClient(security.Clone, 10*time.Second, listener.Addr().(*net.TCPAddr).Port)
		return client.Progress(t.Context(), "127.0.0.1", host)
	}
	got, err := ask(security.Client(), protocol.Host("shop", "db"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := ask(security.Client(), protocol.Host("shop", "another")); err == nil {
		t.Error("another cluster's transfer is taken for this one's")
	}
	member, err := layoutWith(t, authority).ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ask(member, protocol.Host("shop", "db")); err == nil || !strings.Contains(err.Error(), "operator") {
		t.Errorf("a member gets an answer: %v", err)
	}
	stranger, err := agent.NewOperatorTLS(agent.Authorities{someAuthority(t)}, "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	impostor := stranger.Client()
	impostor.RootCAs = security.Client().RootCAs
	if _, err := ask(impostor, protocol.Host("shop", "db")); err == nil {
		t.Error("the operator of another cluster's CA gets an answer")
	}
	nobody := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: security.Client().RootCAs}
	if _, err := ask(nobody, protocol.Host("shop", "db")); err == nil || !strings.Contains(err.Error(), "certificate required") {
		t.Errorf("a client without a certificate is not refused: %v", err)
	}
}

// TestConnectionsOfStrangersAreFew: each connection needs memory, of which a transfer's Pod has little. A new connection closes the oldest
// one, so that the operator can connect.
func TestConnectionsOfStrangersAreFew(t *testing.T) {
	t.Parallel()
	authority := someAuthority(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go Environment{Layout: layoutWith(t, authority), Log: logr.Discard()}.serveOn(t.Context(), listener, &meter{})
	var oldest net.Conn
	for number := range strangers + 1 {
		idle, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = idle.Close() })
		if number == 0 {
			oldest = idle
		}
	}
	if err := oldest.SetReadDeadline(time.Now().Add(listen.HeaderTime / 2)); err != nil {
		t.Fatal(err)
	}
	if _, err := oldest.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the oldest is not closed at once: %v", err)
	}
	security, err := agent.NewOperatorTLS(agent.Authorities{authority}, "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	client := protocol.NewClient(security.Client, time.Second, listener.Addr().(*net.TCPAddr).Port)
	if _, err := client.Progress(t.Context(), "127.0.0.1", protocol.Host("shop", "db")); err != nil {
		t.Errorf("the operator gets no answer meanwhile: %v", err)
	}
}

// TestTheOperatorFollowsNoRedirectOfATransfer: otherwise a server in place of a Pod could reach whatever the operator can reach.
func TestTheOperatorFollowsNoRedirectOfATransfer(t *testing.T) {
	t.Parallel()
	var reached atomic.Int32
	internal := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(internal.Close)
	authority := someAuthority(t)
	impostor := httptest.NewUnstartedServer(http.RedirectHandler(internal.URL, http.StatusTemporaryRedirect))
	impostor.TLS = layoutWith(t, authority).ServerTLS()
	impostor.StartTLS()
	t.Cleanup(impostor.Close)
	security, err := agent.NewOperatorTLS(agent.Authorities{authority}, "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	client := protocol.NewClient(security.Client, 10*time.Second, impostor.Listener.Addr().(*net.TCPAddr).Port)
	_, err = client.Progress(t.Context(), "127.0.0.1", protocol.Host("shop", "db"))
	if err == nil || !strings.Contains(err.Error(), "redirects are not followed") || reached.Load() != 0 {
		t.Errorf("got %v, and the other service was reached %d times", err, reached.Load())
	}
}
