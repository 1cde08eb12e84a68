package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/pflag"

	"github.com/mysql-operator/mysql-operator/crds"
	"github.com/mysql-operator/mysql-operator/schema"
)

// crdsOptions are the flags of crds.
type crdsOptions struct {
	kinds      []string
	kubeconfig string
	timeout    time.Duration
	log        logOptions
}

func (o *crdsOptions) flags() *pflag.FlagSet {
	flags := pflag.NewFlagSet("mysql-operator crds plan|apply|status", pflag.ContinueOnError)
	kindsFlag(flags, &o.kinds)
	kubeconfigFlag(flags, &o.kubeconfig)
	flags.DurationVar(&o.timeout, "timeout", crds.DefaultTimeout, "how long to wait for the API server, and for definitions to be served")
	o.log.register(flags)
	return flags
}

// runCRDs shows what the operator would do about the definitions (plan), does it (apply), or shows what is there (status).
func runCRDs(ctx context.Context, p process) error {
	o := crdsOptions{}
	words, err := parse(o.flags(), p)
	if err != nil {
		return err
	}
	if len(words) != 1 {
		return badUsage("crds needs one of plan, apply, status")
	}
	kinds, err := schema.Select(o.kinds)
	if err != nil {
		return &usageError{err}
	}
	definitions, err := crds.Load(kinds)
	if err != nil {
		return err
	}
	installer, err := o.installer(p)
	if err != nil {
		return err
	}
	switch words[0] {
	case "plan":
		return tell(p, installer.Plan)(ctx, definitions)
	case "apply":
		return tell(p, installer.Ensure)(ctx, definitions)
	case "status":
		return tellStatus(ctx, p, installer, definitions)
	default:
		return badUsage("crds knows plan, apply and status, not %q", words[0])
	}
}

func (o crdsOptions) installer(p process) (crds.Installer, error) {
	log, err := o.log.logger(p.err)
	if err != nil {
		return crds.Installer{}, err
	}
	cluster, err := connect(o.kubeconfig)
	if err != nil {
		return crds.Installer{}, err
	}
	api, err := crds.NewAPI(cluster.rest)
	if err != nil {
		return crds.Installer{}, err
	}
	return crds.Installer{API: api, Timeout: o.timeout, Log: log}, nil
}

// tell wraps a call of the installer so that its results are printed as a table.
func tell(p process, call func(context.Context, []crds.Definition) ([]crds.Result, error)) func(context.Context, []crds.Definition) error {
	return func(ctx context.Context, definitions []crds.Definition) error {
		results, err := call(ctx, definitions)
		table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "DEFINITION\tACTION\tREASON\tMESSAGE")
		for _, result := range results {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", result.Definition.Name(), result.Decision.Action, result.Decision.Reason, result.Decision.Message)
		}
		return errors.Join(err, table.Flush())
	}
}

func tellStatus(ctx context.Context, p process, installer crds.Installer, definitions []crds.Definition) error {
	states, err := installer.Status(ctx, definitions)
	table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "DEFINITION\tPRESENT\tOWNER\tSCHEMA-VERSION\tOURS\tSTORED\tSERVED\tMESSAGE")
	for _, state := range states {
		fmt.Fprintf(table, "%s\t%t\t%s\t%s\t%d\t%s\t%t\t%s\n", state.Definition.Name(), state.Present, state.Owner, state.Version, state.Definition.Version, state.StoredVersions, state.Served, state.Message)
	}
	return errors.Join(err, table.Flush())
}
