package mysqld

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/pki"
	"github.com/mysql-operator/mysql-operator/test/rootfs"
)

// mysqld is a data directory with the settings to start a server on it.
type mysqld struct {
	rootfs, folder string
	port           int
	settings       []string
	environment    []string
	process        *exec.Cmd
	ended          chan error
}

// newMysqld makes a data directory. certificates is the folder with ca.pem, cert.pem and key.pem.
func newMysqld(t *testing.T, certificates string) *mysqld {
	t.Helper()
	m := &mysqld{rootfs: rootfs.Need(t), folder: t.TempDir(), port: rootfs.Port(t)}
	rootfs.NewData(t, m.rootfs, m.data())
	m.settings = append(rootfs.Small(),
		"--datadir="+m.data(), "--socket="+m.socket(), fmt.Sprintf("--port=%d", m.port), "--bind-address=127.0.0.1", "--mysqlx=OFF",
		"--pid-file="+m.file("pid"), "--log-error="+m.file("error.log"), "--tmpdir="+m.folder, "--secure-file-priv=NULL", "--skip-name-resolve",
		"--ssl-ca="+filepath.Join(certificates, "ca.pem"), "--ssl-cert="+filepath.Join(certificates, "cert.pem"),
		"--ssl-key="+filepath.Join(certificates, "key.pem"), "--auto-generate-certs=OFF", "--persisted-globals-load=OFF",
		"--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-bin=binlog", "--relay-log=relay", "--skip-replica-start=ON",
		fmt.Sprintf("--server-id=%d", m.port), "--init-file="+m.file("bootstrap.sql"), "--general-log=ON", "--general-log-file="+m.file("general.log"),
	)
	return m
}

func (m *mysqld) file(name string) string { return filepath.Join(m.folder, name) }
func (m *mysqld) data() string            { return m.file("data") }
func (m *mysqld) socket() string          { return m.file("s") }

// command returns a command that runs mysqld of the root file system.
func (m *mysqld) command(ctx context.Context, arguments ...string) *exec.Cmd {
	made := rootfs.Mysqld(ctx, m.rootfs, "--no-defaults", arguments...)
	made.Env = append(os.Environ(), m.environment...)
	return made
}

// start runs mysqld with an init_file until the test or stop ends it, and returns a connection of the account.
func (m *mysqld) start(t *testing.T, initFile string, account Account, settings ...string) *Server {
	t.Helper()
	if err := os.WriteFile(m.file("bootstrap.sql"), []byte(initFile), 0o600); err != nil {
		t.Fatal(err)
	}
	m.process = m.command(context.WithoutCancel(t.Context()), append(m.settings, settings...)...)
	m.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := m.process.Start(); err != nil {
		t.Fatal(err)
	}
	m.ended = make(chan error, 1)
	go func(process *exec.Cmd, ended chan<- error) { ended <- process.Wait() }(m.process, m.ended)
	t.Cleanup(func() { m.stop(t) })
	return m.connect(t, account)
}

// connect waits until mysqld accepts the account, and returns a connection.
func (m *mysqld) connect(t *testing.T, account Account) *Server {
	t.Helper()
	server, err := Local(m.socket(), account)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	eventually(t, "mysqld answers "+account.User, func() error { return server.Ping(t.Context()) }, m.messages)
	return server
}

// messages returns the error log.
func (m *mysqld) messages() string {
	text, err := os.ReadFile(m.file("error.log"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (m *mysqld) stop(t *testing.T) {
	t.Helper()
	if m.process == nil {
		return
	}
	_ = m.process.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-m.ended:
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Errorf("stop mysqld: %v", err)
		}
	case <-time.After(time.Minute):
		_ = m.process.Process.Kill()
		t.Errorf("mysqld did not stop in a minute:\n%s", m.messages())
	}
	m.process = nil
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() error, explain func() string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		err := holds()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("timed out after a minute: %s: %v\n%s", what, err, explain())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// writeCertificates makes a CA and a certificate for servers and clients on this machine.
func writeCertificates(t *testing.T) string {
	t.Helper()
	folder, now := t.TempDir(), time.Now()
	issue := func(template x509.Certificate, authority *tls.Certificate) pki.Pair {
		template.NotBefore, template.NotAfter = now.Add(-time.Hour), now.Add(24*time.Hour)
		made, err := pki.Issue(&template, authority)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	root := issue(x509.Certificate{
		Subject: pkix.Name{CommonName: "test CA"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil)
	authority, err := root.Parse()
	if err != nil {
		t.Fatal(err)
	}
	leaf := issue(x509.Certificate{
		Subject: pkix.Name{CommonName: "member"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, authority)
	for name, data := range map[string][]byte{"ca.pem": root.Certificate, "cert.pem": leaf.Certificate, "key.pem": leaf.Key} {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}
