package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"

	"github.com/mysql-operator/mysql-operator/test/bench/machine"
)

// place is the network of a Pod. It stays open when the process ends by which it was found.
type place struct {
	pod       string
	namespace *os.File
}

// networkOf finds the network of a Pod of this machine by a program that runs in it.
func networkOf(pod, program string) (place, error) {
	found, err := machine.Proc.Processes(pod, program)
	if err != nil {
		return place{}, err
	}
	if len(found) == 0 {
		return place{}, fmt.Errorf("find the network of Pod %s: no process %q of it runs on this machine", pod, program)
	}
	namespace, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", found[0]))
	if err != nil {
		return place{}, fmt.Errorf("find the network of Pod %s: %w", pod, err)
	}
	return place{pod, namespace}, nil
}

func (p place) close() { _ = p.namespace.Close() } // never fails: it is only read

// cut are packets that a Pod's network drops.
type cut struct {
	place place
	// drops are arguments of iptables, each the chain and what a packet must match.
	drops [][]string
}

// allIn and allOut are all packets that come into a Pod or leave it. What its containers send to each other passes.
func allIn() []string  { return []string{"INPUT", "!", "-i", "lo"} }
func allOut() []string { return []string{"OUTPUT", "!", "-o", "lo"} }

// between are all packets from and to an address.
func between(address string) [][]string {
	return [][]string{{"INPUT", "-s", address}, {"OUTPUT", "-d", address}}
}

// inflict makes the cuts, and returns what ends them.
func inflict(ctx context.Context, cuts []cut) (end func() error, err error) {
	end = func() error {
		failures := make([]error, 0, len(cuts))
		for _, one := range cuts {
			failures = append(failures, one.filter(context.WithoutCancel(ctx), "-D"))
		}
		for _, one := range cuts {
			one.place.close() // only now: several cuts may be of one place
		}
		return errors.Join(failures...)
	}
	for _, one := range cuts {
		if err := one.filter(ctx, "-I"); err != nil {
			return end, err
		}
	}
	return end, nil
}

// filter adds or deletes the rules.
func (c cut) filter(ctx context.Context, operation string) error {
	failures := make([]error, 0, len(c.drops))
	for _, drop := range c.drops {
		arguments := slices.Concat([]string{"--net=/proc/self/fd/3", "iptables", "-w", "10", operation}, drop, []string{"-j", "DROP"})
		command := exec.CommandContext(ctx, "nsenter", arguments...)
		command.ExtraFiles = []*os.File{c.place.namespace} // it becomes number 3
		if said, err := command.CombinedOutput(); err != nil {
			failures = append(failures, fmt.Errorf("filter packets of Pod %s: iptables %s %v: %w: %s", c.place.pod, operation, drop, err, said))
		}
	}
	return errors.Join(failures...)
}
