// Package machine prepares this machine for a cluster with nodes: missing programs, network, control groups. Pure functions return the
// commands to run.
package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// commandLimit bounds a command whose caller sets no deadline.
	commandLimit = 5 * time.Minute
	// installLimit bounds the installation of packages, over a slow network.
	installLimit = 15 * time.Minute
	// interruptLimit bounds how long an interrupted command may take to end cleanly.
	interruptLimit = 2 * time.Minute
)

const (
	iptables   = "iptables"
	cniPackage = "containernetworking-plugins"
)

// program is a program that nodes need, and its Debian package.
type program struct {
	name, pkg string
	folders   []string // where to look in addition to PATH
}

// cniFolders returns the folders where distributions install the CNI plugins.
func cniFolders() []string { return []string{"/usr/lib/cni", "/opt/cni/bin"} }

func programs() []program {
	return []program{
		{name: "containerd", pkg: "containerd"},
		{name: "ctr", pkg: "containerd"},
		{name: "runc", pkg: "runc"},
		{name: iptables, pkg: iptables},
		{name: "ip", pkg: "iproute2"},
		{name: "nsenter", pkg: "util-linux"},
		{name: "mount", pkg: "mount"},
		{name: "ptp", pkg: cniPackage, folders: cniFolders()},
		{name: "host-local", pkg: cniPackage, folders: cniFolders()},
		{name: "portmap", pkg: cniPackage, folders: cniFolders()},
		{name: "loopback", pkg: cniPackage, folders: cniFolders()},
	}
}

// missing returns the programs that find does not find, and their packages without duplicates.
func missing(find func(program) bool) (names, packages []string) {
	for _, p := range programs() {
		if find(p) {
			continue
		}
		names = append(names, p.name)
		if !slices.Contains(packages, p.pkg) {
			packages = append(packages, p.pkg)
		}
	}
	return names, packages
}

func installed(p program) bool {
	for _, dir := range p.folders {
		if _, err := os.Stat(filepath.Join(dir, p.name)); err == nil {
			return true
		}
	}
	_, err := exec.LookPath(p.name)
	return err == nil
}

// Install installs the Debian packages of missing programs, and reports which. Without apt-get, the error says what is missing.
func Install(ctx context.Context, progress io.Writer) error {
	names, packages := missing(installed)
	if len(names) == 0 {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("install the programs that nodes need: %s missing, and there is no apt-get: install them (the Debian packages are %s)",
			strings.Join(names, ", "), strings.Join(packages, " "))
	}
	fmt.Fprintf(progress, "installing %s, for %s\n", strings.Join(packages, " "), strings.Join(names, ", "))
	ctx, cancel := context.WithTimeout(ctx, installLimit)
	defer cancel()
	install := append([]string{"install", "-y", "--no-install-recommends"}, packages...)
	if err := aptGet(ctx, install...); err != nil {
		// The package lists may be missing or out of date.
		if err := aptGet(ctx, "update"); err != nil {
			return fmt.Errorf("install the programs that nodes need: %w", err)
		}
		if err := aptGet(ctx, install...); err != nil {
			return fmt.Errorf("install the programs that nodes need: %w", err)
		}
	}
	if names, packages = missing(installed); len(names) > 0 {
		return fmt.Errorf("install the programs that nodes need: %s still missing after installing %s: is /usr/sbin on PATH?", strings.Join(names, ", "), strings.Join(packages, " "))
	}
	return nil
}

// aptGet runs apt-get, and waits while another apt-get runs: another clone's, or the daily update of a machine that has just started. Apt
// can wait for the lock of its packages, but not for that of its lists.
func aptGet(ctx context.Context, args ...string) error {
	for {
		err := Run(ctx, append([]string{"apt-get"}, args...)...)
		if err == nil || !strings.Contains(err.Error(), "Could not get lock") {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Second):
		}
	}
}

// CNIFolder returns the folder with the CNI plugins.
func CNIFolder() string {
	for _, dir := range cniFolders() {
		if _, err := os.Stat(filepath.Join(dir, "ptp")); err == nil {
			return dir
		}
	}
	return cniFolders()[0]
}

// Run runs a program to its end. If it fails, the error contains its output.
func Run(ctx context.Context, args ...string) error {
	_, err := Output(ctx, "", args...)
	return err
}

// Output runs a program with the input and returns its output.
func Output(ctx context.Context, input string, args ...string) (string, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, commandLimit)
		defer cancel()
	}
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Stdin = strings.NewReader(input)
	command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	// The command is interrupted, not killed: a killed dpkg leaves the machine in a state where a user must repair it before any
	// installation.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = interruptLimit
	var out, failure bytes.Buffer
	command.Stdout, command.Stderr = &out, &failure
	err := command.Run()
	if err == nil {
		return out.String(), nil
	}
	said := strings.TrimSpace(failure.String())
	if said == "" {
		said = strings.TrimSpace(out.String())
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return "", fmt.Errorf("run %s: timed out: %s", strings.Join(args, " "), said)
	}
	return "", fmt.Errorf("run %s: %w: %s", strings.Join(args, " "), err, said)
}
