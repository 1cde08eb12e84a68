package e2e

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/test/sample"
)

// deleteOwnSecrets deletes the Secrets that the operator made.
func (p *place) deleteOwnSecrets() {
	p.t.Helper()
	p.run("delete", "secret", p.cluster+"-accounts", p.cluster+"-tls", "-n", p.namespace)
	p.run("delete", "secret", agent.AuthoritySecret(p.namespace, p.cluster), "-n", operatorNamespace)
}

// ownSecretsReturn waits until these Secrets are there again, with another CA and other passwords, and the running members of a cluster of
// two have taken them over. No client and no member is locked out, not even after a restart of mysqld. The database kept exists before.
func (p *place) ownSecretsReturn(before string) {
	p.t.Helper()
	p.wait("the Secrets to be made again", changeLimit, func(context.Context) (bool, string) {
		now, err := p.try("get", "secret", p.cluster+"-accounts", p.cluster+"-tls", "-o", "name")
		return err == nil, now
	})
	if after := p.ownSecrets(); after == before {
		p.t.Fatal("the Secrets were not created again")
	}
	members := []string{p.cluster + "-0", p.cluster + "-1"}
	for _, member := range members {
		p.wait("member "+member+" to take the new passwords over", 3*time.Minute, func(ctx context.Context) (bool, string) {
			logs, err := p.kubectl.Run(ctx, "logs", member, "-c", "agent", "-n", p.namespace)
			return err == nil && strings.Contains(logs, "the operator's accounts have new passwords"), "not yet"
		})
	}
	p.settled(2)
	for _, member := range members {
		p.t.Logf("mysqld of %s starts again", member)
		before := p.lives(2)
		kill(p.t.T, member, "mysqld")
		p.wait("another mysqld to run", changeLimit, func(context.Context) (bool, string) {
			now := p.lives(2)
			return now != before && len(processes(p.t.T, member, "mysqld")) == 1, now
		})
		p.settled(2)
	}
	db := p.open(p.cluster, p.password)
	p.wait("a write to be taken", answerLimit, func(ctx context.Context) (bool, string) {
		_, err := db.ExecContext(ctx, "CREATE DATABASE IF NOT EXISTS after")
		return err == nil, fmt.Sprint(err)
	})
	p.waitValue(p.open(p.cluster+"-read", p.password), "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name IN ('kept', 'after')", "2", answerLimit)
}

// TestCAIsReplacedWhileClientsVerify asks for a new CA, with no more time for clients than this one needs: it reads the ConfigMap for each
// connection, verifies the server, and never fails. No container starts again.
func TestCAIsReplacedWhileClientsVerify(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 3)
	p := newPlace(t)
	p.start(2, "tls: {required: true}")
	p.refusesPlain()
	starts := `jsonpath={range .items[*]}{.metadata.uid} {.status.containerStatuses[*].restartCount} {end}`
	selector := "app.kubernetes.io/instance=" + p.cluster
	before, first := p.run("get", "pods", "-l", selector, "-n", p.namespace, "-o", starts), p.bundle()
	p.run("annotate", "mysqlcluster", p.cluster, "-n", p.namespace, "cr.mysqloperator.grtl.github.com/rotate-ca-before="+time.Now().UTC().Add(time.Second).Format(time.RFC3339))
	p.wait("both CAs to be trusted by all", 5*time.Minute, func(ctx context.Context) (bool, string) {
		p.verifies(p.bundle())
		seen := p.field(ctx, `{.status.conditions[?(@.type=="CertificateRotation")].reason}`)
		return seen == "WaitingForClients", seen
	})
	p.verifies(first)
	p.run("annotate", "mysqlcluster", p.cluster, "-n", p.namespace, "cr.mysqloperator.grtl.github.com/rotate-ca-overlap=0s")
	p.wait("the old CA to be forgotten", 10*time.Minute, func(context.Context) (bool, string) {
		now := p.bundle()
		p.verifies(now)
		return strings.Count(now, "BEGIN CERTIFICATE") == 1 && now != first, now
	})
	p.settled(2)
	if after := p.run("get", "pods", "-l", selector, "-n", p.namespace, "-o", starts); after != before {
		t.Errorf("a container started again: %s, was %s", after, before)
	}
}

// verifies fails the test unless a client that trusts these CAs is served.
func (p *place) verifies(bundle string) {
	p.t.Helper()
	db := p.openTrusting(p.cluster, p.password, bundle)
	p.exec(db, "DO 1")
	_ = db.Close()
}

// refusesPlain fails the test unless the server refuses a client that does not ask for TLS (MySQL manual, "require_secure_transport").
func (p *place) refusesPlain() {
	p.t.Helper()
	const secureTransportRequired = 3159
	p.refuses("a client without TLS", p.connect(p.cluster, p.password, nil), secureTransportRequired)
}

// refusesPassword fails the test unless the server refuses another password of root's.
func (p *place) refusesPassword(other string) {
	p.t.Helper()
	const accessDenied = 1045
	p.refuses("root with another password", p.open(p.cluster, other), accessDenied)
}

// refuses fails the test unless the server refuses a client, and for this reason (MySQL manual, "Server Error Message Reference").
func (p *place) refuses(whom string, db *sql.DB, reason uint16) {
	p.t.Helper()
	ctx, cancel := p.context(time.Minute)
	defer cancel()
	err := db.PingContext(ctx)
	if refusal := (*driver.MySQLError)(nil); !errors.As(err, &refusal) || refusal.Number != reason {
		p.t.Errorf("%s gets the answer %v", whom, err)
	}
}

// ownSecrets are the contents of the Secrets that the operator made for the cluster.
func (p *place) ownSecrets() string {
	p.t.Helper()
	data := p.run("get", "secret", agent.AuthoritySecret(p.namespace, p.cluster), "-n", operatorNamespace, "-o", "jsonpath={.data}")
	for _, suffix := range []string{"-accounts", "-tls"} {
		data += p.run("get", "secret", p.cluster+suffix, "-n", p.namespace, "-o", "jsonpath={.data}")
	}
	return data
}
