package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql"
)

// passwords are those of the operator's own accounts, by user name.
type passwords map[string]string

// ownUsers ends with the agent's own: once that has its new password, the others are taken to have theirs.
func ownUsers() []string {
	return []string{mysql.ReplicationUser, mysql.CloneUser, mysql.AgentUser}
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

// refreshPasswords brings passwords that the Secret has got since into force. The primary sets them while replicas acknowledge, and they
// replicate; the other members find one day that they work. Until then everybody goes on with those that are in force.
func (a *Agent) refreshPasswords(ctx context.Context, maySet bool) error {
	wanted, err := a.layout.wantedPasswords()
	if err != nil || maps.Equal(wanted, a.inForce) {
		return err
	}
	if !maySet {
		return a.tryPasswords(ctx, wanted)
	}
	for _, user := range ownUsers() {
		if err := a.local.SetOwnPassword(ctx, user, wanted[user]); err != nil {
			return err
		}
	}
	return a.tryPasswords(ctx, wanted)
}

// tryPasswords goes over to new passwords if mysqld takes the agent's.
func (a *Agent) tryPasswords(ctx context.Context, wanted passwords) error {
	trial, err := mysql.Local(a.layout.socket(), mysql.Account{User: mysql.AgentUser, Password: wanted[mysql.AgentUser]})
	if err != nil {
		return err
	}
	if err := trial.Ping(ctx); err != nil {
		_ = trial.Close() // never connected
		if mysql.IsAccessDenied(err) {
			return nil
		}
		return err
	}
	// From its next start on, mysqld shall know the new ones as well.
	if err := writeBootstrap(a.layout, false); err != nil {
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
