package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	driver "github.com/go-sql-driver/mysql"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
	"github.com/mysql-operator/mysql-operator/test/rootfs"
)

// realMember is a mysqld with its agent, prepared as in a Pod.
type realMember struct {
	rootfs string
	layout Layout
	agent  *Agent
	port   int
	// signals reach the supervisor, which ends with exited.
	signals chan os.Signal
	exited  chan error
}

func startRealMember(t *testing.T, ca authority, before ...func(Layout)) *realMember {
	t.Helper()
	m := startMysqld(t, ca, before...)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- m.agent.Run(ctx) }()
	t.Cleanup(func() {
		m.stop(t)
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the agent ended with %v", err)
		}
	})
	return m
}

// startWithoutLoop starts a member's mysqld, whose agent takes no turns.
func startWithoutLoop(t *testing.T, ca authority) *realMember {
	t.Helper()
	m := startMysqld(t, ca)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.agent.watchSupervisor(ctx)
	}()
	t.Cleanup(func() {
		m.stop(t)
		stop()
		<-ended
	})
	return m
}

// startMysqld starts a member's mysqld, which waits for its agent. The caller must stop it.
func startMysqld(t *testing.T, ca authority, before ...func(Layout)) *realMember {
	t.Helper()
	m := &realMember{rootfs: rootfs.Need(t), layout: newLayout(t), port: rootfs.Port(t)}
	for _, prepare := range before {
		prepare(m.layout)
	}
	short, err := os.MkdirTemp("", "m") //nolint:usetesting // the path of a socket has 107 characters at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	m.layout.Run = short
	ca.install(m.layout, 2, "localhost")
	settings := fmt.Sprintf("[mysqld]\nport = %d\nbind_address = 127.0.0.1,127.0.0.2\nmysqlx = OFF\nskip_name_resolve = ON\npersisted_globals_load = OFF\nauto_generate_certs = OFF\n"+
		"gtid_mode = ON\nenforce_gtid_consistency = ON\nlog_bin = binlog\nrelay_log = relay\nskip_replica_start = ON\nreplica_net_timeout = 10\nsuper_read_only = ON\nlog_error = %s\nsecure_file_priv = NULL\n"+
		"loose_rpl_semi_sync_source_timeout = 4294967295\nplugin_load_add = semisync_source.so\nplugin_load_add = semisync_replica.so\nplugin_load_add = mysql_clone.so\n", m.port, m.log())
	if err := Prepare(m.layout, Identity{Pod: "db-0", Host: "localhost", Settings: settings, Given: smallest()}); err != nil {
		t.Fatal(err)
	}
	rootfs.NewData(t, m.rootfs, m.layout.DataDir())
	m.start(t)
	if m.agent, err = New(m.layout, Identity{Ordinal: 1}, "", logr.Discard()); err != nil {
		t.Fatal(err)
	}
	return m
}

// start starts mysqld under a supervisor, as its container does.
func (m *realMember) start(t *testing.T) {
	t.Helper()
	command := rootfs.Mysqld(t.Context(), m.rootfs, "--defaults-file="+m.layout.serverConfig())
	supervised := supervisor.Supervisor{
		Command: command.Args, RunDir: m.layout.Run, Log: t.Output(), Wait: waitFor, Heard: heardHere, CloseTimeout: time.Minute,
		Attributes: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	}
	m.signals, m.exited = make(chan os.Signal, 1), make(chan error, 1)
	go func(signals <-chan os.Signal, exited chan<- error) {
		_, err := supervised.Run(context.WithoutCancel(t.Context()), signals)
		exited <- err
	}(m.signals, m.exited)
}

// waitFor waits until a process ends.
func waitFor(pid int) (syscall.WaitStatus, error) {
	for {
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &status, 0, nil); !errors.Is(err, syscall.EINTR) {
			return status, err
		}
	}
}

