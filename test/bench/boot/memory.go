package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/mysql-operator/mysql-operator/test/bench/figure"
	"github.com/mysql-operator/mysql-operator/test/bench/machine"
	"github.com/mysql-operator/mysql-operator/test/bench/testbed"
)

const (
	// samples, a second apart, make one figure: the median of what /proc says.
	samples = 30
	// warmUp is how long an operator with nothing to do gets before its memory is read.
	warmUp   = 10 * time.Second
	mebibyte = 1 << 20
)

// measureMemory runs the operator with clusters that are Ready and left alone.
func (b bench) measureMemory(ctx context.Context, o options, out io.Writer) (err error) {
	operator, err := b.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, operator.Stop()) }()
	if err := b.awaitReady(ctx, operator); err != nil {
		return err
	}
	without, err := sample(ctx, operator, warmUp)
	if err != nil {
		return err
	}
	members, err := startStandIns(ctx, b.Admin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, members.stop()) }()
	if err := b.makeClusters(ctx, o); err != nil {
		return err
	}
	if err := b.awaitClusters(ctx, o, members); err != nil {
		return fmt.Errorf("%w%s", err, operator.Tail())
	}
	with, err := sample(ctx, operator, o.settle)
	if err != nil {
		return err
	}
	printMemory(out, fmt.Sprintf("%d clusters of %d", o.clusters, o.members), without, with)
	return nil
}

func (b bench) awaitReady(ctx context.Context, operator *testbed.Process) error {
	ctx, cancel := context.WithTimeoutCause(ctx, testbed.BootLimit, fmt.Errorf("not ready within %s", testbed.BootLimit))
	defer cancel()
	return watchSaid(ctx, operator, &boot{})
}

// usage is what an operator takes.
type usage struct {
	machine.Memory
	// heap, idle and stacks are Go's own numbers, from the operator's metrics.
	heap, idle, stacks float64
}

// sample lets the operator rest and then reads its memory, the median of some seconds.
func sample(ctx context.Context, operator *testbed.Process, rest time.Duration) (usage, error) {
	if err := pause(ctx, rest); err != nil {
		return usage{}, err
	}
	var resident, anonymous []float64
	var seen usage
	for range samples {
		memory, err := machine.Proc.Memory(operator.PID())
		if err != nil {
			return seen, fmt.Errorf("%w%s", err, operator.Tail())
		}
		resident, anonymous = append(resident, float64(memory.Resident)), append(anonymous, float64(memory.Anonymous))
		seen.Peak = memory.Peak
		if err := pause(ctx, time.Second); err != nil {
			return seen, err
		}
	}
	seen.Resident, seen.Anonymous = uint64(figure.Percentile(resident, 50)), uint64(figure.Percentile(anonymous, 50))
	return seen, operator.ReadMetrics(ctx, map[string]*float64{
		"go_memstats_heap_inuse_bytes": &seen.heap, "go_memstats_heap_idle_bytes": &seen.idle, "go_memstats_stack_inuse_bytes": &seen.stacks,
	})
}

func printMemory(out io.Writer, load string, without, with usage) {
	size := func(bytes float64) string { return fmt.Sprintf("%.1f", bytes/mebibyte) }
	row := func(name string, of usage) []string {
		files := float64(of.Resident - of.Anonymous)
		return []string{name, size(float64(of.Resident)), size(float64(of.Anonymous)), size(files), size(float64(of.Peak)), size(of.heap), size(of.idle), size(of.stacks)}
	}
	fmt.Fprintf(out, "\nthe operator's memory at rest (MiB; median of %d s)\n", samples)
	figure.Table(out, [][]string{
		{"with", "resident", "of it its own", "of it files (the binary)", "most ever resident", "Go heap in use", "heap idle", "stacks"},
		row("no clusters", without), row(load, with),
	})
	fmt.Fprintln(out)
	figure.Print(out, "operator_rss", float64(with.Resident)/mebibyte, "MiB")
	figure.Print(out, "operator_rss_anonymous", float64(with.Anonymous)/mebibyte, "MiB")
	figure.Print(out, "operator_rss_peak", float64(with.Peak)/mebibyte, "MiB")
	figure.Print(out, "operator_rss_without_clusters", float64(without.Resident)/mebibyte, "MiB")
}

func pause(ctx context.Context, length time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(length):
		return nil
	}
}
