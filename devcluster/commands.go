package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster"
)

// command is one word after "devcluster".
type command struct {
	name, arguments, does string
	run                   func(ctx context.Context, args []string) error
}

func commands() []command {
	return []command{
		{"up", "[--nodes N] [--control-plane-only]", "start a cluster, or complete one that is there", up},
		{"down", "", "end the cluster and remove all it made", down},
		{"status", "", "show what runs and what does not", status},
		{"load", "IMAGE.tar [NAME…]", "bring a docker-archive's images to every node", load},
		{"kubeconfig", "", "print where the administrator's kubeconfig is", kubeconfig},
		{"kubectl", "-- ARGUMENTS…", "run kubectl on the cluster", kubectl},
		{"kill-node", "NODE", "pull a node's plug", killNode},
		{"start-node", "NODE", "boot a node that was killed", startNode},
		{"partition-node", "NODE [OTHER…]", "cut a node off from others, or from everything", partitionNode},
		{"heal-node", "NODE", "end a node's partition", healNode},
		{"on", "NODE -- COMMAND…", "run a command inside a node, as if on it", onNode},
	}
}

func run(ctx context.Context, args []string) error {
	all := commands()
	if len(args) == 0 || slices.Contains([]string{"help", "-h", "-help", "--help"}, args[0]) {
		fmt.Fprint(os.Stdout, usage(all))
		return nil
	}
	for _, c := range all {
		if c.name == args[0] {
			return c.run(ctx, args[1:])
		}
	}
	return fmt.Errorf("no command %q\n%s", args[0], usage(all))
}

func usage(all []command) string {
	var b strings.Builder
	b.WriteString("usage: go run ./devcluster COMMAND [--dir DIR] …\n\n")
	for _, c := range all {
		fmt.Fprintf(&b, "  %-52s %s\n", c.name+" "+c.arguments, c.does)
	}
	b.WriteString("\nDIR is the cluster's folder, by default .dev in the repository.\n")
	return b.String()
}

// flags is a flag set with what every command has.
func flags(name string) (*flag.FlagSet, *string) {
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	dir := set.String("dir", "", "the cluster's folder (default .dev in the repository)")
	return set, dir
}

func up(ctx context.Context, args []string) error {
	set, dir := flags("up")
	o := cluster.Options{Progress: os.Stdout}
	set.IntVar(&o.Nodes, "nodes", 0, "how many nodes (default: as many as there are, 1 for a new cluster)")
	set.BoolVar(&o.ControlPlaneOnly, "control-plane-only", false, "no nodes; needs no root")
	set.BoolVar(&o.WithoutControllerManager, "without-controller-manager", false, "with --control-plane-only: leave kube-controller-manager out")
	set.BoolVar(&o.WithScheduler, "with-scheduler", false, "with --control-plane-only: add kube-scheduler, for simulated nodes")
	set.BoolVar(&o.WithoutAuditLog, "without-audit-log", false, "do not write DIR/audit.log")
	if err := set.Parse(args); err != nil {
		return err
	}
	o.Dir = *dir
	_, err := cluster.Up(ctx, o)
	return err
}

func down(ctx context.Context, args []string) error {
	set, dir := flags("down")
	if err := set.Parse(args); err != nil {
		return err
	}
	return cluster.Down(ctx, *dir, os.Stdout)
}

func kubeconfig(_ context.Context, args []string) error {
	set, dir := flags("kubeconfig")
	if err := set.Parse(args); err != nil {
		return err
	}
	path, err := cluster.Kubeconfig(*dir)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, path)
	return nil
}
