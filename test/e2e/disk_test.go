package e2e

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"
)

// TestAVolumeThatFills: one row that is updated for ever does not fill it, a transaction that is too large for it fails alone, and when something else has
// filled it that is told, and is over once there is room.
func TestAVolumeThatFills(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	claim := "data-" + p.cluster + "-0"
	enlarge := p.smallVolume(claim, 450)
	p.start(1, "storageClassName: small-"+p.namespace)
	db := p.open(p.cluster, p.password)
	p.exec(db, "CREATE DATABASE shop", "CREATE TABLE shop.counter (id INT PRIMARY KEY, n INT, filler LONGTEXT)", "INSERT INTO shop.counter VALUES (1, 0, '')")

	t.Log("one hot row, whose changes are more than the volume holds")
	longest := time.Duration(0)
	for range 600 {
		longest = max(longest, p.patiently(db, "UPDATE shop.counter SET n = n + 1, filler = REPEAT(CHAR(97 + n % 26), 500000) WHERE id = 1"))
	}
	t.Logf("an update took %s at most", longest.Round(time.Millisecond))
	p.settled(1)

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

	p.settled(1)

	t.Log("somebody else fills the volume")
	p.fill(claim)
	began := time.Now()
	p.waitReady("False DiskFull", changeLimit)
	t.Logf("it was told after %s", time.Since(began).Round(100*time.Millisecond))
	enlarge()
	p.settled(1)
	p.patiently(db, "UPDATE shop.counter SET n = n + 1 WHERE id = 1")
}

// patiently waits as long as mysqld may that had no room to write to for a moment: it looks every minute whether there is some, and a client gives up before.
// It returns how long it took.
func (p *place) patiently(db *sql.DB, statement string) time.Duration {
	p.t.Helper()
	began := time.Now()
	p.wait("mysqld to take "+statement, changeLimit, func(ctx context.Context) (bool, string) {
		_, err := db.ExecContext(ctx, statement)
		return err == nil, fmt.Sprint(err)
	})
	return time.Since(began)
}
