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
)

// Down ends the cluster in the folder and removes everything it made: its
// processes, what they mounted, its network, control groups and data. Images,
// binaries and the last logs stay. A folder without a cluster is fine.
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

// remove ends and removes everything. Each step works on what an earlier,
// interrupted run left.
func (f folder) remove(ctx context.Context, progress io.Writer) error {
	programs, err := f.keeper().List()
	if err != nil {
		return err
	}
	// Nodes are processes like the others; killing one takes all it runs along.
	// They go first: connections of theirs end cleanly while someone answers.
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
		fmt.Fprintf(progress, "ending %s\n", p.Name)
		if err := f.keeper().Stop(ctx, p.Name, 0); err != nil {
			return err
		}
	}
	if err := f.removeNetwork(ctx); err != nil {
		return err
	}
	for _, path := range []string{f.kubeconfig(), f.files()} {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove cluster: %w", err)
		}
	}
	return nil
}

// removeLogs clears away the logs of an earlier cluster in the folder.
func (f folder) removeLogs() error {
	for _, pattern := range []string{f.logs() + "/*.log", filepath.Join(string(f), "audit*.log")} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return fmt.Errorf("remove old logs: %w", err)
		}
		for _, file := range files {
			if err := os.Remove(file); err != nil {
				return fmt.Errorf("remove old logs: %w", err)
			}
		}
	}
	return nil
}
