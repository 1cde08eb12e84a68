package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// passwords are those of the operator's own accounts, by user name.
type passwords map[string]string

// ownUsers ends with the agent's own: once that has its new password, the others are taken to have theirs.
func ownUsers() []string {
	return []string{mysqld.ReplicationUser, mysqld.CloneUser, mysqld.AgentUser}
}

// wantedPasswords are what the cluster's Secret says; kubelet replaces the files when the Secret changes.
func (l Layout) wantedPasswords() (passwords, error) {
	wanted := passwords{}
	for _, user := range ownUsers() {
		account, err := l.readAccount(user)
		if err != nil {
			return nil, err
		}
		wanted[user] = account.Password
	}
	return wanted, nil
}

// keepPasswords notes, in the Pod's memory, which passwords mysqld knows: those of its init_file, until they are changed.
func (l Layout) keepPasswords(inForce passwords) error {
	content, err := json.Marshal(inForce)
	if err != nil {
		return fmt.Errorf("keep the passwords in force: %w", err)
	}
	return writeDurably(l.passwordsFile(), content, 0o600)
}

func (l Layout) keptPasswords() (passwords, error) {
	content, err := os.ReadFile(l.passwordsFile())
	if err != nil {
		return nil, fmt.Errorf("read the passwords in force: %w", err)
	}
	var kept passwords
	if err := json.Unmarshal(content, &kept); err != nil {
		return nil, fmt.Errorf("read the passwords in force: %w", err)
	}
	return kept, nil
}

// refreshPasswords brings passwords that the Secret has got since into force. The primary sets them, and they replicate; the other members
// find one day that they work. Until then everybody goes on with those that are in force.
func (a *Agent) refreshPasswords(ctx context.Context, may permission) error {
	wanted, err := a.layout.wantedPasswords()
	if err != nil {
		return err
	}
	if may == mayAdmit {
		return a.admit(ctx, wanted)
	}
	isDue := !maps.Equal(wanted, a.inForce) || may == maySet && a.strayed
	if !isDue {
		return nil
	}
	if may == maySet {
		if err := a.setPasswords(ctx, wanted); err != nil {
			return err
		}
	}
	return a.tryPasswords(ctx, wanted)
}

// setPasswords sets the passwords of all members' accounts.
func (a *Agent) setPasswords(ctx context.Context, wanted passwords) error {
	for _, user := range ownUsers() {
		if err := a.local.SetOwnPassword(ctx, user, wanted[user]); err != nil {
			return err
		}
	}
	a.admitted, a.strayed = nil, false
	return nil
}

// permission is what a member may do about passwords.
type permission int

const (
	// mayTry: a replica tries whether they are in force.
	mayTry permission = iota
	// mayAdmit: a primary whose commits wait for replicas sets nothing that they would have to acknowledge.
	mayAdmit
	// maySet: a primary whose commits are acknowledged.
	maySet
)

func permissionOf(where replication.State, mayCommit bool) permission {
	switch {
	case where != replication.StateWriting:
		return mayTry
	case !mayCommit:
		return mayAdmit
	}
	return maySet
}

// admit lets members in that have read the Secret already, without the binary log: those that are to acknowledge commits connect with the
// new passwords. It does so once after each start of mysqld or the agent, also where nothing is new: what was set so before is not known
// then.
func (a *Agent) admit(ctx context.Context, wanted passwords) error {
	boot := a.Status().Boot
	if maps.Equal(wanted, a.admitted) && boot == a.admittedAt {
		return nil
	}
	for _, user := range []string{mysqld.ReplicationUser, mysqld.CloneUser} {
		if err := a.local.SetOwnPasswordHere(ctx, user, wanted[user]); err != nil {
			return err
		}
	}
	a.admitted, a.admittedAt, a.strayed = wanted, boot, !maps.Equal(wanted, a.inForce)
	return nil
}

// tryPasswords goes over to new passwords if mysqld takes the agent's.
func (a *Agent) tryPasswords(ctx context.Context, wanted passwords) error {
	trial, err := mysqld.Local(a.layout.socket(), mysqld.Account{User: mysqld.AgentUser, Password: wanted[mysqld.AgentUser]})
	if err != nil {
		return err
	}
	if err := trial.Ping(ctx); err != nil {
		_ = trial.Close() // never connected
		if mysqld.IsAccessDenied(err) {
			return nil
		}
		return err
	}
	// From its next start on, mysqld shall know the new ones as well.
	if err := writeBootstrap(a.layout, mysqld.Bootstrap{}); err != nil {
		return err
	}
	if err := a.layout.keepPasswords(wanted); err != nil {
		return err
	}
	former := a.local
	a.local, a.inForce = trial, wanted
	a.log.Info("the operator's accounts have new passwords")
	return former.Close()
}
