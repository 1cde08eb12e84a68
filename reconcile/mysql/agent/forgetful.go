package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// bootIDFile is random for each boot of the machine (random(4)).
const bootIDFile = "/proc/sys/kernel/random/boot_id"

// Machine returns the boot ID of this machine.
func Machine() (string, error) {
	text, err := os.ReadFile(bootIDFile)
	if err != nil {
		return "", fmt.Errorf("read which boot of the machine this is: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// startingOn returns the state for a start of mysqld on a machine. mysqld writes its relay log without flushing it (sync_relay_log), and
// the operating system flushes it later. So a replica whose machine has failed may have lost transactions that it has acknowledged.
// A primary flushes its binary log with every commit.
func (s state) startingOn(machine string) state {
	if s.Machine != "" && s.Machine != machine && s.HeldRole == replication.RoleReplica {
		s.IsForgetful = true
	}
	s.Machine = machine
	return s
}

// recordMachine records on which machine mysqld is about to start.
func recordMachine(layout Layout, machine string) error {
	kept, _, err := loadState(layout.stateFile())
	if err != nil {
		return err
	}
	next := kept.startingOn(machine)
	if next.Machine == kept.Machine {
		return nil
	}
	return saveAtStart(layout, next)
}

// recordFlush flushes the volume after mysqld has ended, and records that. Then the member has lost nothing, even if its machine fails.
func (a *Agent) recordFlush() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ends == 0 || a.mysqld.Running || a.kept.Machine == "" {
		return nil // mysqld may run
	}
	if err := a.layout.flush(); err != nil {
		return err
	}
	kept := a.kept
	kept.Machine = ""
	return a.storeState(kept)
}

// remember records that a member that may have lost transactions has all of them again: it has what the primary had at this look, or is the
// primary itself.
func (a *Agent) remember(ctx context.Context, local replication.Observed) {
	a.mu.Lock()
	defer a.mu.Unlock()
	leads := a.kept.HeldRole == replication.RolePrimary && !local.Server.SuperReadOnly
	if !a.kept.IsForgetful || !leads && !local.HasAllOfSource() {
		return
	}
	kept := a.kept
	kept.IsForgetful = false
	if err := a.storeState(kept); err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		a.log.Info("cannot record that the member has all transactions again, will try again", "error", err.Error())
	}
}
