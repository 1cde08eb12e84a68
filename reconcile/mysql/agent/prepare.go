package agent

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/sizing"
)

// Identity is a member's identity and settings.
type Identity struct {
	// Pod is the Pod's name, Host its stable DNS name.
	Pod, Host string
	// Ordinal is the Pod's number in its StatefulSet.
	Ordinal int
	// Settings are mysqld's settings that all members share, as a my.cnf. They come with the Pod, so that a user who may write only
	// ConfigMaps cannot change them.
	Settings string
	// Given is mysqld's memory and CPU. Settings override the sizes that follow from it.
	Given sizing.Resources
	// RootAbsent reports whether the agent leaves root@'%' alone once there is data.
	RootAbsent bool
	// Tell receives messages that a user should see although the member starts; nil discards them.
	Tell io.Writer
}

// Prepare is the work of the first init container. It writes configuration files into the run folder. With them the second init container,
// plain mysqld, creates a data directory, or only validates the configuration if there is one. The MySQL image needs no shell and no script
// for this.
func Prepare(layout Layout, who Identity) error {
	if who.Settings == "" {
		return errors.New("the Pod has no settings of the cluster: this subcommand runs inside the Pods of a MySQLCluster only")
	}
	newData, err := prepareData(layout)
	if err != nil {
		return err
	}
	serverID, err := chooseServerID(layout, who.Ordinal, cmp.Or[io.Writer](who.Tell, io.Discard))
	if err != nil {
		return err
	}
	tuned, own := sizing.TuneWithConfig(who.Given, who.Settings).Config(), memberSettings(layout, who, serverID)
	base := tuned + who.Settings + own
	first := base + "validate_config = ON\n"
	if newData {
		first = tuned + forNewData(who.Settings) + own + "initialize_insecure = ON\n"
	}
	if err := os.WriteFile(layout.initConfig(), []byte(first), 0o600); err != nil {
		return fmt.Errorf("write initialize.cnf: %w", err)
	}
	if err := prepareBootstrap(layout, newData, who.RootAbsent); err != nil {
		return err
	}
	inForce, err := layout.wantedPasswords()
	if err != nil {
		return err
	}
	if err := layout.keepPasswords(inForce); err != nil {
		return err
	}
	base += "init_file = " + layout.bootstrapFile() + "\n"
	if err := os.WriteFile(layout.serverConfig(), []byte(base), 0o600); err != nil {
		return fmt.Errorf("write my.cnf: %w", err)
	}
	return nil
}

// OwnPlugins is how many plugins the settings of every cluster load, without the user's plugins.
const OwnPlugins = 3

// forNewData returns the settings with which mysqld creates a data directory. It loads no plugins for that, so it does not know their
// settings. If the cluster has the user's plugins, unknown settings must not be errors.
func forNewData(settings string) string {
	if strings.Count(settings, "\nplugin_load_add = ") <= OwnPlugins {
		return settings
	}
	var text strings.Builder
	for line := range strings.Lines(settings) {
		if name, _, isSetting := strings.Cut(line, " = "); isSetting && !strings.HasPrefix(name, "loose") {
			text.WriteString("loose_")
		}
		text.WriteString(line)
	}
	return text.String()
}

func memberSettings(layout Layout, who Identity, serverID uint32) string {
	lines := []string{
		"", "[mysqld]",
		fmt.Sprintf("server_id = %d", serverID),
		"report_host = " + who.Host,
		"datadir = " + layout.DataDir(),
		"socket = " + layout.socket(),
		"pid_file = " + filepath.Join(layout.Run, "mysqld.pid"),
		"tmpdir = " + layout.Temp,
		"ssl_ca = " + layout.caFile(),
		"ssl_cert = " + layout.certFile(),
		"ssl_key = " + layout.keyFile(),
		"",
	}
	return strings.Join(lines, "\n")
}

