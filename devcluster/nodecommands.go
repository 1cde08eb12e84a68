package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster"
)

func status(ctx context.Context, args []string) error {
	set, dir := flags("status")
	if err := set.Parse(args); err != nil {
		return err
	}
	lines, err := cluster.Status(ctx, *dir)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "NAME\tSTATE\tPID\tAGE\tLOG")
	for _, l := range lines {
		pid, age := "-", "-"
		if l.PID != 0 {
			pid, age = fmt.Sprint(l.PID), time.Since(l.Since).Round(time.Second).String()
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", l.Name, l.State, pid, age, l.Log)
	}
	return table.Flush()
}

func load(ctx context.Context, args []string) error {
	set, dir := flags("load")
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() == 0 {
		return errors.New("load images: no archive given: use load IMAGE.tar [NAME…]")
	}
	_, err := cluster.Load(ctx, *dir, set.Arg(0), set.Args()[1:], os.Stdout)
	return err
}

func kubectl(ctx context.Context, args []string) error {
	set, dir := flags("kubectl")
	if err := set.Parse(args); err != nil {
		return err
	}
	command, environ, err := cluster.Kubectl(ctx, *dir, set.Args())
	if err != nil {
		return err
	}
	return become(command, environ)
}

func onNode(ctx context.Context, args []string) error {
	a, err := nodeArguments("on", args)
	if err != nil {
		return err
	}
	rest := a.rest
	if len(rest) > 0 && rest[0] == "--" {
		rest = rest[1:]
	}
	if len(rest) == 0 {
		rest = []string{"/bin/sh"}
	}
	command, err := cluster.Inside(ctx, a.dir, a.node, rest)
	if err != nil {
		return err
	}
	return become(command, os.Environ())
}

// become replaces this process, so that signals, terminal and exit code are those of the command.
func become(command, environ []string) error {
	path, err := exec.LookPath(command[0])
	if err != nil {
		return fmt.Errorf("run %s: %w", command[0], err)
	}
	if err := syscall.Exec(path, command, environ); err != nil {
		return fmt.Errorf("run %s: %w", command[0], err)
	}
	return nil
}

func killNode(ctx context.Context, args []string) error {
	a, err := nodeArguments("kill-node", args)
	if err != nil {
		return err
	}
	return cluster.KillNode(ctx, a.dir, a.node, os.Stdout)
}

func startNode(ctx context.Context, args []string) error {
	a, err := nodeArguments("start-node", args)
	if err != nil {
		return err
	}
	return cluster.StartNode(ctx, a.dir, a.node, os.Stdout)
}

func partitionNode(ctx context.Context, args []string) error {
	a, err := nodeArguments("partition-node", args)
	if err != nil {
		return err
	}
	return cluster.PartitionNode(ctx, a.dir, a.node, a.rest, os.Stdout)
}

func healNode(ctx context.Context, args []string) error {
	a, err := nodeArguments("heal-node", args)
	if err != nil {
		return err
	}
	return cluster.HealNode(ctx, a.dir, a.node, os.Stdout)
}

// arguments of a command on a node.
type arguments struct {
	dir, node string
	rest      []string
}

// nodeArguments reads "[--dir DIR] NODE REST…".
func nodeArguments(command string, args []string) (arguments, error) {
	set, dir := flags(command)
	if err := set.Parse(args); err != nil {
		return arguments{}, err
	}
	if set.NArg() == 0 {
		return arguments{}, fmt.Errorf("%s: no node given: name one, for example node-1", command)
	}
	return arguments{dir: *dir, node: set.Arg(0), rest: set.Args()[1:]}, nil
}
