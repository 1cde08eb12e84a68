package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"github.com/mysql-operator/mysql-operator/test/sample"
)

// conditionSays waits until a condition's message, or where it is empty its absence, is seen.
func (p *place) conditionSays(condition, words string) {
	p.t.Helper()
	p.wait(condition+" to say "+words, changeLimit, func(ctx context.Context) (bool, string) {
		message := p.field(ctx, `{.status.conditions[?(@.type=="`+condition+`")].message}`)
		return strings.Contains(message, words) && (message == "") == (words == ""), message
	})
}

// TestTablesOfOtherEngines: a new cluster refuses such tables. A cluster that allows them reports which rows its replica is missing, and
// why the replica stops. The cluster is healthy again once the tables are InnoDB and the replica is created again.
func TestTablesOfOtherEngines(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 1)
	p := newPlace(t)
	p.start(1)
	db := p.open(p.cluster, p.password)
	p.exec(db, "CREATE DATABASE shop")
	_, err := db.ExecContext(t.Context(), "CREATE TABLE shop.refused (id INT) ENGINE=MyISAM")
	if refusal := (*driver.MySQLError)(nil); !errors.As(err, &refusal) || refusal.Number != 3161 {
		t.Errorf("a new cluster takes a table of MyISAM: %v", err)
	}

	t.Log("allowed, a table is made; a new term of the primary finds it")
	p.start(1, `config: {disabled_storage_engines: ""}`)
	db = p.open(p.cluster, p.password)
	p.exec(db, "CREATE TABLE shop.log (id INT PRIMARY KEY) ENGINE=MyISAM", "INSERT INTO shop.log VALUES (1), (2)")
	p.deletePod(p.cluster + "-0")
	p.conditionSays("NonTransactionalTables", `"shop"."log" (MyISAM)`)

	t.Log("a replica lacks its rows")
	p.start(2, `config: {disabled_storage_engines: ""}`)
	p.conditionSays("IncompleteMembers", p.cluster+`-1 is missing rows of "shop"."log" (MyISAM)`)
	p.exec(p.open(p.cluster, p.password), "ALTER TABLE shop.log ENGINE=InnoDB", "UPDATE shop.log SET id = 3 WHERE id = 1")
	if told := p.waitReady("False ReplicationBroken", changeLimit); !strings.Contains(told, "without the rows of") {
		t.Errorf("it does not say why: %s", told)
	}

	t.Log("created again, the replica has the rows")
	p.run("delete", "pvc", "data-"+p.cluster+"-1", "-n", p.namespace, "--wait=false")
	p.deletePod(p.cluster + "-1")
	p.settled(2)
	p.conditionSays("IncompleteMembers", "")
	p.waitValue(p.open(p.cluster+"-read", p.password), "SELECT SUM(id) FROM shop.log", "5", answerLimit)
}
