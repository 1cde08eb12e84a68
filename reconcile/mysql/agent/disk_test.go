package agent

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// TestHowFullAVolumeIs lets each level begin and end.
func TestHowFullAVolumeIs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		was        replication.DiskLevel
		size, free int64
		want       replication.DiskLevel
	}{
		"half full":                           {replication.DiskRoomy, gib, gib / 2, replication.DiskRoomy},
		"84 % full":                           {replication.DiskRoomy, 100 * gib, 16 * gib, replication.DiskRoomy},
		"86 % full":                           {replication.DiskRoomy, 100 * gib, 14 * gib, replication.DiskPressure},
		"84 % full, 86 % before":              {replication.DiskPressure, 100 * gib, 16 * gib, replication.DiskPressure},
		"79 % full, 86 % before":              {replication.DiskPressure, 100 * gib, 21 * gib, replication.DiskRoomy},
		"less than 5 % are free":              {replication.DiskPressure, gib, 50 * mib, replication.DiskFull},
		"the ballast was removed":             {replication.DiskFull, gib, 70 * mib, replication.DiskFull},
		"a tenth is free again":               {replication.DiskFull, gib, 110 * mib, replication.DiskPressure},
		"the volume has grown":                {replication.DiskFull, 2 * gib, gib, replication.DiskRoomy},
		"a large volume, 1 % free":            {replication.DiskPressure, 1024 * gib, 10 * gib, replication.DiskPressure},
		"a large volume, almost nothing free": {replication.DiskPressure, 1024 * gib, 500 * mib, replication.DiskFull},
		"full at once":                        {replication.DiskRoomy, gib, 0, replication.DiskFull},
	} {
		if got := diskLevel(test.was, test.size, test.free); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestWhichBinaryLogsGo(t *testing.T) {
	t.Parallel()
	logs := []mysqld.BinaryLog{{Name: "binlog.1", Size: 16 * mib}, {Name: "binlog.2", Size: 16 * mib}, {Name: "binlog.3", Size: 16 * mib}, {Name: "binlog.4", Size: 2 * mib}}
	disk := func(level replication.DiskLevel) replication.Disk {
		return replication.Disk{Size: 160 * mib, Free: mib, Level: level}
	}
	nearlyFull := replication.Disk{Size: 160 * mib, Free: 7 * mib, Level: replication.DiskFull}
	for name, test := range map[string]struct {
		disk     replication.Disk
		everyone bool
		logs     []mysqld.BinaryLog
		want     string
	}{
		"there is room":                                    {disk(replication.DiskRoomy), true, logs, ""},
		"an eighth of the volume stays":                    {disk(replication.DiskPressure), true, logs, "binlog.2"},
		"a member is not connected":                        {disk(replication.DiskPressure), false, logs, ""},
		"a member is not connected and the volume is full": {disk(replication.DiskFull), false, logs, "binlog.4"},
		"the volume is nearly full, and two stay":          {nearlyFull, true, logs, "binlog.2"},
		"there are no more than two":                       {nearlyFull, true, logs[1:], ""},
		"only the one in use is left":                      {disk(replication.DiskFull), true, logs[3:], ""},
		"there is less than an eighth":                     {disk(replication.DiskPressure), true, logs[3:], ""},
		"no log is known":                                  {disk(replication.DiskFull), true, nil, ""},
		"a large log next to a new one":                    {disk(replication.DiskPressure), true, []mysqld.BinaryLog{{Name: "binlog.7", Size: gib}, {Name: "binlog.8", Size: 1}}, ""},
	} {
		got := ""
		if kept, some := keptBinaryLogs(test.disk, test.everyone); some {
			got = oldestKept(test.logs, kept)
		}
		if got != test.want {
			t.Errorf("%s: the oldest log to keep is %q, want %q", name, got, test.want)
		}
	}
}

func TestWhoReceivesEverything(t *testing.T) {
	t.Parallel()
	record := replication.Record{Primary: "db-0", InSync: []string{"db-0", "db-1"}}
	primary := func(members int) *replication.Assignment {
		return &replication.Assignment{Role: replication.RolePrimary, Record: record, Members: members}
	}
	for name, test := range map[string]struct {
		assignment               *replication.Assignment
		receivers, acknowledging int
		want                     bool
	}{
		"the member has no assignment yet":                     {nil, 2, 2, false},
		"all replicas are connected":                           {primary(3), 2, 2, true},
		"one is being copied from here and is not in sync yet": {primary(3), 1, 1, false},
		"one catches up and does not acknowledge yet":          {primary(3), 2, 1, true},
		"one is not connected":                                 {primary(3), 1, 1, false},
		"there are no other members":                           {primary(1), 0, 0, true},
		"more members are connected than wanted":               {primary(2), 2, 1, true},
		"the operator is of a former release":                  {primary(0), 0, 1, true},
		"a former release, and one is not connected":           {primary(0), 1, 0, false},
		"a replica, which no member follows":                   {&replication.Assignment{Role: replication.RoleReplica, Record: record}, 0, 0, true},
	} {
		if got := allReceive(test.assignment, test.receivers, test.acknowledging); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestWhichBinaryLogsThereAre: the agent reads them from mysqld's index on the volume.
func TestWhichBinaryLogsThereAre(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		index string
		want  []mysqld.BinaryLog
		fails bool
	}{
		"two, one of which is gone":       {"./binlog.000008\n./binlog.000009\n", []mysqld.BinaryLog{{Name: "binlog.000008"}, {Name: "binlog.000009", Size: 5}}, false},
		"one":                             {"./binlog.000009\n", []mysqld.BinaryLog{{Name: "binlog.000009", Size: 5}}, false},
		"none":                            {"", nil, false},
		"a file that is not a binary log": {"./binlog.000008\n../member.json\n", nil, true},
	} {
		layout := newLayout(t)
		withData(t, layout)
		write(t, filepath.Join(layout.DataDir(), "binlog.000009"), "12345")
		write(t, filepath.Join(layout.DataDir(), "binlog.index"), test.index)
		got, err := layout.binaryLogs()
		if (err != nil) != test.fails || !slices.Equal(got, test.want) {
			t.Errorf("%s: %v (%v)", name, got, err)
		}
	}
	if _, err := newLayout(t).binaryLogs(); err == nil {
		t.Error("listing the logs of a volume without an index succeeds")
	}
}

// TestOnePurgeAtATime: mysqld may block a purge for as long as there is no space.
func TestOnePurgeAtATime(t *testing.T) {
	t.Parallel()
	a := newAgent(t, newLayout(t), memberState())
	a.status.Disk, a.diskSeen = replication.Disk{Size: gib, Free: mib, Level: replication.DiskFull}, time.Now()
	ended := make(chan error, 1)
	a.purging = ended
	a.maintainDisk(t.Context(), 0)
	if a.purging != ended || !a.purged.IsZero() {
		t.Error("another purge began while one was in progress")
	}
	ended <- nil
	a.maintainDisk(t.Context(), 0)
	if a.purged.IsZero() {
		t.Error("no other purge began when the first had ended")
	}
}

// TestStorageThatHangs: a result from more than a minute ago no longer counts.
func TestStorageThatHangs(t *testing.T) {
	t.Parallel()
	a := newAgent(t, newLayout(t), memberState())
	seen := replication.Disk{Size: gib, Free: mib, Level: replication.DiskFull}
	a.status.Disk, a.diskSeen = seen, time.Now()
	if got := a.Status().Disk; got != seen {
		t.Errorf("the agent reports %+v", got)
	}
	a.diskSeen = time.Now().Add(-2 * diskFor)
	if got := a.Status().Disk; got != (replication.Disk{}) {
		t.Errorf("after a while without an answer the agent reports %+v", got)
	}
}
