package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	driver "github.com/go-sql-driver/mysql"
)

// open connects as root to a Service of the cluster, over TLS with the server's name verified, as a careful client would.
func (p *place) open(service, password string) *sql.DB {
	p.t.Helper()
	return p.openTrusting(service, password, p.bundle())
}

// bundle is what clients are to trust.
func (p *place) bundle() string {
	p.t.Helper()
	return p.read("configmaps", p.cluster+"-ca-cert", `{.data.ca\.crt}`)
}

// openTrusting connects so with these CAs.
func (p *place) openTrusting(service, password, bundle string) *sql.DB {
	p.t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(bundle)) {
		p.t.Fatal("the cluster's CA is not a certificate")
	}
	return p.connect(service, password, &tls.Config{RootCAs: pool, ServerName: service + "." + p.namespace + ".svc", MinVersion: tls.VersionTLS12})
}

// connect connects as root to a Service; without TLS where security is nil.
func (p *place) connect(service, password string, security *tls.Config) *sql.DB {
	p.t.Helper()
	address := p.read("services", service, "{.spec.clusterIP}:{.spec.ports[0].port}")
	config := driver.NewConfig()
	config.User, config.Passwd, config.Net, config.Addr = "root", password, "tcp", address
	config.Timeout, config.ReadTimeout, config.WriteTimeout = 2*time.Second, 20*time.Second, 20*time.Second
	config.TLS = security
	config.Logger = &driver.NopLogger{}
	connector, err := driver.NewConnector(config)
	if err != nil {
		p.t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	p.t.Cleanup(func() { db.Close() })
	p.reached(db, service)
	return db
}

// reached waits until a server answers, be it with a refusal: nodes hear of a Service's new endpoint a moment after the cluster is Ready.
func (p *place) reached(db *sql.DB, service string) {
	p.t.Helper()
	p.wait("a server behind the Service "+service, answerLimit, func(ctx context.Context) (bool, string) {
		err := db.PingContext(ctx)
		if refusal := (*driver.MySQLError)(nil); err == nil || errors.As(err, &refusal) {
			return true, ""
		}
		return false, err.Error()
	})
}

func (p *place) exec(db *sql.DB, statements ...string) {
	p.t.Helper()
	ctx, cancel := p.context(30 * time.Second)
	defer cancel()
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			p.t.Fatalf("%s: %v", statement, err)
		}
	}
}

// value reads one value as text.
func value(ctx context.Context, db *sql.DB, query string) (string, error) {
	var text string
	err := db.QueryRowContext(ctx, query).Scan(&text)
	return text, err
}

// waitValue waits until a query answers what is wanted.
func (p *place) waitValue(db *sql.DB, query, want string, limit time.Duration) {
	p.t.Helper()
	p.wait(query+" to be "+want, limit, func(ctx context.Context) (bool, string) {
		got, err := value(ctx, db, query)
		if err != nil {
			return false, err.Error()
		}
		return got == want, got
	})
}

// isValue fails the test unless a query answers what is wanted within a second of its first answer. A server beside others on a busy
// machine may take a while to answer at all.
func (p *place) isValue(db *sql.DB, query, want string) {
	p.t.Helper()
	const settling = time.Second
	var answered time.Time
	p.wait(query+" to be "+want, answerLimit, func(ctx context.Context) (bool, string) {
		got, err := value(ctx, db, query)
		if err != nil {
			return false, err.Error()
		}
		if answered.IsZero() {
			answered = time.Now()
		}
		if got != want && time.Since(answered) > settling {
			p.t.Fatalf("%s is %s, not %s", query, got, want)
		}
		return got == want, got
	})
}

// writer inserts numbered rows through the write Service, one after the other, and remembers which were acknowledged. It continues after
// errors, as a client with a connection pool does.
type writer struct {
	db   *sql.DB
	stop context.CancelFunc
	done chan struct{}

	mu    sync.Mutex
	acked map[int]bool
	last  time.Time
	gap   time.Duration
	// failed is the error of the last write; nil if it was acknowledged.
	failed error
}

func (p *place) startWriter() *writer {
	p.t.Helper()
	db := p.open(p.cluster, p.password)
	p.exec(db, "CREATE DATABASE IF NOT EXISTS test", "CREATE TABLE IF NOT EXISTS test.numbers (id INT PRIMARY KEY, note VARCHAR(64))")
	ctx, stop := context.WithCancel(p.t.Context())
	w := &writer{db: db, stop: stop, done: make(chan struct{}), acked: map[int]bool{}, last: time.Now()}
	go w.run(ctx)
	p.t.Cleanup(w.end)
	return w
}

