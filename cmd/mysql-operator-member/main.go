// Command mysql-operator-member is the program that the operator runs in the Pods of a MySQLCluster. It prepares a member, is its agent,
// and determines the version of a MySQL image.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"

	"github.com/mysql-operator/mysql-operator/cmd/internal/cli"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
)

func main() { os.Exit(program().Main()) }

func program() cli.Program {
	return cli.Program{
		Name:  agent.Program,
		Intro: agent.Program + " runs in the Pods of a MySQLCluster.",
		Outro: agent.Program + " SUBCOMMAND --help lists the flags.",
		Commands: []cli.Command{
			{Name: agent.CommandInit, Usage: "init", Summary: "prepare a member", Run: runInit},
			{Name: agent.CommandAgent, Usage: "agent [flags]", Summary: "run the agent of a member", Run: runAgent},
			{Name: agent.CommandVersion, Usage: "server-version [flags]", Summary: "ask a MySQL image for its version", Run: runVersion},
		},
	}
}

// runInit is the subcommand init: the first init container of a member's Pod.
func runInit(_ context.Context, p cli.Process) error {
	if err := cli.ParseAll(flagSet(agent.CommandInit), p); err != nil {
		return err
	}
	who, err := memberIdentity()
	if err != nil {
		return err
	}
	layout := agent.PodLayout()
	if who.Given, err = resourceLimits(); err != nil {
		return err
	}
	if who.Given.Volume, err = layout.VolumeSize(); err != nil {
		// The volume can hold data anyway. mysqld's own default sizes remain.
		fmt.Fprintf(p.Err, "%s: the size of the volume is not known: %v\n", agent.Program, err)
	}
	who.Tell = p.Err
	if err := agent.InstallSupervisor(agent.ProgramDir); err != nil {
		return err
	}
	return agent.Prepare(layout, who)
}

// runAgent is the subcommand agent: the agent's container in a member's Pod. It ends when the context ends.
func runAgent(ctx context.Context, p cli.Process) error {
	var logs cli.LogOptions
	flags := flagSet(agent.CommandAgent)
	logs.Register(flags)
	if err := cli.ParseAll(flags, p); err != nil {
		return err
	}
	log, err := logs.Logger(p.Err)
	if err != nil {
		return err
	}
	return serve(ctx, log)
}

func serve(ctx context.Context, log logr.Logger) error {
	life, err := agent.Life()
	if err != nil {
		log.Info("cannot notice a failure of the machine", "error", err.Error())
	}
	who, err := memberIdentity()
	if err != nil {
		return err
	}
	sidecar, err := agent.New(agent.PodLayout(), who, life, log)
	if err != nil {
		return err
	}
	has, err := resourceLimits()
	if err != nil {
		return err
	}
	sidecar.SetMemoryBudget(has.Memory)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() {
		served <- sidecar.Serve(ctx, ":"+strconv.Itoa(agent.Port))
		stop()
	}()
	if err := sidecar.Run(ctx); err != nil {
		return err
	}
	return <-served
}

// runVersion is the subcommand server-version. Both containers of the Pod that determines the version of a cluster's image run it: first
// the container of the operator's image, then that of the cluster's image.
func runVersion(ctx context.Context, p cli.Process) error {
	var install, report, settings string
	flags := flagSet(agent.CommandVersion)
	flags.StringVar(&install, "install", "", "folder to copy this program to")
	flags.StringVar(&report, "report", "", "file to write the version of this image's mysqld to")
	flags.StringVar(&settings, "settings", "", "my.cnf for this image's mysqld to check as well; the report includes the result")
	if err := cli.ParseAll(flags, p); err != nil {
		return err
	}
	switch {
	case (install == "") == (report == ""):
		return cli.BadUsage("%s takes --install or --report", flags.Name())
	case install != "":
		return agent.InstallProbe(install, os.Getenv(agent.EnvProbeSettings))
	default:
		return agent.Probe(ctx, report, settings)
	}
}

func flagSet(subcommand string) *pflag.FlagSet {
	return pflag.NewFlagSet(agent.Program+" "+subcommand, pflag.ContinueOnError)
}
