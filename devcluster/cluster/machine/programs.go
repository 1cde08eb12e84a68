// Package machine does to this machine what a cluster with nodes needs: missing
// programs, network, control groups. What it runs is decided by pure functions.
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
	// commandLimit bounds a command unless its caller does.
	commandLimit = 5 * time.Minute
	// installLimit bounds the installation of packages, over a slow network.
	installLimit = 15 * time.Minute
	// interruptLimit bounds how long an interrupted command may take to end in order.
	interruptLimit = 2 * time.Minute
)

const (
	iptables   = "iptables"
	cniPackage = "containernetworking-plugins"
)

// program is one that nodes need, and the Debian package that has it.
type program struct {
	name, pkg string
	folders   []string // where else than on PATH to look
}

// cniFolders are where distributions put the CNI plugins.
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

// missing lists programs that the look-up does not find, and the packages that
// have them, each once.
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

// Install gets the programs that are missing from the Debian packages, telling
// which. Without apt-get it says what is missing.
func Install(ctx context.Context, progress io.Writer) error {
	names, packages := missing(installed)
	if len(names) == 0 {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("install what nodes need: %s missing and no apt-get here to install them: install them (Debian calls the packages %s)",
			strings.Join(names, ", "), strings.Join(packages, " "))
	}
	fmt.Fprintf(progress, "installing %s, for %s\n", strings.Join(packages, " "), strings.Join(names, ", "))
	ctx, cancel := context.WithTimeout(ctx, installLimit)
	defer cancel()
	install := append([]string{"install", "-y", "--no-install-recommends"}, packages...)
	if err := aptGet(ctx, install...); err != nil {
		// The package lists may never have been fetched, or be out of date.
		if err := aptGet(ctx, "update"); err != nil {
			return fmt.Errorf("install what nodes need: %w", err)
		}
		if err := aptGet(ctx, install...); err != nil {
			return fmt.Errorf("install what nodes need: %w", err)
		}
	}
	if names, packages = missing(installed); len(names) > 0 {
		return fmt.Errorf("install what nodes need: %s still missing after installing %s: is /usr/sbin on PATH?", strings.Join(names, ", "), strings.Join(packages, " "))
	}
	return nil
}

// aptGet runs apt-get, waiting while another one is at work: a second clone's, or
// on a machine that has just started its own daily update. Apt can wait for the
// lock of its packages, but not for that of its lists.
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

// CNIFolder is the folder with the CNI plugins.
func CNIFolder() string {
	for _, dir := range cniFolders() {
		if _, err := os.Stat(filepath.Join(dir, "ptp")); err == nil {
			return dir
		}
	}
	return cniFolders()[0]
}

// Run runs a program to its end; what it printed is in the error if it fails.
func Run(ctx context.Context, args ...string) error {
	_, err := Output(ctx, "", args...)
	return err
}

// Output runs a program with the input and returns what it printed.
func Output(ctx context.Context, input string, args ...string) (string, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, commandLimit)
		defer cancel()
	}
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Stdin = strings.NewReader(input)
	command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	// Asked rather than killed: dpkg, cut off in the middle, leaves a machine on
	// which nothing can be installed until someone has repaired that.
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
		return "", fmt.Errorf("run %s: not done in time: %s", strings.Join(args, " "), said)
	}
	return "", fmt.Errorf("run %s: %w: %s", strings.Join(args, " "), err, said)
}
