package clone

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/mysql-operator/mysql-operator/pki"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/test/rootfs"
)

// server is a mysqld of a test.
type server struct {
	data, log string
	port      int
	rootfs    string
	authority *x509.CertPool
	process   *exec.Cmd
	ended     chan error
	db        *sql.DB
}

var cloneAccount = mysqld.Account{User: "clone", Password: "clone me"} //nolint:gochecknoglobals // a constant, if structs could be

// newServer creates an empty data directory and starts mysqld on it.
func newServer(t testing.TB, settings ...string) *server {
	t.Helper()
	folder, data := rootfs.Need(t), filepath.Join(t.TempDir(), "data")
	rootfs.NewData(t, folder, data)
	s := startServer(t, folder, data, settings...)
	s.exec(t, "SET sql_log_bin = OFF",
		"CREATE USER clone IDENTIFIED WITH caching_sha2_password BY 'clone me' REQUIRE SSL",
		"GRANT BACKUP_ADMIN ON *.* TO clone", "SET sql_log_bin = ON")
	return s
}

// startServer starts mysqld with the settings of a member on a data directory, and waits until it answers.
func startServer(t testing.TB, folder, data string, settings ...string) *server {
	t.Helper()
	run := t.TempDir()
	s := &server{data: data, log: filepath.Join(run, "error.log"), rootfs: folder, port: rootfs.Port(t), ended: make(chan error, 1)}
	s.authority = writeCertificates(t, run)
	socket := filepath.Join(run, "s")
	arguments := append(rootfs.Small(),
		"--datadir="+data, "--socket="+socket, fmt.Sprintf("--port=%d", s.port), "--bind-address=127.0.0.1", "--mysqlx=OFF",
		"--pid-file="+filepath.Join(run, "pid"), "--log-error="+s.log, "--log-error-verbosity=3", "--secure-file-priv=NULL", "--skip-name-resolve",
		"--ssl-ca="+filepath.Join(run, "ca.pem"), "--ssl-cert="+filepath.Join(run, "cert.pem"), "--ssl-key="+filepath.Join(run, "key.pem"),
		"--auto-generate-certs=OFF", "--persisted-globals-load=OFF", "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-bin=binlog",
		"--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1", "--server-id="+fmt.Sprint(s.port),
		"--plugin-load-add=semisync_source.so", "--plugin-load-add=semisync_replica.so", "--plugin-load-add=mysql_clone.so",
	)
	s.process = rootfs.Mysqld(context.WithoutCancel(t.Context()), folder, "--no-defaults", append(arguments, settings...)...)
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { s.ended <- s.process.Wait() }()
	t.Cleanup(func() { s.stop(t) })
	config := driver.NewConfig()
	config.User, config.Net, config.Addr, config.DBName = "root", "unix", socket, "mysql"
	config.Logger, config.MultiStatements = &driver.NopLogger{}, true
	connector, err := driver.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	s.db = sql.OpenDB(connector)
	s.await(t)
	return s
}

// await waits until mysqld answers.
func (s *server) await(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		if s.db.PingContext(ctx) == nil {
			return
		}
		select {
		case err := <-s.ended:
			s.ended <- err
			t.Fatalf("mysqld ended: %v\n%s", err, s.messages(t))
		case <-ctx.Done():
			t.Fatalf("mysqld does not answer:\n%s", s.messages(t))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (s *server) stop(t testing.TB) {
	t.Helper()
	_ = s.db.Close()
	_ = s.process.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-s.ended:
		s.ended <- err
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Errorf("stop mysqld: %v", err)
		}
	case <-time.After(time.Minute):
		_ = s.process.Process.Kill()
		t.Errorf("mysqld did not stop in a minute:\n%s", s.messages(t))
	}
}

// messages returns the error log.
func (s *server) messages(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// complaints returns the errors in the log.
func (s *server) complaints(t testing.TB) []string {
	t.Helper()
	var found []string
	for line := range strings.Lines(s.messages(t)) {
		if strings.Contains(line, "[ERROR]") {
			found = append(found, line)
		}
	}
	return found
}

// exec runs statements on one connection.
func (s *server) exec(t testing.TB, statements ...string) {
	t.Helper()
	conn, err := s.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, statement := range statements {
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// rows returns a result as text, one row per line, columns separated by a blank.
func (s *server) rows(t testing.TB, query string) []string {
	t.Helper()
	rows, err := s.db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for rows.Next() {
		values := make([]sql.NullString, len(columns))
		targets := make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := rows.Scan(targets...); err != nil {
			t.Fatal(err)
		}
		var line []string
		for _, value := range values {
			line = append(line, value.String)
		}
		lines = append(lines, strings.Join(line, " "))
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return lines
}

func (s *server) value(t testing.TB, query string) string {
	t.Helper()
	rows := s.rows(t, query)
	if len(rows) != 1 {
		t.Fatalf("%s: %d rows", query, len(rows))
	}
	return rows[0]
}

// donor returns the server's address for Copy.
func (s *server) donor() Donor {
	return Donor{Host: "127.0.0.1", Port: s.port, Account: cloneAccount, TLS: &tls.Config{RootCAs: s.authority, MinVersion: tls.VersionTLS12}}
}

// restore copies the server into a data directory and starts mysqld on it.
func (s *server) restore(t testing.TB, observer Observer, wrap ...func(Sink) Sink) *server {
	t.Helper()
	root := filepath.Join(t.TempDir(), "restored")
	s.copyTo(t, root, observer, wrap...)
	restored := startServer(t, s.rootfs, root)
	if complaints := restored.complaints(t); len(complaints) != 0 {
		t.Errorf("the restored mysqld logged errors:\n%s", strings.Join(complaints, ""))
	}
	return restored
}

func (s *server) copyTo(t testing.TB, root string, observer Observer, wrap ...func(Sink) Sink) Result {
	t.Helper()
	directory, err := NewDirectory(root)
	if err != nil {
		t.Fatal(err)
	}
	defer directory.Close()
	sink := Sink(directory)
	for _, one := range wrap {
		sink = one(sink)
	}
	result, err := Copy(t.Context(), s.donor(), sink, observer)
	if err != nil {
		t.Fatalf("%v\ndonor:\n%s", err, s.messages(t))
	}
	if err := directory.Finish(); err != nil {
		t.Fatal(err)
	}
	return result
}

// writeCertificates creates an authority and a certificate for a server on this machine.
func writeCertificates(t testing.TB, folder string) *x509.CertPool {
	t.Helper()
	now := time.Now()
	root, err := pki.Issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "test authority"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := root.Parse()
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := pki.Issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "donor"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, authority)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"ca.pem": root.Certificate, "cert.pem": leaf.Certificate, "key.pem": leaf.Key} {
		if err := os.WriteFile(filepath.Join(folder, name), bytes.Clone(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(root.Certificate)
	return pool
}
