package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
	"github.com/mysql-operator/mysql-operator/test/bench/machine"
)

// partition drops all packets from and to a Pod, and returns what ends that.
func partition(ctx context.Context, pod string) (mend func() error, err error) {
	found, err := machine.Proc.Processes(pod, supervisor.Program)
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("cut the network of Pod %s off: it has %d supervisors on this machine", pod, len(found))
	}
	namespace := []string{"--target", strconv.Itoa(found[0]), "--net"}
	mend = func() error { return filter(context.WithoutCancel(ctx), namespace, "-D") }
	if err := filter(ctx, namespace, "-I"); err != nil {
		return nil, errors.Join(err, mend())
	}
	return mend, nil
}

// filter adds or deletes the rules, in both directions.
func filter(ctx context.Context, namespace []string, operation string) error {
	var failures []error
	for chain, way := range map[string]string{"INPUT": "-i", "OUTPUT": "-o"} {
		command := []string{"iptables", "-w", "10", operation, chain, "!", way, "lo", "-j", "DROP"}
		if said, err := exec.CommandContext(ctx, "nsenter", slices.Concat(namespace, command)...).CombinedOutput(); err != nil {
			failures = append(failures, fmt.Errorf("nsenter %v: %w: %s", command, err, said))
		}
	}
	return errors.Join(failures...)
}
