package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/mysql-operator/mysql-operator/cmd/internal/cli"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/mover"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
)

// transferCommand is a subcommand that moves or deletes backups.
type transferCommand struct {
	flags *pflag.FlagSet
	log   cli.LogOptions
	env   mover.Environment
	// report is the file for the outcome as JSON; if empty, the program prints the outcome for a user.
	report string
}

// newTransfer begins a command with the parts that all these subcommands share; what is the description in its help.
func newTransfer(usage, what string, p cli.Process) *transferCommand {
	t := &transferCommand{flags: pflag.NewFlagSet(caller+" "+usage, pflag.ContinueOnError)}
	t.flags.Usage = func() {
		fmt.Fprintf(p.Out, "usage: %s %s\n\n%s\n\n%s", caller, usage, strings.TrimSpace(what), t.flags.FlagUsages())
	}
	t.env = mover.Environment{Version: version, Now: time.Now}
	return t
}

// destination registers the flags for the location of the backup.
func (t *transferCommand) destination(urlFlag string) {
	t.flags.StringVar(&t.env.URL, urlFlag, "", "the backup's own folder: s3://bucket/folder?region=…&endpoint=https://…&use_path_style=true, gs://bucket/folder, azblob://container/folder, or file:///folder")
	t.flags.StringVar(&t.env.CredentialsDir, protocol.FlagCredentials, "", "folder with the credentials as files, one for each key of the Secret: AWS_ACCESS_KEY_ID, service-account.json, AZURE_STORAGE_ACCOUNT, ca.crt, … (default: the machine's own credentials)")
	t.flags.StringVar(&t.env.StoreDir, protocol.FlagStoreDir, "", "folder that file URLs are relative to (default: /)")
	t.flags.StringVar(&t.report, protocol.FlagReport, "", "file for the outcome as JSON")
}

// identity registers the flags that identify the backup's owner.
func (t *transferCommand) identity() {
	t.flags.StringVar(&t.env.Namespace, protocol.FlagNamespace, "", "namespace of the cluster")
	t.flags.StringVar(&t.env.Cluster, protocol.FlagCluster, "", "name of the MySQLCluster")
	t.flags.StringVar(&t.env.Instance, protocol.FlagInstance, "", "name of the MySQLBackupInstance")
	t.flags.StringVar(&t.env.UID, protocol.FlagUID, "", "UID of the MySQLBackupInstance")
}

func (t *transferCommand) bandwidth() {
	t.flags.Int64Var(&t.env.Bandwidth, protocol.FlagBandwidth, 0, "bytes a second at most (default: no limit; a primary is read at 64 MiB/s)")
}

func (t *transferCommand) identityFile() {
	t.flags.StringVar(&t.env.IdentityFile, protocol.FlagIdentity, "", "file with age secret keys, one a line, for an encrypted backup")
}

// serverSettings registers the flag for settings of the mysqld that will use the data.
func (t *transferCommand) serverSettings() {
	t.flags.Func(protocol.FlagSetting, "NAME=VALUE: a setting of the cluster that data files depend on; repeat the flag for each setting (in Pods)", func(text string) error {
		name, value, found := strings.Cut(text, "=")
		if !found {
			return fmt.Errorf("%q is not NAME=VALUE", text)
		}
		if t.env.ServerSettings == nil {
			t.env.ServerSettings = map[string]string{}
		}
		t.env.ServerSettings[name] = value
		return nil
	})
}

// parse reads the command line; required are the flags that must have a value.
func (t *transferCommand) parse(p cli.Process, required ...string) error {
	t.log.Register(t.flags)
	if err := cli.ParseAll(t.flags, p); err != nil {
		return err
	}
	for _, name := range required {
		if value := t.flags.Lookup(name).Value.String(); value == "" || value == "0" {
			return cli.BadUsage("%s needs --%s", t.flags.Name(), name)
		}
	}
	if t.report == "" && !t.flags.Changed("log-format") {
		t.log.Format = "console" // a user runs it by hand
	}
	var err error
	t.env.Log, err = t.log.Logger(p.Err)
	return err
}

// finish reports the outcome: to the Job by the report and the exit status, to a user as text.
func (t *transferCommand) finish(p cli.Process, outcome protocol.Outcome, err error, otherwise string) error {
	outcome, status := mover.Ended(outcome, err, otherwise)
	if t.report != "" {
		if failed := writeReport(t.report, outcome); failed != nil {
			t.env.Log.Error(failed, "failed to write the report")
		}
	}
	if err != nil {
		t.env.Log.Error(err, "failed", "reason", outcome.Reason, "repeat", status == protocol.ExitRetry)
		return &cli.StatusError{Status: status}
	}
	t.env.Log.Info("completed", "message", outcome.Message, "bytes", outcome.DataSize, "size", outcome.Size, "checksum", outcome.Checksum, "gtidExecuted", outcome.GTIDExecuted)
	if t.report == "" {
		printOutcome(p, outcome)
	}
	return nil
}

// writeReport writes the outcome to the file from which kubelet reads the Pod's termination message. In a Pod, that file exists and another
// user owns it.
func writeReport(file string, outcome protocol.Outcome) error {
	content, err := outcome.Encode()
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		return fmt.Errorf("write the outcome: %w", err)
	}
	return nil
}

// printOutcome prints the outcome for a user.
func printOutcome(p cli.Process, outcome protocol.Outcome) {
	for _, line := range []struct{ name, value string }{
		{"message", outcome.Message}, {"instance", outcome.Instance}, {"instance UID", outcome.UID}, {"copied from", outcome.Source},
		{"MySQL version", outcome.ServerVersion}, {"data", size(outcome.DataSize)}, {"archive", size(outcome.Size)},
		{"GTID set", outcome.GTIDExecuted}, {"checksum", outcome.Checksum},
	} {
		if line.value != "" {
			fmt.Fprintf(p.Out, "%-14s %s\n", line.name, line.value)
		}
	}
}

