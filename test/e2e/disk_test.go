package e2e

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/mysql-operator/mysql-operator/test/sample"
)

// TestAVolumeThatFills: a transaction that is too large for it fails alone, and when something else has filled it that is told, and is over
// once there is room. That binary logs of one hot row do not fill it, TestAFullVolumeMysqld shows.
func TestAVolumeThatFills(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 1)
	p := newPlace(t)
	claim := "data-" + p.cluster + "-0"
	enlarge := p.smallVolume(claim, 450)
	p.start(1, "storageClassName: small-"+p.namespace)
	db := p.open(p.cluster, p.password)
	p.exec(db, "CREATE DATABASE shop", "CREATE TABLE shop.counter (id INT PRIMARY KEY, n INT)", "INSERT INTO shop.counter VALUES (1, 0)")

	t.Log("a transaction larger than an eighth of the volume")
	p.exec(db, "CREATE TABLE shop.large (id INT AUTO_INCREMENT PRIMARY KEY, filler LONGTEXT)")
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 300 {
		if _, err = tx.ExecContext(t.Context(), "INSERT INTO shop.large (filler) VALUES (REPEAT('x', 1000000))"); err != nil {
			break
		}
	}
	var refused *driver.MySQLError
	if !errors.As(err, &refused) || refused.Number != 1197 && refused.Number != 1114 {
		t.Errorf("it was not refused: %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Error(err)
	}
	p.isValue(db, "SELECT COUNT(*) FROM shop.large", "0")
	p.exec(db, "DROP TABLE shop.large", "UPDATE shop.counter SET n = n + 1 WHERE id = 1")
	p.settled(1) // what it left is purged

	t.Log("another program fills the volume")
	p.fill(claim)
	began := time.Now()
	p.waitReady("False DiskFull", changeLimit)
	t.Logf("it was told after %s", time.Since(began).Round(100*time.Millisecond))
	enlarge()
	p.settled(1)
	p.patiently(db, "UPDATE shop.counter SET n = n + 1 WHERE id = 1")
}

// patiently waits as long as mysqld may that had no room to write to for a moment: it looks every minute whether there is some, and a
// client gives up before.
func (p *place) patiently(db *sql.DB, statement string) {
	p.t.Helper()
	p.wait("mysqld to take "+statement, changeLimit, func(ctx context.Context) (bool, string) {
		_, err := db.ExecContext(ctx, statement)
		return err == nil, fmt.Sprint(err)
	})
}
