package main

import (
	"context"
	"strings"

	"github.com/spf13/pflag"
)

// runInitCommand is the subcommand init.
func runInitCommand(_ context.Context, p process) error {
	if len(p.arguments) > 0 {
		return badUsage("init takes no argument %q", strings.Join(p.arguments, " "))
	}
	return runInit()
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
