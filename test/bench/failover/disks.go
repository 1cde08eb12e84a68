package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster"
)

const (
	// diskSize is the size of a member's file system in MiB: a new mysqld needs about 200.
	diskSize = 1536
	// nodeLimit bounds a command on a node.
	nodeLimit = time.Minute
)

// disk is a member's volume in a file system of its own, which can fail alone. A volume of the dev cluster is a folder of the machine.
type disk struct{ claim, node, folder string }

// makeDisks makes the members' volumes, each on a node of its own as far as there are nodes.
func (b *bench) makeDisks(ctx context.Context) error {
	names, err := b.nodes(ctx)
	if err != nil {
		return err
	}
	for ordinal := range members {
		one := disk{claim: fmt.Sprintf("data-%s-%d", b.cluster, ordinal), node: names[ordinal%len(names)]}
		one.folder = "/var/lib/" + b.namespace + "-" + one.claim
		b.disks = append(b.disks, one)
		if err := b.makeDisk(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) makeDisk(ctx context.Context, one disk) error {
	image := one.folder + ".ext4"
	for _, command := range [][]string{
		{"mkdir", "-p", one.folder},
		{"truncate", "--size", strconv.Itoa(diskSize) + "M", image},
		{"mkfs.ext4", "-q", "-m", "0", image},
		{"mount", "-o", "loop", image, one.folder},
		{"mkdir", "--mode", "0777", one.folder + "/volume"},
	} {
		if _, err := b.onNode(ctx, one.node, command...); err != nil {
			return err
		}
	}
	_, err := b.kubectl.Apply(ctx, fmt.Sprintf(`apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s-%[2]s}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: %[1]s
  claimRef: {namespace: %[1]s, name: %[2]s}
  local: {path: %[3]s/volume}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%[4]s]}]}]}}
`, b.namespace, one.claim, one.folder, one.node))
	return err
}

// removeDisks removes what makeDisks made. The Pods have ended.
func (b *bench) removeDisks(ctx context.Context) error {
	failures := make([]error, 0, 3*len(b.disks))
	for _, one := range b.disks {
		_, err := b.kubectl.Run(ctx, "delete", "pv", b.namespace+"-"+one.claim, "--ignore-not-found", "--wait=false")
		_, unmounted := b.onNode(ctx, one.node, "umount", one.folder)
		_, removed := b.onNode(ctx, one.node, "rm", "-r", one.folder, one.folder+".ext4")
		failures = append(failures, err, unmounted, removed)
	}
	return errors.Join(failures...)
}

// onNode runs a command on a node.
func (b *bench) onNode(ctx context.Context, node string, command ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, nodeLimit)
	defer cancel()
	inside, err := cluster.Inside(ctx, filepath.Dir(b.kubectl.Config), node, command)
	if err != nil {
		return "", err
	}
	output, err := exec.CommandContext(ctx, inside[0], inside[1:]...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("on %s: %s: %w: %s", node, strings.Join(command, " "), err, output)
	}
	return string(output), nil
}

// diskOf returns a member's disk.
func (b *bench) diskOf(member string) (disk, error) {
	at := slices.IndexFunc(b.disks, func(one disk) bool { return one.claim == "data-"+member })
	if at < 0 {
		return disk{}, fmt.Errorf("look for the disk of %s: the benchmark made none", member)
	}
	return b.disks[at], nil
}

// hangDisk makes writes to a member's volume hang.
func (b *bench) hangDisk(ctx context.Context, pod string) (struck, error) {
	one, err := b.diskOf(pod)
	if err != nil {
		return struck{end: endsByItself}, err
	}
	at := time.Now()
	_, err = b.onNode(ctx, one.node, "fsfreeze", "--freeze", one.folder)
	return struck{at, func() error { return b.unfreeze(ctx, one) }}, err
}

// unfreeze lets writes to a disk continue.
func (b *bench) unfreeze(ctx context.Context, one disk) error {
	_, err := b.onNode(context.WithoutCancel(ctx), one.node, "fsfreeze", "--unfreeze", one.folder)
	return err
}

// slowDisk makes writes to a member's volume take up to 0.4 s, for 20 s: less than a volume that hangs.
func (b *bench) slowDisk(ctx context.Context, pod string) (struck, error) {
	one, err := b.diskOf(pod)
	if err != nil {
		return struck{end: endsByItself}, err
	}
	at := time.Now()
	_, err = b.onNode(ctx, one.node, "sh", "-ec", fmt.Sprintf(`
for pause in $(seq 40); do
	fsfreeze --freeze %[1]s
	sleep 0.4
	fsfreeze --unfreeze %[1]s
	sleep 0.1
done`, one.folder))
	if err != nil {
		_ = b.unfreeze(ctx, one) // it was not frozen, perhaps
	}
	return struck{at, endsByItself}, err
}

// fillDisk takes what is free so many times, with so long a pause: an agent gives mysqld a reserve when its volume is full.
const (
	fillTimes = 20
	fillPause = "0.25"
)

// fillDisk leaves nothing free on a member's volume. It returns the moment at which it has taken everything for the last time.
func (b *bench) fillDisk(ctx context.Context, pod string) (struck, error) {
	one, err := b.diskOf(pod)
	if err != nil {
		return struck{end: endsByItself}, err
	}
	taken := one.folder + "/taken"
	hit := struck{time.Now(), func() error {
		_, err := b.onNode(context.WithoutCancel(ctx), one.node, "rm", "-r", taken)
		return err
	}}
	if _, err := b.onNode(ctx, one.node, "mkdir", "-p", taken); err != nil {
		return hit, err
	}
	for range fillTimes {
		took, err := b.takeFree(ctx, one, fmt.Sprintf("%s/%d", taken, time.Now().UnixNano()))
		if err != nil {
			return hit, err
		}
		if took {
			hit.at = time.Now()
		}
	}
	return hit, nil
}

// takeFree takes all that is free. took is false if that is nothing.
func (b *bench) takeFree(ctx context.Context, one disk, file string) (took bool, err error) {
	if _, err := b.onNode(ctx, one.node, "sh", "-c", "dd if=/dev/zero of="+file+" bs=16k 2> /dev/null; sleep "+fillPause); err != nil {
		return false, err
	}
	size, err := b.onNode(ctx, one.node, "stat", "--format=%s", file)
	return strings.TrimSpace(size) != "0", err
}
