package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster/daemon"
	"github.com/mysql-operator/mysql-operator/devcluster/cluster/filelock"
	"github.com/mysql-operator/mysql-operator/devcluster/cluster/machine"
)

// Down stops the cluster in the folder and removes everything it created: processes, mounts, network, control groups and data. Images,
// binaries and the last logs stay. A folder without a cluster is no error.
func Down(ctx context.Context, dir string, progress io.Writer) error {
	o, err := Options{Dir: dir, Progress: progress}.complete()
	if err != nil {
		return err
	}
	f := folder(o.Dir)
	if _, err := os.Stat(f.files()); errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(o.Progress, "no cluster in %s\n", o.Dir)
		return nil
	}
	unlock, err := filelock.Acquire(ctx, f.lock(), func() { fmt.Fprintln(o.Progress, "waiting for another run on this cluster to finish") })
	if err != nil {
		return fmt.Errorf("take cluster down: %w", err)
	}
	defer unlock()
	return f.remove(ctx, o.Progress)
}

// remove stops and removes everything. Each step also works on the remains of an earlier, interrupted run.
func (f folder) remove(ctx context.Context, progress io.Writer) error {
	programs, err := f.keeper().List()
	if err != nil {
		return err
	}
	// Nodes are processes like the others; the death of a node ends all its processes. Nodes are stopped first, so that their connections
	// to the control plane can end cleanly.
	isNode := func(p daemon.Process) bool { return strings.HasPrefix(p.Name, "node-") }
	slices.SortStableFunc(programs, func(a, b daemon.Process) int {
		switch {
		case isNode(a) == isNode(b):
			return 0
		case isNode(a):
			return -1
		}
		return 1
	})
	for _, p := range programs {
		fmt.Fprintf(progress, "stopping %s\n", p.Name)
		if err := f.keeper().Stop(ctx, p.Name, 0); err != nil {
			return err
		}
	}
	if err := f.removeNetworks(ctx, progress); err != nil {
		return err
	}
	// A node's mounts end with the node. All other mounts were made by other programs.
	mounts, err := machine.MountsBelow(f.files())
	if err != nil {
		return err
	}
	if len(mounts) > 0 {
		return fmt.Errorf("remove cluster: a file system is mounted at %s: unmount it, then take the cluster down again", strings.Join(mounts, ", "))
	}
	for _, path := range []string{f.kubeconfig(), f.files()} {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove cluster: %w", err)
		}
	}
	return nil
}

// removeLogs removes the logs of an earlier cluster in the folder.
func (f folder) removeLogs() error {
	for dir, pattern := range map[string]string{f.logs(): "*.log", string(f): "audit*.log"} {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove old logs: %w", err)
		}
		for _, entry := range entries {
			if matches, err := filepath.Match(pattern, entry.Name()); err != nil || !matches {
				continue
			}
			if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil {
				return fmt.Errorf("remove old logs: %w", err)
			}
		}
	}
	return nil
}
