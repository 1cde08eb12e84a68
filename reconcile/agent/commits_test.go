package agent

import (
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/replication"
)

// TestCommitsThatHang: a busy server always has sessions that wait to commit. They hang when nothing is committed meanwhile.
func TestCommitsThatHang(t *testing.T) {
	t.Parallel()
	var c commits
	began := time.Unix(1_800_000_000, 0)
	for _, moment := range []struct {
		second   int
		executed string
		waiting  int
		want     int
	}{
		{0, "1-10", 8, 0},
		{5, "1-90", 8, 0},
		{10, "1-90", 8, 5},
		{15, "1-90", 9, 10},
		{20, "1-90", 0, 0}, // those who waited have given up
		{25, "1-90", 0, 0}, // nobody writes
		{30, "1-90", 1, 5},
		{35, "1-91", 1, 0},
	} {
		executed, err := replication.ParseGTIDSet("3e11fa47-71ca-11e1-9e33-c80aa9429562:" + moment.executed)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.stand(began.Add(time.Duration(moment.second)*time.Second), executed, moment.waiting); got != time.Duration(moment.want)*time.Second {
			t.Errorf("second %d: %s, want %d", moment.second, got, moment.want)
		}
	}
}
