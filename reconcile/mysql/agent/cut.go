package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/binlog"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
)

// A primary that crashed while commits waited for replicas has them in its binary log, and InnoDB has only prepared them. If the log still
// has them when mysqld starts, recovery commits them. Another member leads without them, so this one would need a copy of all data. If they
// are cut off the log before, recovery rolls them back, and the member can follow at once.
//
// InnoDB may have committed some of them, because they waited no longer. They keep their rows then, and their GTIDs in gtid_executed. So
// the member has more than the new primary after its start, and is copied (replication, errantStep).

// cutWhatOthersLack cuts off the transactions that the new primary does not have. It reports false if that must wait for the new primary.
// A member whose log cannot be cut starts as it is, and is copied.
func (a *Agent) cutWhatOthersLack(ctx context.Context, assignment replication.Assignment) (isDone bool) {
	source, err := a.askNewPrimary(ctx, assignment)
	if err != nil {
		a.log.V(1).Info("the new primary does not answer yet", "error", err.Error())
		return false
	}
	cut, err := a.cut(ctx, source.Executed.Union(source.Pending))
	switch {
	case err != nil:
		a.log.Info("cannot cut off what only this member has, so mysqld starts with it", "error", err.Error())
	case !cut.Empty():
		a.log.Info("cut the transactions off the binary log that the new primary does not have", "gtids", cut.String())
	}
	return true
}

func (a *Agent) askNewPrimary(ctx context.Context, assignment replication.Assignment) (replication.Source, error) {
	ctx, cancel := context.WithTimeout(ctx, reconnectTimeout)
	defer cancel()
	return a.observeSource(ctx, assignment)
}

// cut cuts the transactions off that are not in has, and returns them. Before, it keeps a copy of them. If the agent ends in between,
// mysqld starts with all of them, and the member is copied: the state says that they are set aside.
func (a *Agent) cut(ctx context.Context, has replication.GTIDSet) (replication.GTIDSet, error) {
	nothing := replication.GTIDSet{}
	release, err := supervisor.LockData(a.layout.Run)
	if err != nil {
		return nothing, err
	}
	defer release()
	logs, err := a.layout.binaryLogs()
	if err != nil {
		return nothing, err
	}
	if len(logs) == 0 {
		return nothing, errors.New("there is no binary log")
	}
	name := logs[len(logs)-1].Name
	file, err := openRegular(filepath.Join(a.layout.DataDir(), name), math.MaxInt64, os.O_RDWR)
	if err != nil {
		return nothing, err
	}
	defer file.Close()
	tail, err := readTail(ctx, file, has)
	if err != nil || tail.GTIDs.Empty() {
		return nothing, err // recovery removes a transaction without its end by itself
	}
	own, err := a.ownTail(tail, has)
	if err != nil {
		return nothing, err
	}
	if err := a.keepTail(name, tail, own); err != nil {
		return nothing, err
	}
	return tail.GTIDs, a.layout.cutTail(file, tail.From)
}

func readTail(ctx context.Context, file *os.File, has replication.GTIDSet) (binlog.Tail, error) {
	info, err := file.Stat()
	if err != nil {
		return binlog.Tail{}, err
	}
	return binlog.ReadTail(ctx, file, info.Size(), has)
}

// ownTail returns all transactions that this server made, those of the tail too. It fails unless the tail is all that the new primary
// lacks, and this log has all that it has of this server.
func (a *Agent) ownTail(tail binlog.Tail, has replication.GTIDSet) (replication.GTIDSet, error) {
	a.mu.Lock()
	uuid := a.status.ServerUUID
	a.mu.Unlock()
	own := tail.Executed.OfServer(uuid)
	switch {
	case uuid == "" || !own.Contains(tail.GTIDs):
		return own, fmt.Errorf("this server has not made all of the transactions %s", tail.GTIDs)
	case tail.GTIDs.Count() > replication.MostUnacknowledged:
		return own, fmt.Errorf("%d transactions are more than can wait for acknowledgements", tail.GTIDs.Count())
	case !has.Contains(tail.Executed.Subtract(tail.GTIDs)):
		return own, fmt.Errorf("the new primary lacks other transactions, too: %s", tail.Executed.Subtract(tail.GTIDs).Subtract(has))
	case !own.Contains(has.OfServer(uuid)):
		return own, fmt.Errorf("this log does not have the transactions %s of this server, which the new primary has", has.OfServer(uuid).Subtract(own))
	}
	return own, nil
}

// keepTail keeps a copy of the tail, and records what this member had as the primary.
func (a *Agent) keepTail(name string, tail binlog.Tail, own replication.GTIDSet) error {
	if size := tail.Head + tail.Size - tail.From; size > mostSetAside {
		return fmt.Errorf("the transactions have %d bytes, more than the %d that the agent copies", size, mostSetAside)
	}
	a.mu.Lock()
	epoch := a.kept.Held.Epoch
	a.mu.Unlock()
	folder := a.layout.setAsideDir(epoch)
	if err := a.layout.copyExtents([]mysqld.Extent{{File: name, To: tail.Head}, {File: name, From: tail.From, To: tail.Size}}, folder); err != nil {
		return fmt.Errorf("copy transactions to %s: %w", folder, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	kept := a.kept
	if kept.Replaced == nil || kept.Replaced.Epoch != epoch || kept.Held.Epoch != epoch {
		return errors.New("the record has changed")
	}
	kept.Replaced = &replaced{Epoch: epoch, Had: own, IsKnown: true, SetAside: tail.GTIDs}
	return a.storeState(kept)
}

// cutTail makes mysqld start with a new server_uuid, and cuts the log. Another transaction must not get the GTID of one that is cut off: a
// member that does not answer now may have received that.
func (l Layout) cutTail(file *os.File, from int64) error {
	if err := l.dropServerUUID(); err != nil {
		return err
	}
	if err := flushFolder(l.DataDir()); err != nil {
		return err
	}
	return errors.Join(file.Truncate(from), file.Sync())
}

// dropServerUUID makes mysqld choose a new server_uuid when it starts (manual, "auto.cnf").
func (l Layout) dropServerUUID() error {
	if err := os.Remove(filepath.Join(l.DataDir(), "auto.cnf")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("give the member a new server_uuid: %w", err)
	}
	return nil
}
