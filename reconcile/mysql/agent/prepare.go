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

// Identity is who a member is.
type Identity struct {
	// Pod is the Pod's name, Host its stable DNS name.
	Pod, Host string
	// Ordinal is the Pod's number in its StatefulSet.
	Ordinal int
	// Settings are those of mysqld that all members share, as a my.cnf. They come with the Pod: whoever may write ConfigMaps only cannot
	// change them.
	Settings string
	// Given is what mysqld has; Settings win over what follows from it.
	Given sizing.Given
	// RootAbsent says that nobody looks after root@'%', once there is data.
	RootAbsent bool
	// Tell takes what a person should know though the member starts; nil for nobody.
	Tell io.Writer
}

// Prepare is the first init container's work: it leaves configuration files in the run folder with which the second one, plain
// mysqld, either makes a data directory or, where there is one, only validates the configuration. No shell and no script are
// needed of the MySQL image.
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
	tuned, own := sizing.TuneBeside(who.Given, who.Settings).Config(), memberSettings(layout, who, serverID)
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

// OwnPlugins is how many plugins the settings of every cluster load, without those of its user's.
const OwnPlugins = 3

// forNewData are the settings with which mysqld makes a data directory. It loads no plugins for that, so that it does not know their
// settings: where the cluster has plugins of its user's, what it does not know is no error.
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

// prepareData decides whether a data directory has to be made. What mysqld --initialize left unfinished, and nobody ever used, is
// made anew; anything else is kept as it is.
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
		return false, fmt.Errorf("the volume's %s says that this member has data, but %s is empty: restore the volume, or delete member.json as well to begin with an empty member", filepath.Base(layout.stateFile()), layout.DataDir())
	}
	return true, saveAtStart(layout, state{Data: replication.OriginInitializing})
}

// refuseUnfinished keeps a volume on which a backup was to be restored from being taken for an empty one.
func refuseUnfinished(layout Layout, exists bool) error {
	restoring, err := hasEntries(layout.RestoringDir())
	if err != nil || !restoring || exists {
		return err
	}
	return errors.New("the volume holds a restore that was not finished, and no data: an empty database is not put in its place; apply the cluster with the backup to restore from again, or delete the volume's claim to begin empty")
}

func hasEntries(folder string) (bool, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look into the data directory: %w", err)
	}
	return len(entries) > 0, nil
}

// prepareBootstrap writes what mysqld does at its first start. Restored data that no member has used has no replicas yet, which would lack
// what is done there.
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
	if bootstrap.Replication, err = layout.readAccount(mysqld.ReplicationUser); err != nil {
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
	text, err := bootstrap.SQL()
	if err != nil {
		return fmt.Errorf("write bootstrap.sql: %w", err)
	}
	return writeDurably(layout.bootstrapFile(), []byte(text), 0o640)
}

func (l Layout) readAccount(user string) (mysqld.Account, error) {
	password, err := os.ReadFile(l.account(user))
	if err != nil {
		return mysqld.Account{}, fmt.Errorf("read the password of %s: %w", user, err)
	}
	return mysqld.Account{User: user, Password: string(password)}, nil
}

// readRootPassword takes the Secret's value as it is, but for one line break at its end, which files and heredocs leave there.
func (l Layout) readRootPassword() (string, error) {
	content, err := os.ReadFile(l.rootPassword())
	if err != nil {
		return "", fmt.Errorf("read the root password: %w", err)
	}
	password := RootPassword(content)
	if password == "" {
		return "", fmt.Errorf("the root password in the cluster's Secret is empty")
	}
	return password, nil
}

// RootPassword is the password that a Secret's value stands for.
func RootPassword(value []byte) string {
	return strings.TrimSuffix(strings.TrimSuffix(string(value), "\n"), "\r")
}
