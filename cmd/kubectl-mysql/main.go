// Command kubectl-mysql is a plugin of kubectl. `kubectl mysql status` shows MySQL clusters. `kubectl mysql explain` shows who would take
// over from a primary. It uses the permissions of the user.
package main

import (
	"os"

	"github.com/mysql-operator/mysql-operator/cmd/internal/cli"
)

func main() { os.Exit(program().Main()) }

func program() cli.Program {
	return cli.Program{
		Name: "kubectl-mysql", Intro: "kubectl-mysql shows MySQL clusters. kubectl finds it on the PATH, as kubectl mysql.",
		Outro: "kubectl mysql SUBCOMMAND --help lists the flags.",
		Commands: []cli.Command{
			{Name: "status", Usage: "status [NAME] [flags]", Run: runStatus, Summary: "show the members of a cluster, or of all in the namespace"},
			{Name: "explain", Usage: "explain NAME [flags]", Run: runExplain, Summary: "show who would take over from the primary, or why no member may"},
		},
	}
}