// stop stops mysqld and its supervisor, as kubelet stops a container. If replication threads stop at the same moment, mysqld may wait for
// itself without end (seen on 9.7.4), and is killed when its time is over.
func (m *realMember) stop(t *testing.T) {
	t.Helper()
	m.signals <- syscall.SIGTERM
	kubelet := time.AfterFunc(2*time.Minute, func() {
		t.Logf("mysqld does not end after SIGTERM, kill it: %v", syscall.Kill(m.pid(t), syscall.SIGKILL))
	})
	defer kubelet.Stop()
	if err := <-m.exited; err != nil {
		t.Errorf("the supervisor ended with %v", err)
	}
}

// crashes kills mysqld, and waits until the agent reports on the next one. Everybody else has to find out by themselves.
func (m *realMember) crashes(t *testing.T) {
	t.Helper()
	boot := m.agent.Status().Boot
	if err := syscall.Kill(m.pid(t), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	m.until(t, "the agent has noticed", func() bool { return m.agent.Status().Boot != boot })
}

// pid returns the process ID of mysqld.
func (m *realMember) pid(t *testing.T) int {
	t.Helper()
	number, err := strconv.Atoi(strings.TrimSpace(read(t, filepath.Join(m.layout.Run, "mysqld.pid"))))
	if err != nil {
		t.Fatal(err)
	}
	return number
}

func (m *realMember) log() string { return filepath.Join(m.layout.Temp, "error.log") }

func (m *realMember) messages() string {
	text, err := os.ReadFile(m.log())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// until waits until a condition holds.
func (m *realMember) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("timed out after two minutes: %s; the member reports %+v\n%s", what, m.agent.Status(), m.messages())
		case <-time.After(20 * time.Millisecond): // mysqld sends no signal when it is ready
		}
	}
}

// leads makes the member the primary, whose commits wait for the given number of acknowledgements.
func (m *realMember) leads(t *testing.T, revision int64, acks int) {
	t.Helper()
	record := replication.Record{Epoch: 1, Revision: revision, Primary: "db-0", Joining: []string{"db-1"}, RequiredAcks: acks}
	order := replication.Assignment{Record: record, Role: replication.RolePrimary, Acks: acks}
	m.obeys(t, order)
	m.until(t, "the member takes writes", func() bool {
		m.obeysAgain(t)
		status := m.agent.Status()
		return status.State == replication.StateWriting && status.AcksEnforced == acks
	})
}

// takes waits until mysqld uses the files that are mounted now.
func (m *realMember) takes(t *testing.T) {
	t.Helper()
	wanted := TLSDigest([]byte(read(t, m.layout.caFile())), []byte(read(t, m.layout.certFile())))
	m.until(t, "mysqld uses the files", func() bool { return m.agent.Status().TLS == wanted })
}

// open returns a client that trusts these CAs.
func (m *realMember) open(t *testing.T, user, password string, own []tls.Certificate, trusted ...authority) *sql.DB {
	t.Helper()
	config := driver.NewConfig()
	config.User, config.Passwd, config.Net, config.Addr = user, password, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(m.port))
	config.Timeout, config.Logger = 5*time.Second, &driver.NopLogger{}
	pool := x509.NewCertPool()
	for _, one := range trusted {
		pool.AddCert(one.cert)
	}
	config.TLS = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, ServerName: "localhost", Certificates: own}
	connector, err := driver.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxIdleConns(0) // every statement over a new connection
	return db
}

// card returns the member's certificate as another member would present it.
func (m *realMember) card(t *testing.T) []tls.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(m.layout.certFile(), m.layout.keyFile())
	if err != nil {
		t.Fatal(err)
	}
	return []tls.Certificate{pair}
}

func uptime(t *testing.T, db *sql.DB) int {
	t.Helper()
	var name string
	var seconds int
	if err := db.QueryRowContext(t.Context(), "SHOW GLOBAL STATUS LIKE 'Uptime'").Scan(&name, &seconds); err != nil {
		t.Fatal(err)
	}
	return seconds
}