func size(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return protocol.Size(bytes)
}

// runBackup is the subcommand backup: backup's Pods run it, and users run its verify.
func runBackup(ctx context.Context, p cli.Process) error {
	if len(p.Arguments) > 0 && p.Arguments[0] == "verify" {
		p.Arguments = p.Arguments[1:]
		return runVerify(ctx, p)
	}
	t := newTransfer("backup [flags]", `Makes one backup of a cluster (runs in the Pods of a MySQLBackupInstance).
mysql-operator backup verify checks one by hand.`, p)
	t.identity()
	t.destination(protocol.FlagURL)
	t.flags.IntVar(&t.env.Port, protocol.FlagPort, 3306, "port of the cluster's members")
	t.flags.StringVar(&t.env.RecipientFile, protocol.FlagRecipient, "", "file with age public keys, one a line, to encrypt for")
	t.identityFile()
	t.bandwidth()
	if err := t.parse(p, protocol.FlagNamespace, protocol.FlagCluster, protocol.FlagInstance, protocol.FlagUID, protocol.FlagURL); err != nil {
		return err
	}
	t.env.Layout, t.env.ProgressPort = agent.PodLayout(), agent.Port
	outcome, err := mover.RunBackup(ctx, t.env)
	return t.finish(p, outcome, err, protocol.ReasonCopyFailed)
}

// runVerify is the subcommand backup verify.
func runVerify(ctx context.Context, p cli.Process) error {
	t := newTransfer("backup verify --from URL [flags]", `Reads a whole backup and checks all of it: every checksum, every size, the tar stream. Nothing is written,
and neither Kubernetes nor MySQL is needed.

  mysql-operator backup verify --from 's3://bucket/shop/db/nightly-2026-11-21-03-00-00?region=eu-central-1' --credentials ./keys
  mysql-operator backup verify --from file:///mnt/backups/shop/db/nightly-2026-11-21-03-00-00 --identity-file key.txt

Exit status: 0 intact, 1 failed to read the backup (retry), 3 there is no complete, intact backup.`, p)
	t.destination(protocol.FlagFrom)
	t.identityFile()
	t.bandwidth()
	t.flags.StringVar(&t.env.Checksum, protocol.FlagChecksum, "", "checksum that the manifest must have, as in status.checksum")
	if err := t.parse(p, protocol.FlagFrom); err != nil {
		return err
	}
	outcome, err := mover.RunVerify(ctx, t.env)
	outcome.Message = "the backup is whole and intact"
	return t.finish(p, outcome, err, protocol.ReasonBackupCorrupt)
}

// runRestore is the subcommand restore. The Pod of a cluster that begins with a backup runs it, and so do users who have only the backup
// and this program.
func runRestore(ctx context.Context, p cli.Process) error {
	t := newTransfer("restore --from URL --into DIR [flags]", `Makes a data directory from a backup. The program checks all data before it moves it to DIR: DIR is never incomplete. At the start,
DIR must not exist or must be empty. Neither Kubernetes nor MySQL is needed.

  mysql-operator restore --from 's3://bucket/shop/db/nightly-2026-11-21-03-00-00?region=eu-central-1' --credentials ./keys --into /srv/mysql
  chown -R mysql: /srv/mysql && mysqld --user=mysql --datadir=/srv/mysql

mysqld must be of the backup's release series (8.4 for 8.4.x) and not be older. It recovers at its first start. The accounts and passwords are those
of the backup.

Exit status: 0 restored, 1 failed (retry), 3 refused (a retry does not help).`, p)
	t.destination(protocol.FlagFrom)
	t.flags.StringVar(&t.env.Into, "into", "", "data directory to make")
	t.identityFile()
	t.bandwidth()
	t.flags.StringVar(&t.env.Checksum, protocol.FlagChecksum, "", "checksum that the manifest must have, as in status.checksum")
	t.identity()
	t.flags.StringVar(&t.env.Layout.Volume, protocol.FlagVolume, "", "volume of a cluster's member, instead of --into (in Pods)")
	t.serverSettings()
	t.flags.BoolVar(&t.env.AdoptOnly, protocol.FlagAdoptOnly, false, "restore nothing: accept a volume that holds this backup already (in Pods)")
	if err := t.parse(p, protocol.FlagFrom); err != nil {
		return err
	}
	if (t.env.Into == "") == (t.env.Layout.Volume == "") {
		return cli.BadUsage("restore needs --into DIR")
	}
	if volume := t.env.Layout.Volume; volume != "" {
		t.env.Layout, t.env.ProgressPort = agent.PodLayout(), agent.Port
		t.env.Layout.Volume = volume
	}
	outcome, err := mover.RunRestore(ctx, t.env)
	return t.finish(p, outcome, err, protocol.ReasonRestoreFailed)
}

// runBackupDelete is the subcommand backup-delete.
func runBackupDelete(ctx context.Context, p cli.Process) error {
	t := newTransfer("backup-delete [flags]", `Deletes the data of one backup and nothing else (runs in the Pods of a MySQLBackupInstance that is deleted). It succeeds if there is no data.`, p)
	t.identity()
	t.destination(protocol.FlagURL)
	t.flags.BoolVar(&t.env.UnfinishedOnly, protocol.FlagUnfinished, false, "delete only what unfinished attempts left; a folder with a manifest is refused")
	if err := t.parse(p, protocol.FlagUID, protocol.FlagURL); err != nil {
		return err
	}
	outcome, err := mover.RunDelete(ctx, t.env)
	return t.finish(p, outcome, err, protocol.ReasonDestinationUnavailable)
}
