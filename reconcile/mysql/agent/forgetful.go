package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/go-logr/logr"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
)

// bootIDFile is random for each boot of the machine (random(4)).
const bootIDFile = "/proc/sys/kernel/random/boot_id"

// Life identifies this Pod on this boot of its machine. What mysqld wrote in another life may not have reached the disk, unless it was
// flushed.
func Life() (string, error) {
	boot, err := os.ReadFile(bootIDFile)
	if err != nil {
		return "", fmt.Errorf("read which boot of the machine this is: %w", err)
	}
	return strings.TrimSpace(string(boot)) + "/" + os.Getenv(EnvPodUID), nil
}

// livingIn returns the state for a life of the member. mysqld writes its relay log without flushing it (sync_relay_log), unless the user
// wants that, and the operating system flushes it later. So a replica whose machine or volume has failed may have lost transactions that it
// has acknowledged. A primary flushes its binary log with every commit.
func (s state) livingIn(life string) state {
	if s.Life != "" && s.Life != life && s.HeldRole == replication.RoleReplica && !s.HasLed {
		s.IsForgetful, s.ForgotUnder = true, s.Held.Version()
	}
	s.Life = life
	return s
}

// recordLife records in which life mysqld runs, before the agent lets it acknowledge anything. A full volume must not stop the agent: the
// record of the former life stays there, and the next agent finds it as well.
func recordLife(layout Layout, kept state, life string, log logr.Logger) (state, error) {
	if life == "" || kept.Life == life {
		return kept, nil
	}
	next := kept.livingIn(life)
	err := saveAtStart(layout, next)
	if isFull(err) {
		log.Info("cannot record on which boot of its machine the member runs: the volume is full", "error", err.Error())
		return next, nil
	}
	return next, err
}

// recordFlush flushes the volume if mysqld has ended, and records that. Then the member loses nothing, even if its machine fails.
func (a *Agent) recordFlush(ctx context.Context) error {
	if !a.isEnded(ctx) {
		return nil
	}
	if err := a.layout.flush(); err != nil {
		return err
	}
	return a.keepLife("")
}

// recordSyncing records whether the replica's mysqld flushes its relay log for each transaction. While it does, nothing that it
// acknowledges is lost with its machine. What it wrote before is flushed first. A user may change the setting while mysqld runs.
//
// An error means that the volume says that nothing can be lost, which is not so. Nothing else may happen before it is corrected.
func (a *Agent) recordSyncing(observed mysqld.Observed) error {
	a.mu.Lock()
	isMarked, isReplica := a.kept.Life != "" && (a.late == nil || a.late.state.Life != ""), a.kept.HeldRole == replication.RoleReplica
	a.mu.Unlock()
	if !isReplica || isMarked != observed.SyncsRelayLog || a.life == "" {
		return nil
	}
	if !observed.SyncsRelayLog {
		return a.keepLife(a.life)
	}
	if a.standsStill() {
		return nil // the mark stays
	}
	err := a.layout.flush()
	if err == nil {
		err = a.keepLife("")
	}
	if err != nil {
		a.log.Info("cannot record that mysqld flushes its relay log, will try again", "error", err.Error())
	}
	return nil
}

func (a *Agent) keepLife(life string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	kept := a.kept
	kept.Life = life
	return a.storeState(kept)
}

// flushToLead flushes the volume of a replica that becomes the primary. It may have received what it has not applied, and a primary counts
// as a member that forgets nothing (livingIn).
func (a *Agent) flushToLead(next replication.Assignment) error {
	a.mu.Lock()
	role := a.kept.HeldRole
	a.mu.Unlock()
	if next.Role != replication.RolePrimary || role != replication.RoleReplica {
		return nil
	}
	if a.standsStill() {
		return errVolumeStands
	}
	return a.layout.flush()
}

// isEnded reports whether mysqld has certainly ended: its supervisor says so, or has ended, and mysqld with it.
func (a *Agent) isEnded(ctx context.Context) bool {
	a.mu.Lock()
	now := a.mysqld
	a.mu.Unlock()
	if now.Start != "" && !now.Running && now.Stopping {
		return true
	}
	open, err := (&net.Dialer{}).DialContext(ctx, "unix", supervisor.Socket(a.layout.Run))
	if err == nil {
		_ = open.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist)
}

// mustLookAtSource reports whether a forgetful member has not looked at its primary yet. The caller must hold the lock.
func (a *Agent) mustLookAtSource() bool {
	return a.kept.IsForgetful && a.assignment != nil && (a.assignment.SourceHost == "" || a.assignment.SourceHost != a.recallHost)
}

// remember records that a forgetful member has all transactions again: it has everything that its primary had when the member first looked
// at it, or it is the primary itself. What the primary had in progress counts, because this member may have acknowledged it before.
func (a *Agent) remember(local replication.Observed) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.kept.IsForgetful {
		return
	}
	switch source := local.Source; {
	case a.kept.HeldRole == replication.RolePrimary && !local.Server.SuperReadOnly:
	case a.mustLookAtSource():
		if source != nil && source.Err == "" {
			a.recall, a.recallHost = source.Executed.Union(source.Pending), a.assignment.SourceHost
		}
		return
	case a.assignment == nil || !local.Server.Executed.Union(local.Server.Channel.Retrieved).Contains(a.recall):
		return
	}
	kept := a.kept
	kept.IsForgetful = false
	if err := a.storeState(kept); err != nil {
		a.log.Info("cannot record that the member has all transactions again, will try again", "error", err.Error())
	}
}
