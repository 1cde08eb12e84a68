package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// replaced is what a member that was replaced as the primary had.
type replaced struct {
	// Had are the transactions that the member had made itself when its mysqld was first seen to refuse writes after that, if IsKnown. A copy
	// that replaces its data gives it another server_uuid.
	Had     replication.GTIDSet `json:"had,omitzero"`
	IsKnown bool                `json:"known,omitempty"`
	// Epoch is the one that replaced it. IsForced means that a user has made another member the primary, which may lack commits that this one
	// has acknowledged: all that it has stays.
	Epoch    int64 `json:"epoch,omitempty"`
	IsForced bool  `json:"forced,omitempty"`
	// SetAside are those of them that are in a folder of the volume (setAside).
	SetAside replication.GTIDSet `json:"setAside,omitzero"`
}

// acceptUnstored reports whether this primary accepts the record that replaces it although its volume takes no writes. Such a record only
// forbids. An agent that starts again does not know it, and waits for the operator. The caller must hold the lock.
func (a *Agent) acceptUnstored(kept state, err error) bool {
	if a.kept.HeldRole != replication.RolePrimary || kept.Held.FormerPrimary != a.kept.Held.Primary {
		return false
	}
	a.log.Info("cannot store that another member takes over from this one, and stops taking writes all the same", "error", err.Error())
	a.kept = kept
	a.reportKept()
	return true
}

// recordReplaced records what a former primary has, until it follows another member.
func (a *Agent) recordReplaced(observed mysqld.Observed, under followed) {
	a.mu.Lock()
	defer a.mu.Unlock()
	kept, server := a.kept, observed.Server
	switch follows := server.Channel.IO == "Yes" && server.Channel.SQL == "Yes"; {
	case follows && (kept.Replaced != nil || !kept.InDoubt.Empty()):
		kept.Replaced, kept.InDoubt = nil, replication.GTIDSet{}
	case !follows && a.canTellHad(observed, under):
		kept.Replaced = &replaced{Epoch: kept.Replaced.Epoch, Had: server.Executed.Union(server.Pending).OfServer(server.ServerUUID), IsKnown: true}
	default:
		return
	}
	if err := a.storeState(kept); err != nil {
		a.log.Info("cannot record what this member had as the primary, will try again", "error", err.Error())
	}
}

// canTellHad reports whether mysqld, as observed, has what a former primary had, and that is not known yet. The caller must hold the lock.
func (a *Agent) canTellHad(observed mysqld.Observed, under followed) bool {
	former := a.kept.Replaced
	if former == nil || former.IsKnown || former.IsForced || a.closedUnder(observed, under) == nil {
		return false
	}
	return a.assignment == nil || under.version == a.kept.Held.Version() // an agent that has no assignment yet has found the mark on the volume
}

const (
	// straysFor is for how long nodes may lead clients to a former primary after the next one is named. kube-proxy follows within two
	// seconds. After a refused connection, the node sends another one from the same port to the same Pod for 10 s (Linux,
	// nf_conntrack_tcp_timeout_close).
	straysFor = 12 * time.Second
	// mostStrays is for how long the agent ends sessions if the next one is not named: a user may want to look at the data.
	mostStrays = time.Minute
)

// strays is when clients may arrive at a primary that was replaced: since when in this epoch, and when last. isUnnamed means that the next
// primary was not named then.
type strays struct {
	epoch       int64
	since, last time.Time
	isUnnamed   bool
}

// at returns what is known at a time, at which mysqld answers. The first look counts also if the next primary is named already: a mysqld
// that was killed may start before kube-proxy follows.
func (s strays) at(now time.Time, former *replaced, held replication.Record) strays {
	if former == nil || former.Epoch != held.Epoch {
		return s
	}
	isFirst := s.epoch != held.Epoch || s.isUnnamed && held.Primary != ""
	if isFirst {
		s = strays{epoch: held.Epoch, since: now}
	}
	s.isUnnamed = held.Primary == ""
	if isFirst || held.Primary == "" || !former.IsKnown && !former.IsForced {
		s.last = now
	}
	return s
}

