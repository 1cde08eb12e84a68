// Command mysql-operator-backup makes, checks, restores and deletes backups. It runs in the Pods of Jobs. mysql-operator executes it for
// its subcommands backup, restore and backup-delete, so that the operator is not linked with the SDKs of object stores.
package main

import (
	"os"

	"github.com/mysql-operator/mysql-operator/cmd/internal/cli"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
)

// caller is the program that users run. Usage and errors name it.
const caller = "mysql-operator"

// version is set when the binary is linked (-X main.version=…).
var version string

func main() { os.Exit(program().Main()) }

func program() cli.Program {
	return cli.Program{
		Name:  caller,
		Intro: protocol.Program + " makes, checks, restores and deletes backups.",
		Outro: caller + " SUBCOMMAND --help lists the flags.",
		Commands: []cli.Command{
			{Name: protocol.CommandRestore, Usage: "restore --from URL --into DIR [flags]", Summary: "make a data directory from a backup", Run: runRestore},
			{Name: protocol.CommandBackup, Usage: "backup [verify --from URL] [flags]", Summary: "make a backup, or check a whole one", Run: runBackup},
			{Name: protocol.CommandDelete, Usage: "backup-delete [flags]", Summary: "delete a backup's data", Run: runBackupDelete},
		},
	}
}
