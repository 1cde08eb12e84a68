package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const cgroupRoot = "/sys/fs/cgroup"

// removeWait bounds the wait until the kernel allows the removal of a control group whose processes have just died.
const removeWait = 10 * time.Second

// CgroupV1 reports whether control groups are of version 1, or of both versions with the controllers on version 1.
func CgroupV1() bool {
	_, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers"))
	return err != nil
}

// hierarchies returns the roots of all mounted control-group hierarchies, from the content of /proc/mounts: one for version 2, several for
// version 1, and both if the versions are mixed.
func hierarchies(mounts string) []string {
	var roots []string
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		if len(fields) > 2 && (fields[2] == "cgroup" || fields[2] == "cgroup2") {
			roots = append(roots, fields[1])
		}
	}
	return roots
}

func mountedHierarchies() ([]string, error) {
	mounts, err := os.ReadFile("/proc/mounts")
	if err != nil {
		return nil, fmt.Errorf("find control groups: %w", err)
	}
	list := hierarchies(string(mounts))
	if len(list) == 0 {
		return nil, errors.New("find control groups: none are mounted under " + cgroupRoot)
	}
	return list, nil
}

// EnsureCgroup creates the control group in every hierarchy and enables its controllers: kubelet requires that its root exists.
func EnsureCgroup(group string) error {
	roots, err := mountedHierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		if err := ensureIn(root, group); err != nil {
			return fmt.Errorf("make control group %s: %w", group, err)
		}
	}
	return nil
}

func ensureIn(root, group string) error {
	dir := root
	if !CgroupV1() {
		if err := vacate(root); err != nil {
			return err
		}
		if err := delegate(root); err != nil {
			return err
		}
	}
	for name := range strings.SplitSeq(strings.Trim(group, "/"), "/") {
		parent := dir
		dir = filepath.Join(dir, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if CgroupV1() {
			if err := inheritCPUs(parent, dir); err != nil {
				return err
			}
			continue
		}
		if err := delegate(dir); err != nil {
			return err
		}
	}
	return nil
}

// inheritCPUs fills in the missing values of a new version 1 cpuset group: without CPUs and memory nodes no process can run in it
// (cgroups(7), cpuset).
func inheritCPUs(parent, dir string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		have, err := os.ReadFile(filepath.Join(dir, file))
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another controller's hierarchy
		}
		if err != nil {
			return err
		}
		if strings.TrimSpace(string(have)) != "" {
			continue
		}
		value, err := os.ReadFile(filepath.Join(parent, file))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, file), value, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// delegate enables all controllers of a version 2 group for its children.
func delegate(dir string) error {
	available, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for controller := range strings.FieldsSeq(string(available)) {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0o644); err != nil {
			return fmt.Errorf("enable controller %s in %s: %w", controller, dir, err)
		}
	}
	return nil
}

// vacate moves the processes of a version 2 group into a child. A group below the real root, such as the root of a container, may not have
// processes and delegate controllers at the same time (cgroups(7), "no internal processes").
func vacate(root string) error {
	if _, err := os.Stat(filepath.Join(root, "cgroup.type")); errors.Is(err, fs.ErrNotExist) {
		return nil // the real root
	}
	leaf := filepath.Join(root, "init")
	if err := os.MkdirAll(leaf, 0o755); err != nil {
		return err
	}
	content, err := os.ReadFile(filepath.Join(root, "cgroup.procs"))
	if err != nil {
		return err
	}
	for pid := range strings.FieldsSeq(string(content)) {
		err := os.WriteFile(filepath.Join(leaf, "cgroup.procs"), []byte(pid), 0o644)
		if _, gone := os.Stat("/proc/" + pid); err != nil && gone == nil {
			return fmt.Errorf("move process %s out of %s: %w", pid, root, err)
		}
	}
	return nil
}

// RemoveCgroup removes the control group and all groups below it from every hierarchy. Their processes must have ended.
func RemoveCgroup(ctx context.Context, group string) error {
	roots, err := mountedHierarchies()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, removeWait)
	defer cancel()
	for _, root := range roots {
		dir := filepath.Join(root, group)
		for err := removeTree(dir); err != nil; err = removeTree(dir) {
			select {
			case <-ctx.Done():
				return fmt.Errorf("remove control group %s: %w", dir, err)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return nil
}

// removeTree removes the groups from the leaves up. The kernel removes the files in them.
func removeTree(top string) error {
	var dirs []string
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, dir := range slices.Backward(dirs) {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
