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
	// purgeEvery is how often the agent purges binary logs while there is too little room. One row that is updated for ever can write a
	// gigabyte in ten seconds.
	purgeEvery = time.Second
	// keptFiles is how many binary logs stay on a full volume beside the one in use, as long as some room is left.
	keptFiles = 2
	// maxIndex is how many bytes of the list of binary logs are read.
	maxIndex = 4 << 20
)

// keptLogs is what stays of the binary logs beside the one in use: so many bytes, that one among them, and so many files.
type keptLogs struct {
	bytes int64
	files int
}

// keptBinaryLogs returns what stays when the volume has too little room. false means that none may go: a member that is not connected may
// need them. On a full volume that counts no more: it gets a copy instead.
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

// oldestKept names the oldest binary log to keep; empty where all stay.
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

// everybodyReceives reports whether all other members are connected to this one, as far as it can be one that they follow: of those that
// shall be, so many receive. An operator that does not say how many shall be means those that the record counts on, which acknowledge.
// mysqld itself keeps what a connected replica still needs (manual, "PURGE BINARY LOGS Statement").
func everybodyReceives(assignment *replication.Assignment, receivers, ackClients int) bool {
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

// maintainDisk purges binary logs while the volume has too little room. One purge is under way at most: mysqld may hold it up until there
// is room.
func (a *Agent) maintainDisk(ctx context.Context, ackClients int) {
	select {
	case err := <-a.purging:
		a.purging = nil
		a.tellPurge(err)
	default:
	}
	a.mu.Lock()
	disk, assignment := a.disk(time.Now()), a.assignment
	a.mu.Unlock()
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

// everybodyReceives asks mysqld where it matters.
func (a *Agent) everybodyReceives(ctx context.Context, disk replication.Disk, assignment *replication.Assignment, ackClients int) bool {
	if disk.Level == replication.DiskFull {
		return false // and does not matter
	}
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	receivers, err := a.local.Receivers(bounded)
	if err != nil {
		a.tellPurge(err)
		return false
	}
	return everybodyReceives(assignment, receivers, ackClients)
}

func (a *Agent) tellPurge(err error) {
	if err != nil {
		a.log.Info("cannot purge binary logs, will try again", "error", err.Error())
	}
}

// purge runs beside the loop. Which logs there are it reads from the volume: mysqld gives no answer while it waits for room to write one.
func (a *Agent) purge(ctx context.Context, local *mysqld.Server, kept keptLogs) error {
	logs, err := a.layout.binaryLogs()
	if err != nil {
		return err
	}
	oldest := oldestKept(logs, kept)
	if oldest == "" {
		return nil
	}
	a.log.Info("purges binary logs, because the volume fills up", "before", oldest)
	return local.PurgeBinaryLogs(ctx, oldest)
}

// binaryLogs lists the files of the binary log, oldest first, as mysqld's index has them. One that is gone has no size.
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

// binaryLog is what files of the binary log are called (log_bin).
const binaryLog = "binlog"
