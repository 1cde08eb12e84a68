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

// passwords are the passwords of the operator's accounts, by user name.
type passwords map[string]string

// ownUsers lists the passwords of the operator's accounts, the agent's own last: once that account has its new password, the agent assumes
// that the others have theirs.
func ownUsers() []string {
	return []string{mysqld.ReplicationUsers, mysqld.CloneUser, mysqld.AgentUser}
}

// wantedPasswords reads the passwords of the cluster's Secret. kubelet replaces the files when the Secret changes.
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

// keepPasswords records, in the Pod's memory, which passwords mysqld knows: those of its init_file, until they change.
func (l Layout) keepPasswords(inForce passwords) error {
	content, err := json.Marshal(inForce)
	if err != nil {
		return fmt.Errorf("store the passwords in use: %w", err)
	}
	return writeDurably(l.passwordsFile(), content, 0o600)
}

func (l Layout) keptPasswords() (passwords, error) {
	content, err := os.ReadFile(l.passwordsFile())
	if err != nil {
		return nil, fmt.Errorf("read the passwords in use: %w", err)
	}
	var kept passwords
	if err := json.Unmarshal(content, &kept); err != nil {
		return nil, fmt.Errorf("read the passwords in use: %w", err)
	}
	return kept, nil
}

// refreshPasswords applies new passwords of the Secret. The primary sets them, and they replicate. The other members notice later that they
// work. Until then every member uses the old passwords.
func (a *Agent) refreshPasswords(ctx context.Context, may passwordAction) error {
	wanted, err := a.layout.wantedPasswords()
	if err != nil {
		return err
	}
	if may == mayAdmit {
		return a.admit(ctx, wanted)
	}
	isDue := !maps.Equal(wanted, a.inForce) || may == maySet && a.admittedDiffer
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

// setPasswords sets the passwords of the accounts on all members.
func (a *Agent) setPasswords(ctx context.Context, wanted passwords) error {
	for _, user := range ownUsers() {
		if err := a.local.SetOwnPassword(ctx, user, wanted[user]); err != nil {
			return err
		}
	}
	a.admitted, a.admittedDiffer = nil, false
	return nil
}

// passwordAction is what a member may do about passwords.
type passwordAction int

const (
	// mayTry: a replica tries whether the new passwords work.
	mayTry passwordAction = iota
	// mayAdmit: a primary whose commits wait for replicas sets no password that replicas would have to acknowledge.
	mayAdmit
	// maySet: a primary whose commits are acknowledged.
	maySet
)

func permissionOf(where replication.State, observed mysqld.Observed) passwordAction {
	opens := where == replication.StatePromoting && !observed.Server.SuperReadOnly // it waits for replicas
	switch {
	case where != replication.StateWriting && !opens:
		return mayTry
	case opens || !observed.EnoughAcknowledge():
		return mayAdmit
	}
	return maySet
}

// admit lets members connect that have already read the Secret. It sets the passwords without the binary log, so that replicas that must
// acknowledge commits can connect. It does so once after each start of mysqld or the agent, even if no password is new: the agent does not
// know what was set before.
func (a *Agent) admit(ctx context.Context, wanted passwords) error {
	boot := a.Status().Boot
	if maps.Equal(wanted, a.admitted) && boot == a.admittedAt {
		return nil
	}
	for _, user := range []string{mysqld.ReplicationUsers, mysqld.CloneUser} {
		if err := a.local.SetOwnPasswordHere(ctx, user, wanted[user]); err != nil {
			return err
		}
	}
	a.admitted, a.admittedAt, a.admittedDiffer = wanted, boot, !maps.Equal(wanted, a.inForce)
	return nil
}

// tryPasswords switches to new passwords if mysqld accepts the agent's.
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
	// mysqld must know the new passwords after its next start as well.
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
