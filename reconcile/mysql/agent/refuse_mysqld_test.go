package agent

import (
	"errors"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"
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