// mayArrive reports whether there may be sessions to end.
func (s strays) mayArrive(now time.Time) bool {
	return now.Sub(s.last) <= straysFor && now.Sub(s.since) <= mostStrays
}

// noteReplaced reports that a primary which is replaced refuses clients, until the next look. The caller must hold the lock.
func (a *Agent) noteReplaced(was replication.Role) {
	if was == replication.RolePrimary && a.kept.Replaced != nil {
		a.status.RefusesClients = true
	}
}

// noteStrays returns whether clients may arrive that look for the primary, and must be refused: they would read what is old. It reports so
// before the agent reports anything else that it has seen.
func (a *Agent) noteStrays(observed mysqld.Observed, local replication.Observed) bool {
	now, leads := time.Now(), local.Assignment != nil && local.Assignment.Role == replication.RolePrimary
	a.mu.Lock()
	defer a.mu.Unlock()
	if observed.RefusesClients && a.strays == (strays{}) { // the agent has restarted meanwhile
		a.strays = strays{epoch: a.kept.Held.Epoch, since: now, last: now}
	}
	a.strays = a.strays.at(now, a.kept.Replaced, a.kept.Held)
	mayArrive := !leads && a.strays.mayArrive(now)
	a.status.RefusesClients = mayArrive || observed.RefusesClients
	return mayArrive && observed.Server.SuperReadOnly
}

// refuseStrays has mysqld refuse clients while one may arrive that looks for the primary, except for those with CONNECTION_ADMIN
// (endStrays). The operator owns offline_mode: nothing else may turn it on for longer.
func (a *Agent) refuseStrays(ctx context.Context, observed mysqld.Observed, mayArrive bool) {
	var err error
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	switch {
	case mayArrive && !observed.RefusesClients:
		err = a.local.RefuseClients(bounded)
	case !mayArrive && observed.RefusesClients && !a.isStopping():
		err = a.local.AdmitClients(bounded)
	}
	if err != nil {
		a.log.Info("cannot change whether clients are refused, will try again", "error", err.Error())
	}
}

// refuseFromStart makes the next mysqld start without clients, because it starts as a former primary. The agent lets them in later.
func (a *Agent) refuseFromStart() {
	next := a.bootstrap()
	next.RefuseClients = true
	if err := saveBootstrap(a.layout, next); err != nil {
		a.log.Info("cannot make the next mysqld refuse clients from its start on", "error", err.Error())
	}
	a.isSettled = false
}

