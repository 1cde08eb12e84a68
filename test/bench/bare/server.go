// Package bare runs MySQL servers with replication and without Kubernetes, as the benchmarks compare with: what MySQL alone needs on this
// machine is the least that an operator can need.
package bare

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/mysql-operator/mysql-operator/test/rootfs"
)

const (
	// startLimit bounds a start of mysqld, and stepLimit a statement that changes replication.
	startLimit = 2 * time.Minute
	stepLimit  = time.Minute
	// firstPort is below the ports that the kernel gives to connections.
	firstPort = 27_310
	account   = "replication"
	password  = "bare-Passw0rd"
)

// Server is one mysqld, which its clients reach by its socket, and replicas by TCP on 127.0.0.1.
type Server struct {
	// DB connects as root, and keeps no idle connections.
	DB     *sql.DB
	folder string
	rootfs string
	id     int
	// process is the mysqld that runs or ran last. ended is closed when it has ended.
	process *exec.Cmd
	ended   chan struct{}
}

// newServer makes a data directory in a folder.
func newServer(ctx context.Context, root, folder string, id int) (*Server, error) {
	s := &Server{folder: filepath.Join(folder, strconv.Itoa(id)), rootfs: root, id: id}
	if err := os.Mkdir(s.folder, 0o700); err != nil {
		return nil, err
	}
	if err := rootfs.CopyData(ctx, root, s.data()); err != nil {
		return nil, err
	}
	config := driver.NewConfig()
	config.User, config.Net, config.Addr = "root", "unix", s.socket()
	config.Logger = &driver.NopLogger{}
	connector, err := driver.NewConnector(config)
	if err != nil {
		return nil, err
	}
	s.DB = sql.OpenDB(connector)
	s.DB.SetMaxIdleConns(-1)
	return s, nil
}

func (s *Server) data() string   { return filepath.Join(s.folder, "data") }
func (s *Server) socket() string { return filepath.Join(s.folder, "s") }
func (s *Server) port() int      { return firstPort + s.id }

// settings are those that members of a MySQLCluster have, as far as commits and replication rest on them.
func (s *Server) settings() []string {
	return append(rootfs.Small(), "--datadir="+s.data(), "--socket="+s.socket(), "--pid-file="+filepath.Join(s.folder, "pid"),
		"--log-error="+s.log(), "--port="+strconv.Itoa(s.port()), "--server-id="+strconv.Itoa(s.id), "--bind-address=127.0.0.1", "--mysqlx=OFF",
		"--log-bin=binlog", "--relay-log=relay", "--relay-log-recovery=OFF", "--gtid-mode=ON", "--enforce-gtid-consistency=ON",
		"--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1", "--super-read-only=ON", "--skip-replica-start=ON", "--skip-name-resolve=ON", "--secure-file-priv=NULL",
		"--plugin-load-add=semisync_source.so", "--plugin-load-add=semisync_replica.so", "--plugin-load-add=mysql_clone.so",
		"--loose-rpl-semi-sync-source-timeout=4233600000", "--replication-sender-observe-commit-only=ON")
}

func (s *Server) log() string { return filepath.Join(s.folder, "error.log") }

// Start starts mysqld, and waits until it answers.
func (s *Server) Start(ctx context.Context) error {
	s.process = rootfs.Mysqld(context.WithoutCancel(ctx), s.rootfs, "--no-defaults", s.settings()...)
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	ended := make(chan struct{})
	s.ended = ended
	if err := s.process.Start(); err != nil {
		return fmt.Errorf("start mysqld: %w", err)
	}
	go func(process *exec.Cmd) {
		defer close(ended)
		_ = process.Wait() // its log says how
	}(s.process)
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for s.DB.PingContext(ctx) != nil {
		select {
		case <-ended:
			return fmt.Errorf("mysqld has ended: %s", s.messages())
		case <-ctx.Done():
			return fmt.Errorf("wait until mysqld answers: %w: %s", ctx.Err(), s.messages())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

func (s *Server) messages() string {
	text, err := os.ReadFile(s.log())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}

// Kill ends mysqld with SIGKILL, and waits until it has ended.
func (s *Server) Kill() error {
	if s.process == nil {
		return nil
	}
	if err := s.process.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-s.ended
	return nil
}

// Run runs statements, one after the other.
func (s *Server) Run(ctx context.Context, statements ...string) error {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	conn, err := s.DB.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, statement := range statements {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// Value reads one value.
func (s *Server) Value(ctx context.Context, query string) (value string, err error) {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	if err := s.DB.QueryRowContext(ctx, query).Scan(&value); err != nil {
		return "", fmt.Errorf("%s: %w", query, err)
	}
	return value, nil
}