// prepareData decides whether mysqld must create a data directory. It removes one that mysqld --initialize left unfinished and no cluster
// has used. It keeps anything else.
func prepareData(layout Layout) (newData bool, err error) {
	kept, found, err := loadState(layout.stateFile())
	if err != nil {
		return false, err
	}
	exists, err := hasEntries(layout.DataDir())
	if err != nil {
		return false, err
	}
	if err := refuseUnfinished(layout, exists); err != nil {
		return false, err
	}
	unfinished := found && kept.Data == replication.OriginInitializing
	switch {
	case unfinished:
		if err := os.RemoveAll(layout.DataDir()); err != nil {
			return false, fmt.Errorf("remove the unfinished data directory: %w", err)
		}
	case exists && !found:
		return false, saveAtStart(layout, state{Data: replication.OriginMember})
	case exists:
		return false, nil
	case kept.Data == replication.OriginMember:
		return false, fmt.Errorf("the volume's %s says that this member has data, but %s is empty: restore the volume, or also delete member.json to start with an empty member", filepath.Base(layout.stateFile()), layout.DataDir())
	}
	return true, saveAtStart(layout, state{Data: replication.OriginInitializing})
}

// refuseUnfinished returns an error if the volume has an unfinished restore, so that it does not count as empty.
func refuseUnfinished(layout Layout, exists bool) error {
	restoring, err := hasEntries(layout.RestoringDir())
	if err != nil || !restoring || exists {
		return err
	}
	return errors.New("the volume holds a restore that was not finished, and no data: mysqld does not start with an empty database instead; apply the cluster with the backup to restore from again, or delete the volume's claim to start with an empty database")
}

func hasEntries(folder string) (bool, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the data directory: %w", err)
	}
	return len(entries) > 0, nil
}

// prepareBootstrap writes what mysqld runs at its first start. Restored data that no member has used has no replicas yet, which would miss
// these changes.
func prepareBootstrap(layout Layout, newData, rootAbsent bool) error {
	kept, _, err := loadState(layout.stateFile())
	if err != nil {
		return err
	}
	isUnused := kept.RestoredFrom != nil && kept.Held.Epoch == 0
	return writeBootstrap(layout, mysqld.Bootstrap{NewData: newData, RestoredData: isUnused && !newData && !rootAbsent})
}

func writeBootstrap(layout Layout, bootstrap mysqld.Bootstrap) error {
	var err error
	if bootstrap.Agent, err = layout.readAccount(mysqld.AgentUser); err != nil {
		return err
	}
	if bootstrap.Replication, err = layout.readAccount(mysqld.ReplicationUsers); err != nil {
		return err
	}
	if bootstrap.Clone, err = layout.readAccount(mysqld.CloneUser); err != nil {
		return err
	}
	if bootstrap.NewData || bootstrap.RestoredData {
		if bootstrap.Root, err = layout.readRootPassword(); err != nil {
			return err
		}
	}
	return saveBootstrap(layout, bootstrap)
}

func saveBootstrap(layout Layout, bootstrap mysqld.Bootstrap) error {
	text, err := bootstrap.SQL()
	if err != nil {
		return fmt.Errorf("write bootstrap.sql: %w", err)
	}
	return writeDurably(layout.bootstrapFile(), []byte(text), 0o640)
}

func (l Layout) readAccount(user string) (mysqld.Account, error) { return l.readAccountOf(user, user) }

// readAccountOf returns an account with the password of this name.
func (l Layout) readAccountOf(user, password string) (mysqld.Account, error) {
	content, err := os.ReadFile(l.account(password))
	if err != nil {
		return mysqld.Account{}, fmt.Errorf("read the password of %s: %w", user, err)
	}
	return mysqld.Account{User: user, Password: string(content)}, nil
}

// readRootPassword returns the Secret's value without one line break at its end, which files and heredocs leave there.
func (l Layout) readRootPassword() (string, error) {
	content, err := os.ReadFile(l.rootPassword())
	if err != nil {
		return "", fmt.Errorf("read the root password: %w", err)
	}
	password := RootPassword(content)
	if password == "" {
		return "", fmt.Errorf("the root password in the cluster's Secret is empty: set one")
	}
	return password, nil
}

// RootPassword returns the password in a Secret's value.
func RootPassword(value []byte) string {
	return strings.TrimSuffix(strings.TrimSuffix(string(value), "\n"), "\r")
}
