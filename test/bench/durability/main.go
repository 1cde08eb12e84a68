// Command durability measures what it costs to keep commits on several machines, and on their disks. It runs real mysqlds without
// Kubernetes, which must be on this machine, and leaves nothing there. docs/benchmarks.md says what each figure means.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mysql-operator/mysql-operator/test/bench/bare"
	"github.com/mysql-operator/mysql-operator/test/bench/figure"
	"github.com/mysql-operator/mysql-operator/test/bench/machine"
	"github.com/mysql-operator/mysql-operator/test/program"
)

type options struct {
	rootfs          string
	clients, rounds int
	// window is for how long clients write each time, saturated for how long before the backlog is measured.
	window, saturated time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.rootfs, "rootfs", ".dev/images/mysql-rootfs", "where mysqld is")
	flag.IntVar(&o.clients, "clients", 16, "how many clients write")
	flag.IntVar(&o.rounds, "rounds", 3, "how often each kind of commit is measured")
	flag.DurationVar(&o.window, "window", 10*time.Second, "for how long clients write each time")
	flag.DurationVar(&o.saturated, "saturated", 20*time.Second, "for how long clients write before the backlog of replicas is measured")
	flag.Parse()
	os.Exit(program.Run(context.Background(), "bench-durability", func(ctx context.Context) error { return run(ctx, o, os.Stdout) }))
}

func run(ctx context.Context, o options, out io.Writer) (err error) {
	if err := machine.Proc.Introduce(ctx, out); err != nil {
		return err
	}
	group, err := bare.NewGroup(ctx, o.rootfs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, group.Remove()) }()
	if err := commits(ctx, group, o, out); err != nil {
		return err
	}
	if err := apply(ctx, group, o, out); err != nil {
		return err
	}
	return backlogs(ctx, group, o, out)
}

// backlogs measures what a replica still has to apply after clients have written as fast as they can, if nothing bounds it, and with flow
// control.
func backlogs(ctx context.Context, group *bare.Group, o options, out io.Writer) error {
	for _, kind := range []struct {
		name         string
		isControlled bool
	}{{"unbounded", false}, {"bounded", true}} {
		backlog, rate, err := group.Backlog(ctx, o.clients, o.saturated, kind.isControlled)
		if err != nil {
			return err
		}
		figure.Print(out, "backlog_"+kind.name, backlog.Seconds(), "s")
		figure.Print(out, "commits_"+kind.name, rate, "/s")
	}
	return nil
}

// unflushed is sync_relay_log's default: the operating system flushes relay logs when it likes.
const unflushed = 10_000

// commits measures how many commits clients get a second. The kinds take turns, so that other load meets all of them.
func commits(ctx context.Context, group *bare.Group, o options, out io.Writer) error {
	kinds := []struct {
		name               string
		acks, syncRelayLog int
	}{{"commits_asynchronous", 0, unflushed}, {"commits_semisync", 1, unflushed}, {"commits_semisync_power", 1, 1}}
	rates := make([][]float64, len(kinds))
	for range o.rounds {
		for i, kind := range kinds {
			if err := group.Acks(ctx, kind.acks, kind.syncRelayLog); err != nil {
				return fmt.Errorf("%s: %w", kind.name, err)
			}
			count, took, err := group.Write(ctx, o.clients, o.window)
			if err != nil {
				return fmt.Errorf("%s: %w", kind.name, err)
			}
			rates[i] = append(rates[i], float64(count)/took.Seconds())
			if err := group.Same(ctx); err != nil {
				return err
			}
		}
	}
	for i, kind := range kinds {
		figure.Print(out, kind.name, figure.Percentile(rates[i], 50), "/s")
	}
	figure.Print(out, "semisync_price", figure.Percentile(rates[1], 50)/figure.Percentile(rates[0], 50), "ratio")
	figure.Print(out, "power_price", figure.Percentile(rates[2], 50)/figure.Percentile(rates[1], 50), "ratio")
	return nil
}

// apply measures how fast a replica applies what it has received, and how much faster if it does not flush each commit.
func apply(ctx context.Context, group *bare.Group, o options, out io.Writer) error {
	if err := group.Acks(ctx, 1, unflushed); err != nil {
		return err
	}
	var strict, relaxed []float64
	for range o.rounds {
		for _, kind := range []struct {
			rates *[]float64
			flush bool
		}{{&strict, true}, {&relaxed, false}} {
			rate, err := group.ApplyRate(ctx, o.clients, o.window, kind.flush)
			if err != nil {
				return err
			}
			*kind.rates = append(*kind.rates, rate)
		}
	}
	figure.Print(out, "applied_strict", figure.Percentile(strict, 50), "/s")
	figure.Print(out, "applied_relaxed", figure.Percentile(relaxed, 50), "/s")
	figure.Print(out, "relaxed_apply_gain", figure.Percentile(relaxed, 50)/figure.Percentile(strict, 50), "ratio")
	return nil
}
