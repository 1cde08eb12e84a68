package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

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

// cutWhatOthersLack cuts off the transactions that the new primary does not have. It reports false if that must wait: for the new primary,
// or for the end of the last mysqld. A member whose log cannot be cut starts as it is, and is copied.
func (a *Agent) cutWhatOthersLack(ctx context.Context, assignment replication.Assignment) (isDone bool) {
	source, err := a.askNewPrimary(ctx, assignment)
	if err != nil {
		a.log.V(1).Info("the new primary does not answer yet", "error", err.Error())
		return false
	}
	cut, err := a.cut(ctx, source.Executed.Union(source.Pending))
	switch {
	case errors.Is(err, errStillUsed):
		a.log.V(1).Info("mysqld has not quite ended", "error", err.Error())
		return false
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
	release, err := a.lockData()
	if err != nil {
		return nothing, err
	}
	defer release()
	file, err := a.layout.openLastLog(os.O_RDWR)
	if err != nil {
		return nothing, err
	}
	defer file.Close()
	tail, err := readTail(ctx, file, has)
	if err != nil || tail.GTIDs.Empty() {
		return nothing, err // recovery removes a transaction without its end by itself
	}
	own, err := a.layout.ownTail(tail, has)
	if err != nil {
		return nothing, err
	}
	if err := a.keepTail(filepath.Base(file.Name()), tail, own); err != nil {
		return nothing, err
	}
	return tail.GTIDs, a.layout.cutTail(file, tail.From)
}

// lockData keeps mysqld from starting until release is called. The error wraps errStillUsed if the last one has not ended.
func (a *Agent) lockData() (release func(), err error) {
	a.mu.Lock()
	isLocked := a.hold.unlock != nil
	a.mu.Unlock()
	allow := func() {}
	if !isLocked {
		if allow, err = supervisor.LockData(a.layout.Run); err != nil {
			return nil, err
		}
	}
	unlock, err := a.layout.lockTablespace()
	if err != nil {
		allow()
		return nil, err
	}
	return func() {
		unlock()
		allow()
	}, nil
}

var errStillUsed = errors.New("mysqld still uses its data")

// lockTablespace takes the locks that InnoDB has on its system tablespace while mysqld runs. The supervisor's lock does not suffice after
// the end of a container: the kernel may end the supervisor first, and a mysqld that waits for its disk much later.
func (l Layout) lockTablespace() (release func(), err error) {
	entries, err := os.ReadDir(l.DataDir())
	if err != nil {
		return nil, err
	}
	var locked []*os.File
	release = func() {
		for _, file := range locked {
			_ = file.Close()
		}
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !strings.HasPrefix(entry.Name(), tablespace) {
			continue
		}
		file, err := lockAsInnoDB(filepath.Join(l.DataDir(), entry.Name()))
		if err != nil {
			release()
			return nil, err
		}
		locked = append(locked, file)
	}
	if len(locked) == 0 {
		return nil, fmt.Errorf("%s has no file of InnoDB's system tablespace", l.DataDir())
	}
	return release, nil
}

// tablespace is what names of InnoDB's system tablespace begin with (schema, innodb_data_file_path).
const tablespace = "ibdata"

func lockAsInnoDB(name string) (*os.File, error) {
	file, err := openRegular(name, math.MaxInt64, os.O_RDWR)
	if err != nil {
		return nil, err
	}
	err = unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		err = fmt.Errorf("%w: %w", errStillUsed, err)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", name, err), file.Close())
	}
	return file, nil
}

// openLastLog opens the last binary log.
func (l Layout) openLastLog(mode int) (*os.File, error) {
	logs, err := l.binaryLogs()
	if err != nil {
		return nil, err
	}
	if len(logs) == 0 {
		return nil, errors.New("there is no binary log")
	}
	return openRegular(filepath.Join(l.DataDir(), logs[len(logs)-1].Name), math.MaxInt64, mode)
}

// logIsInUse reports whether the last mysqld has ended without closing its binary log.
func (l Layout) logIsInUse() (bool, error) {
	file, err := l.openLastLog(os.O_RDONLY)
	if err != nil {
		return false, err
	}
	defer file.Close()
	return binlog.IsInUse(file)
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
func (l Layout) ownTail(tail binlog.Tail, has replication.GTIDSet) (replication.GTIDSet, error) {
	uuid, err := l.serverUUID()
	if err != nil {
		return replication.GTIDSet{}, err
	}
	own := tail.Executed.OfServer(uuid)
	switch {
	case !own.Contains(tail.GTIDs):
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
	epoch, inDoubt := a.kept.Held.Epoch, a.kept.InDoubt.Both(tail.GTIDs)
	a.mu.Unlock()
	if !inDoubt.Empty() {
		return fmt.Errorf("clients may have been told that %s had succeeded", inDoubt)
	}
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
	if changes := tail.GTIDs.Subtract(tail.Empty); !changes.Empty() {
		kept.SetAside = &replication.SetAside{Epoch: epoch, GTIDs: changes}
	}
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

// serverUUID returns the server_uuid of the last mysqld.
func (l Layout) serverUUID() (string, error) {
	content, err := readRegular(l.autoFile(), 1<<10)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(content)) {
		if uuid, found := strings.CutPrefix(line, "server-uuid="); found {
			return strings.TrimSpace(uuid), nil
		}
	}
	return "", fmt.Errorf("%s has no server-uuid", l.autoFile())
}

// autoFile is where mysqld keeps its server_uuid.
func (l Layout) autoFile() string { return filepath.Join(l.DataDir(), "auto.cnf") }

// dropServerUUID makes mysqld choose a new server_uuid when it starts (manual, "auto.cnf").
func (l Layout) dropServerUUID() error {
	if err := os.Remove(l.autoFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("give the member a new server_uuid: %w", err)
	}
	return nil
}
