// Command mysql-operator runs MySQL clusters on Kubernetes. Alone, or as `mysql-operator run`, it is the operator; its other subcommands
// print what an administrator needs, look after the definitions by hand, and are what runs inside the members' Pods.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
)

func main() {
	useLittleMemory(os.Getenv, gcPercent)
	boundMemory(os.Getenv, os.DirFS(controlGroup))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := execute(ctx, process{arguments: os.Args[1:], environment: os.Getenv, out: os.Stdout, err: os.Stderr})
	stop()
	os.Exit(status)
}

// process is what a subcommand knows of the process it runs in.
type process struct {
	arguments   []string
	environment func(name string) string
	out, err    io.Writer
}

// command is a subcommand.
type command struct {
	name, usage, summary string
	run                  func(ctx context.Context, p process) error
}

// commands returns the subcommands: one row and one file each.
func commands() []command {
	return []command{
		{"run", "run [flags]", "reconcile the kinds; this is what happens without a subcommand", runOperator},
		{"manifests", "manifests [crds|rbac|policy|operator|protection|all] [flags]", "print what an administrator applies: definitions, rights, policies, Deployment, protection", runManifests},
		{"crds", "crds plan|apply|status [flags]", "look at the definitions in the cluster, or apply them by hand", runCRDs},
		{"version", "version", "print the version", runVersion},
		{"init", "init", "prepare a member (runs in the Pods of a MySQLCluster)", runInitCommand},
		{"agent", "agent [flags]", "look after a member (runs in the Pods of a MySQLCluster)", runAgentCommand},
		{"server-version", "server-version [flags]", "ask a MySQL image for its version (runs in the Pods of a MySQLCluster)", runServerVersion},
		{"restore", "restore --from URL --into DIR [flags]", "make a data directory from a backup, by hand (and in the Pods of a MySQLCluster)", runRestore},
		{"backup", "backup verify --from URL [flags]", "check a whole backup, by hand; without verify, make one (in the Pods of a MySQLBackupInstance)", runBackup},
		{"backup-delete", "backup-delete [flags]", "delete a backup's data (runs in the Pods of a MySQLBackupInstance)", runBackupDelete},
		{"consume", "consume [flags]", "log the messages of a topic of Apache Pulsar (runs in the Pods of a PulsarConsumer)", runPulsar("consume")},
		{"produce", "produce [flags]", "send a message to a topic of Apache Pulsar, to try a PulsarConsumer", runPulsar("produce")},
	}
}

// Exit statuses: 0 is success, exitFailure anything that went wrong, exitUsage a command line that makes no sense.
const (
	exitFailure = 1
	exitUsage   = 2
)

// execute runs the subcommand the arguments name and returns the exit status.
func execute(ctx context.Context, p process) int {
	name := "run"
	if len(p.arguments) > 0 && !strings.HasPrefix(p.arguments[0], "-") {
		name, p.arguments = p.arguments[0], p.arguments[1:]
	}
	if name == "help" {
		fmt.Fprint(p.out, overview())
		return 0
	}
	for _, one := range commands() {
		if one.name == name {
			return statusOf(one.run(ctx, p), p.err)
		}
	}
	fmt.Fprintf(p.err, "mysql-operator: no subcommand %q\n\n%s", name, overview())
	return exitUsage
}

// statusError ends the process with a status of its own, and with a message if there is a cause.
type statusError struct {
	status int
	cause  error
}

func (e *statusError) Error() string {
	if e.cause == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.cause.Error()
}

func (e *statusError) Unwrap() error { return e.cause }

func statusOf(err error, out io.Writer) int {
	own := (*statusError)(nil)
	switch {
	case errors.As(err, &own):
		if own.cause != nil {
			fmt.Fprintf(out, "mysql-operator: %v\n", own.cause)
		}
		return own.status
	case err == nil, isHelp(err):
		return 0
	case isUsage(err):
		fmt.Fprintf(out, "mysql-operator: %v\n", err)
		return exitUsage
	default:
		fmt.Fprintf(out, "mysql-operator: %v\n", err)
		return exitFailure
	}
}

// overview is the text of help.
func overview() string {
	var text strings.Builder
	text.WriteString("mysql-operator runs MySQL clusters on Kubernetes.\n\n")
	for _, one := range commands() {
		fmt.Fprintf(&text, "  %-60s %s\n", one.usage, one.summary)
	}
	text.WriteString("\nmysql-operator SUBCOMMAND --help lists the flags. Each flag but those of consume and produce is also read from the environment: --log-level from MYSQL_OPERATOR_LOG_LEVEL.\n")
	return text.String()
}

func isHelp(err error) bool {
	return errors.Is(err, pflag.ErrHelp)
}
