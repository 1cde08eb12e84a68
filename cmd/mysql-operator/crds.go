package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/pflag"

	"github.com/mysql-operator/mysql-operator/cmd/internal/cli"
	"github.com/mysql-operator/mysql-operator/crds"
	"github.com/mysql-operator/mysql-operator/schema"
)

// crdsOptions are the flags of crds.
type crdsOptions struct {
	kinds      []string
	kubeconfig string
	timeout    time.Duration
	definitionLimits
	log cli.LogOptions
}

func (o *crdsOptions) flags() *pflag.FlagSet {
	flags := pflag.NewFlagSet("mysql-operator crds plan|apply|status", pflag.ContinueOnError)
	kindsFlag(flags, &o.kinds)
	kubeconfigFlag(flags, &o.kubeconfig)
	flags.DurationVar(&o.timeout, "timeout", crds.DefaultTimeout, "how long to wait for the API server, and until definitions are in force")
	o.register(flags)
	o.log.Register(flags)
	return flags
}

// The exit statuses of crds plan are those of diff.
const (
	exitChanges = 1
	exitRefused = 2
)

// runCRDs shows what the operator would do with the definitions (plan), does it (apply), or shows their state (status).
func runCRDs(ctx context.Context, p cli.Process) error {
	o := crdsOptions{}
	words, err := cli.Parse(o.flags(), p)
	if err != nil {
		return err
	}
	if len(words) != 1 {
		return cli.BadUsage("crds needs one of plan, apply, status")
	}
	kinds, err := schema.Select(o.kinds)
	if err != nil {
		return cli.BadUsage("%w", err)
	}
	defined, err := loadDefinitions(kinds)
	if err != nil {
		return err
	}
	installer, err := o.installer(p)
	if err != nil {
		return err
	}
	switch words[0] {
	case "plan":
		return printPlan(ctx, p, installer, defined)
	case "apply":
		return tellApply(ctx, p, installer, defined)
	case "status":
		return printStatus(ctx, p, installer, defined)
	default:
		return cli.BadUsage("crds has the subcommands plan, apply and status, not %q", words[0])
	}
}

func (o crdsOptions) installer(p cli.Process) (crds.Installer, error) {
	log, err := o.log.LoggerForAll(p.Err)
	if err != nil {
		return crds.Installer{}, err
	}
	cluster, err := connect(o.kubeconfig)
	if err != nil {
		return crds.Installer{}, err
	}
	installer, err := newInstaller(cluster, o.definitionLimits, nil)
	installer.Timeout, installer.Log = o.timeout, log
	return installer, err
}

func tellApply(ctx context.Context, p cli.Process, installer crds.Installer, defined []crds.Definition) error {
	results, err := installer.Ensure(ctx, defined)
	return errors.Join(err, printSteps(p, results))
}

// printPlan prints what the operator would do, and what would change. It exits as diff does: 0 nothing, 1 changes, 2 refused or failed.
func printPlan(ctx context.Context, p cli.Process, installer crds.Installer, defined []crds.Definition) error {
	results, err := installer.Plan(ctx, defined)
	if err != nil {
		return &cli.StatusError{Status: exitRefused, Cause: err}
	}
	if err := printSteps(p, results); err != nil {
		return err
	}
	status := 0
	for _, result := range results {
		switch result.Plan.Decision().Action {
		case crds.Refuse:
			status = exitRefused
		case crds.Keep:
			continue
		case crds.Create, crds.Update, crds.Wait, crds.Mark, crds.CarryOver, crds.Migrate:
			status = max(status, exitChanges)
		}
		if err := printChanges(p, result); err != nil {
			return err
		}
	}
	if status != 0 {
		return &cli.StatusError{Status: status}
	}
	return nil
}

func printSteps(p cli.Process, results []crds.Result) error {
	table := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "DEFINITION\tACTION\tREASON\tMESSAGE")
	for _, result := range results {
		for _, step := range result.Plan.Steps {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", result.Definition.Name(), step.Action, step.Reason, step.Message)
		}
	}
	return table.Flush()
}

// printChanges prints which objects an update would harm, and what it changes in the definition.
func printChanges(p cli.Process, result crds.Result) error {
	fmt.Fprintf(p.Out, "\n%s\n", result.Definition.Name())
	if harm := result.Plan.Harm; harm != nil {
		fmt.Fprintf(p.Out, "  %d objects checked, %d would be harmed\n", harm.Seen, harm.Harmed)
		for _, finding := range harm.Findings {
			fmt.Fprintf(p.Out, "    %s\n", finding)
		}
	}
	if result.Plan.Target == nil {
		return nil
	}
	lines, err := crds.Diff(result.Existing, result.Plan.Target)
	for _, line := range lines {
		fmt.Fprintf(p.Out, "  %s\n", line)
	}
	return err
}

func printStatus(ctx context.Context, p cli.Process, installer crds.Installer, defined []crds.Definition) error {
	states, err := installer.Status(ctx, defined)
	table := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "DEFINITION\tPRESENT\tMANAGER\tSCHEMA-VERSION\tOURS\tVERSIONS\tSTORED\tOBJECTS\tSERVED\tPLAN\tMESSAGE")
	for _, state := range states {
		decision := state.Plan.Decision()
		fmt.Fprintf(table, "%s\t%t\t%s\t%s\t%d\t%s\t%s\t%s\t%t\t%s\t%s\n", state.Definition.Name(), state.Present, state.Manager, state.Version, state.Definition.Version,
			state.Versions, state.StoredVersions, state.Objects, state.Served, decision.Action, decision.Message)
	}
	return errors.Join(err, table.Flush())
}
