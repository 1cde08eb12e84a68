package main

import (
	"context"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
)

// runInitCommand is the subcommand init.
func runInitCommand(_ context.Context, p process) error {
	if len(p.arguments) > 0 {
		return badUsage("init takes no argument %q", strings.Join(p.arguments, " "))
	}
	return runInit(p.err)
}

// runAgentCommand is the subcommand agent.
func runAgentCommand(ctx context.Context, p process) error {
	o := logOptions{}
	flags := pflag.NewFlagSet("mysql-operator agent", pflag.ContinueOnError)
	o.register(flags)
	rest, err := parse(flags, p)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return badUsage("agent takes no argument %q", strings.Join(rest, " "))
	}
	log, err := o.logger(p.err)
	if err != nil {
		return err
	}
	return runAgent(ctx, log)
}

// runServerVersion is the subcommand server-version: two containers of the Pod that asks a cluster's image, of our image and then of that one.
func runServerVersion(ctx context.Context, p process) error {
	var install, report, settings string
	flags := pflag.NewFlagSet("mysql-operator server-version", pflag.ContinueOnError)
	flags.StringVar(&install, "install", "", "folder to put this program into")
	flags.StringVar(&report, "report", "", "file to write the version of this image's mysqld to")
	flags.StringVar(&settings, "settings", "", "my.cnf that this image's mysqld is to check, too; the report says whether it takes it")
	rest, err := parse(flags, p)
	switch {
	case err != nil:
		return err
	case len(rest) > 0:
		return badUsage("server-version takes no argument %q", strings.Join(rest, " "))
	case (install == "") == (report == ""):
		return badUsage("server-version takes --install or --report")
	case install != "":
		return agent.InstallProbe(install, os.Getenv(transfer.EnvSettings))
	default:
		return agent.Probe(ctx, report, settings)
	}
}
