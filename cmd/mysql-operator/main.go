// Command mysql-operator runs MySQL clusters on Kubernetes. Without a subcommand, or as `mysql-operator run`, it is the operator. Its other
// subcommands print manifests for administrators, apply definitions by hand, and run the image's programs that make, check, restore and
// delete backups, and that connect to Apache Pulsar.
package main

import (
	"os"

	"github.com/mysql-operator/mysql-operator/cmd/internal/cli"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
)

func main() { os.Exit(program().Main()) }

func program() cli.Program {
	return cli.Program{
		Name: "mysql-operator", Default: "run", Commands: commands(),
		Intro: "mysql-operator runs MySQL clusters on Kubernetes.",
		Outro: "mysql-operator SUBCOMMAND --help lists the flags. All flags except those of consume and produce can also be set in the environment: --log-level as MYSQL_OPERATOR_LOG_LEVEL.",
	}
}

// commands returns the subcommands: one row and one file each.
func commands() []cli.Command {
	return []cli.Command{
		{Name: "run", Usage: "run [flags]", Run: runOperator, Summary: "reconcile the kinds (the default)"},
		{Name: "manifests", Usage: "manifests [crds|rbac|policy|operator|protection|all] [flags]", Run: runManifests, Summary: "print manifests: definitions, permissions, policies, Deployment, protection"},
		{Name: "crds", Usage: "crds plan|apply|status [flags]", Run: runCRDs, Summary: "show what would change in the definitions, apply them, or show their status"},
		{Name: "explain", Usage: "explain failover NAMESPACE/NAME [flags]", Run: runExplain, Summary: "show who would take over from a primary, in how long, losing what, or why no member may"},
		{Name: "version", Usage: "version", Run: runVersion, Summary: "print the version"},
		{Name: "restore", Usage: "restore --from URL --into DIR [flags]", Run: runCompanion(protocol.Program, protocol.CommandRestore), Summary: "make a data directory from a backup (also in the Pods of a MySQLCluster)"},
		{Name: "backup", Usage: "backup verify --from URL [flags]", Run: runCompanion(protocol.Program, protocol.CommandBackup), Summary: "check a whole backup; without verify, make one (in the Pods of a MySQLBackupInstance)"},
		{Name: "backup-delete", Usage: "backup-delete [flags]", Run: runCompanion(protocol.Program, protocol.CommandDelete), Summary: "delete a backup's data (runs in the Pods of a MySQLBackupInstance)"},
		{Name: "consume", Usage: "consume [flags]", Run: runCompanion(pulsarProgram, "consume"), Summary: "log the messages of a topic of Apache Pulsar (runs in the Pods of a PulsarConsumer)"},
		{Name: "produce", Usage: "produce [flags]", Run: runCompanion(pulsarProgram, "produce"), Summary: "send a message to a topic of Apache Pulsar"},
	}
}
