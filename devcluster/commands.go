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

// command is a command of devcluster, chosen by the first argument.
type command struct {
	name, arguments, does string
	run                   func(ctx context.Context, args []string) error
}

func commands() []command {
	return []command{
		{"up", "[--nodes N] [--control-plane-only]", "start a cluster, or complete an existing one", up},
		{"down", "", "stop the cluster and remove everything it created", down},
		{"status", "", "show the state of every program", status},
		{"load", "IMAGE.tar [NAME…]", "load a docker-archive's images on every node", load},
		{"kubeconfig", "", "print the path of the administrator's kubeconfig", kubeconfig},
		{"kubectl", "-- ARGUMENTS…", "run kubectl on the cluster", kubectl},
		{"kill-node", "NODE", "kill a node, as a power failure would", killNode},
		{"start-node", "NODE", "start a node that was killed", startNode},
		{"partition-node", "NODE [OTHER…]", "cut a node off from others, or from everything", partitionNode},
		{"heal-node", "NODE", "end a node's partition", healNode},
		{"on", "NODE -- COMMAND…", "run a command on a node", onNode},
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
	return fmt.Errorf("unknown command %q\n%s", args[0], usage(all))
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

// flags returns a flag set with the flags of every command.
func flags(name string) (*flag.FlagSet, *string) {
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	dir := set.String("dir", "", "the cluster's folder (default .dev in the repository)")
	return set, dir
}

func up(ctx context.Context, args []string) error {
	set, dir := flags("up")
	o := cluster.Options{Progress: os.Stdout}
	set.IntVar(&o.Nodes, "nodes", 0, "number of nodes (default: the current number, 1 for a new cluster)")
	set.BoolVar(&o.ControlPlaneOnly, "control-plane-only", false, "start no nodes; does not need root")
	set.BoolVar(&o.WithoutControllerManager, "without-controller-manager", false, "with --control-plane-only: do not start kube-controller-manager")
	set.BoolVar(&o.WithScheduler, "with-scheduler", false, "with --control-plane-only: start kube-scheduler, for simulated nodes")
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
