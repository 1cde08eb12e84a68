//go:build !without_pulsar

package pulsar

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/test/pulsarbroker"
)

// eventually waits until fault returns an empty string. If it does not, the test fails with the last fault.
func eventually(t *testing.T, fault func() string) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		last := fault()
		if last == "" {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("after 30s: %s", last)
		case <-look.C:
		}
	}
}

// is waits until get returns want.
func is(t *testing.T, what string, get func() []string, want ...string) {
	t.Helper()
	eventually(t, func() string {
		if got := get(); strings.Join(got, "|") != strings.Join(want, "|") {
			return what + ": " + strings.Join(got, "|") + ", want " + strings.Join(want, "|")
		}
		return ""
	})
}

// journal is a log that tests can read.
type journal struct {
	// level is Info by default.
	level slog.LevelVar

	mu   sync.Mutex
	text bytes.Buffer
	// refused is the error of writing a message; nil for success.
	refused error
	// each, if set, is called for every message that was written.
	each func()
}

func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	message := bytes.Contains(line, []byte(`"msg":"message"`))
	if message && j.refused != nil {
		return 0, j.refused
	}
	if message && j.each != nil {
		j.each()
	}
	return j.text.Write(line)
}

// after sets a function that is called for each message logged from now on.
func (j *journal) after(do func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.each = do
}

// refuse makes messages fail with an error, but no other lines; with nil, messages succeed again.
func (j *journal) refuse(why error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.refused = why
}

// raw returns all that was written.
func (j *journal) raw() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// line is a line of the log, with the fields that the tests read.
type line struct {
	Msg         string `json:"msg"`
	Payload     string `json:"payload"`
	Error       string `json:"error"`
	In          string `json:"in"`
	Redelivered int    `json:"redelivered"`
}

func (j *journal) lines(t *testing.T) []line {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	found := []line{}
	for document := range strings.Lines(j.text.String()) {
		var one line
		if err := json.Unmarshal([]byte(document), &one); err != nil {
			t.Fatalf("read the log's line %s: %v", document, err)
		}
		found = append(found, one)
	}
	return found
}

// messages returns a function that returns the logged payloads.
func (j *journal) messages(t *testing.T) func() []string {
	return func() []string {
		found := []string{}
		for _, one := range j.lines(t) {
			if one.Msg == "message" {
				found = append(found, one.Payload)
			}
		}
		return found
	}
}

// pauses returns how long the consumer waited between its attempts.
func (j *journal) pauses(t *testing.T) []time.Duration {
	t.Helper()
	found := []time.Duration{}
	for _, one := range j.lines(t) {
		if one.In == "" {
			continue
		}
		pause, err := time.ParseDuration(one.In)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, pause)
	}
	return found
}

// says waits for a line with this message, and with an error that contains why.
func (j *journal) says(t *testing.T, message, why string) {
	t.Helper()
	eventually(t, func() string {
		for _, one := range j.lines(t) {
			if one.Msg == message && strings.Contains(one.Error, why) {
				return ""
			}
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		return "no line " + message + " with " + why + " in:\n" + j.text.String()
	})
}

// count returns how often a command was received.
func count(heard []string, kind string) int {
	return len(heard) - len(slices.DeleteFunc(slices.Clone(heard), func(one string) bool { return one == kind }))
}

// serve starts a broker of a cluster on a free address.
func serve(t *testing.T, cluster *pulsarbroker.Cluster, secure *tls.Config) *pulsarbroker.Broker {
	t.Helper()
	return serveAt(t, cluster, secure, "127.0.0.1:0")
}

func serveAt(t *testing.T, cluster *pulsarbroker.Cluster, secure *tls.Config, address string) *pulsarbroker.Broker {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	broker := cluster.Serve(listener, secure)
	t.Cleanup(func() { _ = broker.Stop() })
	return broker
}

// running is a running consumer.
type running struct {
	*Consumer
	log  *journal
	stop func()
	done chan error
}

func settingsFor(broker *pulsarbroker.Broker) Settings {
	return Settings{Server: broker.URL(), Topic: "my-topic", Subscription: "my-subscription", Consumer: "pod-1"}
}

// consume starts a consumer that runs until the test ends or stops it.
func consume(t *testing.T, settings Settings, changes ...func(*running)) *running {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	r := &running{log: &journal{}, stop: stop, done: make(chan error, 1)}
	quick := usualLimits()
	quick.answer = time.Second
	r.Consumer = &Consumer{limits: quick, Settings: settings, Log: slog.New(slog.NewJSONHandler(r.log, &slog.HandlerOptions{Level: &r.log.level}))}
	for _, change := range changes {
		change(r)
	}
	go func() {
		defer close(r.done)
		r.done <- r.Run(ctx)
	}()
	t.Cleanup(func() {
		r.end(t)
		if t.Failed() {
			t.Log(r.log.raw())
		}
	})
	return r
}

// everything sets the log's level so that it also keeps the library's messages.
func everything(r *running) { r.log.level.Set(slog.LevelDebug) }

// end stops the consumer and waits until it has ended.
func (r *running) end(t *testing.T) {
	t.Helper()
	r.stop()
	if err := <-r.done; err != nil {
		t.Errorf("the consumer ended with: %v", err)
	}
}

func (r *running) ready(t *testing.T, want bool) {
	t.Helper()
	eventually(t, func() string {
		if r.Ready() != want {
			return "the consumer is not ready, or is and should not be"
		}
		return ""
	})
}

// secretOf creates a folder of files, like a Secret in a Pod.
func secretOf(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, content := range files {
		put(t, folder, name, content)
	}
	return folder
}

// put replaces a file in one step, as kubelet does.
func put(t *testing.T, folder, name, content string) {
	t.Helper()
	fresh := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(fresh, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(fresh, filepath.Join(folder, name)); err != nil {
		t.Fatal(err)
	}
}

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         string
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{certificate, key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sign creates a certificate for an address, and returns it and its key in PEM form.
func (a authority) sign(t *testing.T, address string) (certificate, private string) {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.ParseIP(address)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, content []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}))
	}
	return block("CERTIFICATE", der), block("PRIVATE KEY", encoded)
}

// server returns the configuration of a broker with a certificate for an address.
func (a authority) server(t *testing.T, address string) *tls.Config {
	t.Helper()
	certificate, private := a.sign(t, address)
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(private))
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(a.certificate)
	return &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: clients, MinVersion: tls.VersionTLS12}
}