// endStrays ends the sessions of clients at a former primary that takes no writes. A client would keep its connection, and get an error for
// every write. It also ends those at a primary that has started again after it had a lease, until the operator confirms it: another member
// may have taken over, and this one would serve what was there before. And it ends those at a primary that waits for replicas before it
// opens (servesTail). While mysqld refuses clients, only those with CONNECTION_ADMIN have sessions.
func (a *Agent) endStrays(ctx context.Context, observed mysqld.Observed, local replication.Observed, mayArrive bool) {
	isClosed := mayArrive || observed.Server.SuperReadOnly && mayBeReplaced(a.lastAssignment(), local)
	if !isClosed && !a.servesTail(observed.Server) {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	count, err := a.local.EndClients(bounded)
	if err != nil {
		a.log.Info("cannot end sessions of clients, will try again", "error", err.Error())
	}
	if count > 0 {
		a.log.Info("ended sessions of clients, because this member is not the primary any more, or not yet", "sessions", count)
	}
}

// mayBeReplaced reports whether the member was a primary with a lease, and waits to be confirmed.
func mayBeReplaced(last *replication.Assignment, local replication.Observed) bool {
	isConfirmed := local.Assignment != nil && local.Assignment.Boot == local.Boot
	return last != nil && last.Role == replication.RolePrimary && last.Lease > 0 && !isConfirmed
}

// viewReplaced adds to a view what the next step of a replaced primary depends on. The caller must hold the lock.
func (a *Agent) viewReplaced(local *replication.Observed) {
	local.InDoubt = a.kept.InDoubt
	if kept := a.kept.Replaced; kept != nil && !kept.IsForced {
		local.HadAsPrimary, local.SetAside, local.CannotSetAside = kept.Had, kept.SetAside, a.cannotSetAside
	}
}

// mostSetAside is how many bytes of binary logs the agent sets aside.
const mostSetAside = 64 << 20

// setAsideDir returns the folder in the volume for transactions that a replaced primary of this epoch had alone.
func (l Layout) setAsideDir(epoch int64) string {
	return filepath.Join(l.Volume, "unacknowledged", strconv.FormatInt(epoch, 10))
}

// setAside copies transactions from the binary log to a folder of the volume, as files that mysqlbinlog reads, before a copy of the
// primary's data replaces this member's.
func (a *Agent) setAside(ctx context.Context, gtids replication.GTIDSet) error {
	extents, err := a.local.Locate(ctx, gtids)
	if err != nil {
		return err
	}
	size := int64(0)
	for _, extent := range extents {
		size += extent.To - extent.From
	}
	if size > mostSetAside {
		return fmt.Errorf("the transactions have %d bytes, more than the %d that the agent copies: save what you need of them, and rebuild this member", size, mostSetAside)
	}
	a.mu.Lock()
	epoch := a.kept.Held.Epoch
	a.mu.Unlock()
	folder := a.layout.setAsideDir(epoch)
	if err := a.layout.copyExtents(extents, folder); err != nil {
		return fmt.Errorf("copy transactions to %s: %w", folder, err)
	}
	a.log.Info("kept a copy of transactions that no client was told had succeeded", "folder", folder, "gtids", gtids.String())
	return a.keepSetAside(replication.SetAside{Epoch: epoch, GTIDs: gtids})
}

func (a *Agent) keepSetAside(now replication.SetAside) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	kept := a.kept
	if kept.Replaced == nil {
		return errors.New("this member leads again")
	}
	with := *kept.Replaced
	with.SetAside = with.SetAside.Union(now.GTIDs)
	now.GTIDs = with.SetAside
	kept.Replaced, kept.SetAside = &with, &now
	return a.storeState(kept)
}

// copyExtents copies parts of binary logs to files of the same names in a folder, and flushes them. What the folder had of an earlier
// attempt is replaced.
func (l Layout) copyExtents(extents []mysqld.Extent, folder string) error {
	if err := makeFolders(filepath.Dir(folder), folder); err != nil {
		return err
	}
	parts := map[string][]mysqld.Extent{}
	for _, extent := range extents {
		parts[extent.File] = append(parts[extent.File], extent)
	}
	for name, of := range parts {
		if err := l.copyExtentsOf(name, of, folder); err != nil {
			return err
		}
	}
	return errors.Join(flushFolder(filepath.Dir(folder)), flushFolder(l.Volume))
}

// makeFolders makes folders, each in the one before. It follows no link.
func makeFolders(folders ...string) error {
	for _, folder := range folders {
		if err := os.Mkdir(folder, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if info, err := os.Lstat(folder); err != nil || !info.IsDir() {
			return errors.Join(err, fmt.Errorf("%s is not a folder", folder))
		}
	}
	return nil
}

// copyExtentsOf copies parts of one binary log.
func (l Layout) copyExtentsOf(name string, extents []mysqld.Extent, folder string) error {
	if filepath.Base(name) != name {
		return fmt.Errorf("%q is not the name of a binary log", name)
	}
	file, err := openRegular(filepath.Join(l.DataDir(), name), math.MaxInt64, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer file.Close()
	const magic = "\xfebin"
	found := make([]byte, len(magic))
	if _, err := file.ReadAt(found, 0); err != nil || string(found) != magic {
		return errors.Join(err, fmt.Errorf("%s is encrypted, or is no binary log", name))
	}
	parts, size := make([]io.Reader, 0, len(extents)), int64(0)
	for _, extent := range extents {
		parts = append(parts, io.NewSectionReader(file, extent.From, extent.To-extent.From))
		size += extent.To - extent.From
	}
	content := &io.LimitedReader{R: io.MultiReader(parts...), N: size}
	if err := copyDurably(filepath.Join(folder, name), content, 0o640); err != nil {
		return err
	}
	if content.N > 0 {
		return fmt.Errorf("%s is shorter than mysqld says", name)
	}
	return nil
}
