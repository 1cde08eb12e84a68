package e2e

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mysql-operator/mysql-operator/test/sample"
)

// TestAUserForcesAPrimary: the replica of a pair was cut off, so the primary has commits that nothing else has, and now that one is frozen,
// as if its machine were. The operator says how a user makes the replica the primary all the same. The status says what is lost. When the
// former primary is back, it serves no clients, and keeps its commits.
func TestAUserForcesAPrimary(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 2)
	p := newPlace(t)
	p.start(2)
	former, next := p.cluster+"-0", p.cluster+"-1"
	db := p.open(p.cluster, p.password)
	p.exec(db, "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY)", "INSERT INTO shop.orders VALUES (1)")
	p.waitValue(p.open(p.cluster+"-read", p.password), "SELECT GROUP_CONCAT(id) FROM shop.orders", "1", answerLimit)

	cuts := [][]string{p.dropping(former, next), p.dropping(next, former)}
	p.filter("-I", cuts)
	p.wait("the primary to write alone", changeLimit, func(ctx context.Context) (bool, string) {
		_, err := db.ExecContext(ctx, "REPLACE INTO shop.orders VALUES (2)")
		acks := p.field(ctx, "acks {.status.requiredAcks}")
		return err == nil && acks == "acks ", acks + " " + errorText(err) // 0 is left out
	})
	wakesPrimary := p.freeze(former)
	command := p.forceCommand()
	if !strings.Contains(command, "force-primary="+next+".") {
		t.Fatalf("the command is %s", command)
	}
	p.run(strings.Fields(command)...)
	p.leads(1, 2)
	p.wait("the next primary to take writes", answerLimit, func(ctx context.Context) (bool, string) {
		_, err := db.ExecContext(ctx, "REPLACE INTO shop.orders VALUES (3)")
		return err == nil, errorText(err)
	})
	p.waitValue(db, "SELECT GROUP_CONCAT(id) FROM shop.orders", "1,3", answerLimit)
	p.hasEvent("TakeoverForced", "because a user asked for it. It has ")
	ctx, cancel := p.context(answerLimit)
	t.Log("kept and lost: " + p.field(ctx, "{.status.takeovers[-1:].kept} | {.status.takeovers[-1:].lost}"))
	cancel()

	p.filter("-D", cuts)
	wakesPrimary()
	said := p.waitReady("False ErrantMember", changeLimit)
	if !strings.Contains(said, former) {
		t.Errorf("the condition says %s", said)
	}
	p.keeps(former, 2)
	if _, err := os.Stat(filepath.Join(p.volume("data-"+former), "unacknowledged")); !os.IsNotExist(err) {
		t.Errorf("the former primary has set its commits aside: %v", err)
	}
}

// forceCommand waits until the condition says how a user makes a member the primary, and returns the arguments of kubectl.
func (p *place) forceCommand() (command string) {
	p.t.Helper()
	p.wait("the condition to name a command", changeLimit, func(ctx context.Context) (bool, string) {
		said := p.field(ctx, readyPath)
		_, rest, found := strings.Cut(said, "lost for good, run: kubectl ")
		command, _, _ = strings.Cut(rest, " gen=")
		return found, said
	})
	return command
}

// keeps checks that a member that serves no clients still has an order.
func (p *place) keeps(pod string, order int) {
	p.t.Helper()
	member, err := sql.Open("mysql", p.memberConfig(p.read("pods", pod, "{.status.podIP}")).FormatDSN())
	if err != nil {
		p.t.Fatal(err)
	}
	defer member.Close()
	p.waitValue(member, fmt.Sprintf("SELECT COUNT(*) FROM shop.orders WHERE id = %d", order), "1", answerLimit)
}
