package agent

import (
	"errors"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/test/sample"
)

// TestAFormerPrimaryRefusesClientsMysqld: nodes may still lead clients to it that look for the primary, and they would read what is old. It
// refuses them from the first moment at which its mysqld answers, and for some seconds. Replication continues meanwhile.
func TestAFormerPrimaryRefusesClientsMysqld(t *testing.T) {
	t.Parallel()
	const offlineMode = 3032 // ER_SERVER_OFFLINE_MODE
	r := replacedMember(t, nil, "INSERT INTO shop.orders VALUES (2)")
	fence(t, r.former)
	if !r.former.agent.Status().RefusesClients {
		t.Error("before its mysqld starts, the member does not report that it refuses clients")
	}
	app := r.former.open(t, "app", "secret", nil, r.ca)
	r.former.obeys(t, r.takesOver(t))

	var refused time.Time
	var served int
	r.former.until(t, "mysqld lets the client in again", func() bool {
		r.former.obeysAgain(t)
		err := app.QueryRowContext(t.Context(), "SELECT 1").Scan(&served)
		var answer *driver.MySQLError
		if refused.IsZero() && errors.As(err, &answer) && answer.Number == offlineMode {
			refused = time.Now()
		}
		return err == nil
	})
	if lasted := time.Since(refused); refused.IsZero() || lasted < straysFor-2*time.Second || lasted > straysFor+10*time.Second {
		t.Errorf("it has refused the client for %s, since %s", lasted, refused)
	}
	r.former.until(t, "the member reports that it lets clients in", func() bool { return !r.former.agent.Status().RefusesClients })
	r.follows(t, 1)
}

// TestACopyOfAFormerPrimaryBreaksOffMysqld: another member takes over while a third one copies the primary. MySQL tries to continue that
// copy, and cannot once the former primary lets it in again. The member then copies the next primary.
func TestACopyOfAFormerPrimaryBreaksOffMysqld(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 0)
	ca := newAuthority(t)
	r := replacement{ca: ca, former: startRealMember(t, ca), next: startRealMember(t, ca)}
	member := startRealMember(t, ca)
	r.former.leads(t, 1, 0)
	root := r.former.open(t, "root", "root's", nil, ca)
	execute(t, root, "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY)", "INSERT INTO shop.orders VALUES (1)")
	r.former.admits(t, ca, r.next)
	r.next.follow(t, r.former, 1)
	r.next.isCopied(t)
	r.next.follow(t, r.former, 2)
	r.next.replicates(t)
	r.former.admits(t, ca, member)
	r.former.leads(t, 2, 1)
	member.until(t, "the member is made", func() bool { return member.agent.Status().Origin == replication.OriginFresh })
	held := holdCopies(t, r.former)
	member.obeys(t, replication.Assignment{
		Record: replication.Record{Epoch: 1, Revision: 2, Primary: "db-0", Joining: []string{"db-1"}, RequiredAcks: 1}, Role: replication.RoleReplica,
		SourceHost: "localhost", SourceAddress: "127.0.0.1", SourcePort: held.port,
	})
	member.until(t, "it copies the primary", func() bool { return member.agent.Status().CloneProgress != nil })

	fence(t, r.next)
	fence(t, r.former)
	follow := r.takesOver(t)
	r.next.admits(t, ca, member)
	r.former.obeys(t, follow)
	held.release()
	began := time.Now()
	member.obeys(t, follow)
	member.until(t, "the copy has broken off", func() bool { return member.agent.Status().CloneProgress == nil })
	t.Logf("it broke off after %s", time.Since(began))
	if kept := stateOf(t, member.layout); kept.IsCopied || kept.Data != replication.OriginFresh {
		t.Errorf("the copy of the former primary is complete: %s", kept.Data)
	}
	member.isCopied(t)
	t.Logf("the next copy was complete after %s", time.Since(began))
	follow.Record.Revision++
	member.obeys(t, follow)
	member.replicates(t)
	same(t, r.next.open(t, "root", "root's", nil, ca), member.open(t, "root", "root's", nil, ca))
}
