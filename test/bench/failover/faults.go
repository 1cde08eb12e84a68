package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
	"github.com/mysql-operator/mysql-operator/test/bench/machine"
)

// The faults.
const (
	faultKill      = "kill"
	faultStop      = "stop"
	faultFreeze    = "freeze"
	faultPartition = "partition"
	faultDelete    = "delete"
)

const mysqldProgram = "mysqld"

// parseFaults reads a list of faults.
func parseFaults(list string) ([]string, error) {
	known := []string{faultKill, faultStop, faultFreeze, faultPartition, faultDelete}
	found := strings.Split(list, ",")
	for i, one := range found {
		if !slices.Contains(known, one) {
			return nil, fmt.Errorf("read flags: -faults has %q; there are %s", one, strings.Join(known, ", "))
		}
		if slices.Contains(found[:i], one) {
			return nil, fmt.Errorf("read flags: -faults has %q twice", one)
		}
	}
	return found, nil
}

// struck is a fault that was inflicted at a moment. end ends what does not end by itself.
type struck struct {
	at  time.Time
	end func() error
}

// strike inflicts a fault on a member.
func (b *bench) strike(ctx context.Context, fault, pod string) (struck, error) {
	none := func() error { return nil }
	switch fault {
	case faultKill:
		at, err := signal(pod, syscall.SIGKILL, mysqldProgram)
		return struck{at, none}, err
	case faultStop: // the member itself, or its Pod, must end it
		at, err := signal(pod, syscall.SIGSTOP, mysqldProgram)
		return struck{at, none}, err
	case faultFreeze:
		programs := []string{supervisor.Program, mysqldProgram, agent.Program}
		at, err := signal(pod, syscall.SIGSTOP, programs...)
		return struck{at, func() error { return thaw(pod, programs) }}, err
	case faultPartition:
		at := time.Now()
		mend, err := partition(ctx, pod)
		return struck{at, mend}, err
	default:
		at := time.Now()
		_, err := b.kubectl.Run(ctx, "delete", "pod", pod, "--namespace", b.namespace, "--force", "--grace-period=0", "--wait=false")
		return struck{at, none}, err
	}
}

// signal sends a signal to programs of a Pod, in their order. It returns the moment just before the first signal: to find the processes
// takes some milliseconds.
func signal(pod string, number syscall.Signal, programs ...string) (time.Time, error) {
	var all []int
	for _, program := range programs {
		found, err := machine.Proc.Processes(pod, program)
		if err != nil {
			return time.Time{}, err
		}
		if len(found) == 0 {
			return time.Time{}, fmt.Errorf("send %s: no process %q of Pod %s runs on this machine", number, program, pod)
		}
		all = append(all, found...)
	}
	at := time.Now()
	for _, process := range all {
		if err := syscall.Kill(process, number); err != nil {
			return at, fmt.Errorf("send %s to process %d of Pod %s: %w", number, process, pod, err)
		}
	}
	return at, nil
}

// thaw lets the programs of a Pod continue. Some may have ended: the supervisor, once it runs, ends mysqld.
func thaw(pod string, programs []string) error {
	var failures []error
	for _, program := range programs {
		found, err := machine.Proc.Processes(pod, program)
		failures = append(failures, err)
		for _, process := range found {
			if err := syscall.Kill(process, syscall.SIGCONT); err != nil && !errors.Is(err, syscall.ESRCH) {
				failures = append(failures, fmt.Errorf("let process %d of Pod %s continue: %w", process, pod, err))
			}
		}
	}
	return errors.Join(failures...)
}
