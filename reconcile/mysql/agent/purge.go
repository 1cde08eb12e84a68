package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

const (
	// purgeEvery is how often the agent purges binary logs while there is too little free space. Updates of one row can write a gigabyte in
	// ten seconds.
	purgeEvery = time.Second
	// keptFiles is how many binary logs stay on a full volume in addition to the one in use, if some space is left.
	keptFiles = 2
	// maxIndex is how many bytes of the index of binary logs are read.
	maxIndex = 4 << 20
)

// keptLogs is what stays of the binary logs: at least that many bytes, which include the log in use, and that many files in addition to it.
type keptLogs struct {
	bytes int64
	files int
}

// keptBinaryLogs returns what stays when the volume has too little free space. If some is false, the agent must not purge, because a member
// that is not connected may need the logs. On a full volume that no longer counts: such a member gets a copy instead.
func keptBinaryLogs(disk replication.Disk, everybodyReceives bool) (kept keptLogs, some bool) {
	switch disk.Level {
	case replication.DiskFull:
		if disk.Free < fullBelow(disk.Size)/2 {
			return keptLogs{}, true
		}
		return keptLogs{files: keptFiles}, true
	case replication.DiskPressure:
		return keptLogs{bytes: disk.Size / 8}, everybodyReceives
	case replication.DiskRoomy:
	}
	return keptLogs{}, false
}

// oldestKept returns the oldest binary log to keep; empty if all stay.
func oldestKept(logs []mysqld.BinaryLog, kept keptLogs) string {
	var bytes int64
	for i := len(logs) - 1; i > 0; i-- {
		bytes += logs[i].Size
		if bytes >= kept.bytes && len(logs)-1-i >= kept.files {
			return logs[i].Name
		}
	}
	return ""
}

// allReceive reports whether all other members are connected to this one, if it can be their source: it compares the connected
// receivers with the number of members. An operator that does not send that number means the in-sync members of the record, which
// acknowledge. mysqld itself keeps the logs that a connected replica still needs (manual, "PURGE BINARY LOGS Statement").
func allReceive(assignment *replication.Assignment, receivers, ackClients int) bool {
	switch {
	case assignment == nil:
		return false
	case assignment.Role == replication.RoleReplica:
		return true
	case assignment.Members > 0:
		return receivers >= assignment.Members-1
	}
	return ackClients >= len(assignment.Record.InSync)-1
}

// maintainDisk purges binary logs while the volume has too little free space. At most one purge runs, because mysqld may block it until
// there is space.
func (a *Agent) maintainDisk(ctx context.Context, ackClients int) {
	select {
	case err := <-a.purging:
		a.purging = nil
		a.tellPurge(err)
	default:
	}
	a.mu.Lock()
	disk, assignment, isReplaced := a.disk(time.Now()), a.assignment, a.kept.Replaced != nil
	a.mu.Unlock()
	if isReplaced { // the logs may have what must be set aside
		return
	}
	if disk.Level == replication.DiskRoomy || a.purging != nil || time.Since(a.purged) < purgeEvery {
		return
	}
	a.purged = time.Now()
	kept, some := keptBinaryLogs(disk, a.everybodyReceives(ctx, disk, assignment, ackClients))
	if !some {
		return
	}
	ended, local := make(chan error, 1), a.local
	a.purging = ended
	go func() { ended <- a.purge(ctx, local, kept) }()
}

// allReceive counts the receivers in mysqld, unless the volume is full.
func (a *Agent) everybodyReceives(ctx context.Context, disk replication.Disk, assignment *replication.Assignment, ackClients int) bool {
	if disk.Level == replication.DiskFull {
		return false // keptBinaryLogs ignores it on a full volume
	}
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	receivers, err := a.local.Receivers(bounded)
	if err != nil {
		a.tellPurge(err)
		return false
	}
	return allReceive(assignment, receivers, ackClients)
}

func (a *Agent) tellPurge(err error) {
	if err != nil {
		a.log.Info("cannot purge binary logs, will try again", "error", err.Error())
	}
}

// purge runs concurrently with the loop. It lists the logs on the volume, because mysqld gives no answer while it waits for space to write
// one.
func (a *Agent) purge(ctx context.Context, local *mysqld.Server, kept keptLogs) error {
	logs, err := a.layout.binaryLogs()
	if err != nil {
		return err
	}
	oldest := oldestKept(logs, kept)
	if oldest == "" {
		return nil
	}
	a.log.Info("purging binary logs, because the volume fills up", "before", oldest)
	return local.PurgeBinaryLogs(ctx, oldest)
}

// binaryLogs lists the files of the binary log in mysqld's index, oldest first. A file that is gone has size 0.
func (l Layout) binaryLogs() ([]mysqld.BinaryLog, error) {
	index, err := readRegular(filepath.Join(l.DataDir(), binaryLog+".index"), maxIndex)
	if err != nil {
		return nil, fmt.Errorf("list binary logs: %w", err)
	}
	var logs []mysqld.BinaryLog
	for line := range strings.Lines(string(index)) {
		name := path.Base(strings.TrimSpace(line))
		if !strings.HasPrefix(name, binaryLog+".") {
			return nil, fmt.Errorf("list binary logs: the index has %q", line)
		}
		info, err := os.Lstat(filepath.Join(l.DataDir(), name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("list binary logs: %w", err)
		}
		log := mysqld.BinaryLog{Name: name}
		if err == nil {
			log.Size = info.Size()
		}
		logs = append(logs, log)
	}
	return logs, nil
}

// binaryLog begins the names of the binary log's files (log_bin).
const binaryLog = "binlog"