// writer writes over new connections, and over one kept connection, until it is stopped.
type writer struct {
	rows  atomic.Int64
	fault atomic.Pointer[error]
	stop  context.CancelFunc
	ended chan struct{}
}

func startWriter(t *testing.T, fresh *sql.DB) *writer {
	t.Helper()
	kept, err := fresh.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	w := &writer{stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		defer kept.Close()
		for ctx.Err() == nil {
			_, first := fresh.ExecContext(ctx, "INSERT INTO shop.orders VALUES ()")
			_, second := kept.ExecContext(ctx, "INSERT INTO shop.orders VALUES ()")
			if err := errors.Join(first, second); err != nil {
				if ctx.Err() == nil {
					w.fault.Store(&err)
				}
				return
			}
			w.rows.Add(2)
		}
	}()
	return w
}

func (w *writer) end(t *testing.T) {
	t.Helper()
	w.stop()
	<-w.ended
	if fault := w.fault.Load(); fault != nil {
		t.Errorf("after %d rows a write failed: %v", w.rows.Load(), *fault)
	}
}

// TestCARotatesUnderAMysqldThatIsWrittenTo: a client that trusts both CAs in time writes during the rotation, over new connections and over
// an older one. No write is lost, and mysqld does not restart.
func TestCARotatesUnderAMysqldThatIsWrittenTo(t *testing.T) {
	t.Parallel()
	old, next := newAuthority(t), newAuthority(t)
	m := startRealMember(t, old)
	m.leads(t, 1, 0)
	m.takes(t)
	former := m.open(t, "root", "root's", nil, old)
	for _, statement := range []string{"CREATE DATABASE shop", "CREATE TABLE shop.orders (id BIGINT AUTO_INCREMENT PRIMARY KEY)"} {
		if _, err := former.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	began, boot := time.Now(), m.agent.Status().Boot
	writing := startWriter(t, m.open(t, "root", "root's", nil, next, old))
	more := func() {
		t.Helper()
		from := writing.rows.Load()
		m.until(t, "the client continues", func() bool { return writing.rows.Load() >= from+20 || writing.fault.Load() != nil })
	}
	more()
	before := m.card(t)

	t.Log("the new CA is added: clients that know only the old one still verify")
	trust(t, m.layout, next, old)
	m.takes(t)
	more()
	if err := former.PingContext(t.Context()); err != nil {
		t.Errorf("a client of the old CA is refused in the overlap: %v", err)
	}

	t.Log("the members get certificates of the new CA; a member that still presents the old one can connect")
	next.install(m.layout, 3, "localhost")
	trust(t, m.layout, next, old)
	m.takes(t)
	more()
	for what, shown := range map[string][]tls.Certificate{"old": before, "new": m.card(t)} {
		if err := m.open(t, mysqld.ObserverUser, mysqld.ReplicationUsers+"-pass", shown, next).PingContext(t.Context()); err != nil {
			t.Errorf("a member that presents a certificate of the %s CA is refused: %v", what, err)
		}
	}
	if err := former.PingContext(t.Context()); err == nil {
		t.Error("the certificate is not that of the new CA")
	}

	t.Log("the old CA is removed")
	trust(t, m.layout, next)
	m.takes(t)
	more()
	writing.end(t)
	if err := m.open(t, mysqld.ObserverUser, mysqld.ReplicationUsers+"-pass", before, next).PingContext(t.Context()); err == nil {
		t.Error("a member that presents a certificate of the old CA can connect")
	}
	latest := m.open(t, "root", "root's", nil, next)
	var count int64
	if err := latest.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM shop.orders").Scan(&count); err != nil || count < writing.rows.Load() {
		t.Errorf("%d rows were acknowledged, there are %d: %v", writing.rows.Load(), count, err)
	}
	if up := uptime(t, latest); time.Duration(up)*time.Second < time.Since(began)-2*time.Second || m.agent.Status().Boot != boot {
		t.Errorf("mysqld is up for %d s, the test began %s ago", up, time.Since(began))
	}
}