func (w *writer) run(ctx context.Context) {
	defer close(w.done)
	for id := 1; ctx.Err() == nil; id++ {
		// The last one ends, too: a row that is committed after its client has left would come while the test counts.
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
		_, err := w.db.ExecContext(bounded, "INSERT INTO test.numbers VALUES (?, 'written by a test')", id)
		cancel()
		w.ended(id, err)
		pause := 20 * time.Millisecond
		if err != nil {
			pause = 50 * time.Millisecond
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func (w *writer) ended(id int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed = err; err != nil {
		return
	}
	now := time.Now()
	w.gap = max(w.gap, now.Sub(w.last))
	w.acked[id], w.last = true, now
}

// count returns how many writes were acknowledged, and the error of the last one.
func (w *writer) count() (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.acked), w.failed
}

func (w *writer) end() {
	w.stop()
	<-w.done
}

// goesOn waits until further writes were acknowledged.
func (p *place) goesOn(w *writer) {
	p.t.Helper()
	before, _ := w.count()
	p.wait("clients to write again", changeLimit, func(context.Context) (bool, string) {
		now, err := w.count()
		return now >= before+20, fmt.Sprintf("%d writes since, the last error: %v", now-before, err)
	})
}

// showMembers logs what each mysqld runs and waits for.
func (p *place) showMembers(ctx context.Context) {
	said, _ := p.kubectl.Run(ctx, "get", "pods", "-n", p.namespace, "-l", "app.kubernetes.io/name=mysql", "-o", "jsonpath={.items[*].status.podIP}")
	for address := range strings.FieldsSeq(said) {
		config := p.memberConfig(address)
		for _, query := range []string{
			"SELECT id, user, command, time, state, info FROM performance_schema.processlist",
			"SELECT * FROM performance_schema.global_status WHERE variable_name LIKE 'Rpl_semi_sync%'",
			"SELECT * FROM performance_schema.global_variables WHERE variable_name IN ('super_read_only', 'offline_mode', 'gtid_executed')",
		} {
			rows, err := table(ctx, config, query)
			p.t.Logf("%s: %s: %v\n%s", address, query, err, rows)
		}
	}
}

// memberConfig is for connections as root to one member.
func (p *place) memberConfig(address string) *driver.Config {
	config := driver.NewConfig()
	config.User, config.Passwd, config.Net, config.Addr, config.TLSConfig = "root", p.password, "tcp", net.JoinHostPort(address, "3306"), "skip-verify"
	config.Timeout, config.ReadTimeout, config.Logger = 2*time.Second, 5*time.Second, &driver.NopLogger{}
	return config
}

// table returns the rows of a query as lines.
func table(ctx context.Context, config *driver.Config, query string) (string, error) {
	connector, err := driver.NewConnector(config)
	if err != nil {
		return "", err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return "", err
	}
	cells, scanned := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range cells {
		scanned[i] = &cells[i]
	}
	var lines strings.Builder
	for rows.Next() {
		if err := rows.Scan(scanned...); err != nil {
			return lines.String(), err
		}
		for _, cell := range cells {
			fmt.Fprintf(&lines, "%s\t", cell.String)
		}
		lines.WriteString("\n")
	}
	return lines.String(), rows.Err()
}

// nothingLost checks that every acknowledged row is there.
func (p *place) nothingLost(w *writer, db *sql.DB) {
	p.t.Helper()
	ctx, cancel := p.context(time.Minute)
	defer cancel()
	rows, err := db.QueryContext(ctx, "SELECT id FROM test.numbers")
	if err != nil {
		p.t.Fatal(err)
	}
	defer rows.Close()
	present := map[int]bool{}
	for rows.Next() {
		var id int
		if err := rows.Scan(&id); err != nil {
			p.t.Fatal(err)
		}
		present[id] = true
	}
	if err := rows.Err(); err != nil {
		p.t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range w.acked {
		if !present[id] {
			p.t.Errorf("write %d was acknowledged and is lost", id)
		}
	}
	p.t.Logf("%d writes acknowledged, longest gap %s", len(w.acked), w.gap.Round(time.Millisecond))
}
