// Command boot measures how fast the operator makes Kubernetes understand MySQL, and how much memory it takes. It builds the binary that is
// shipped, starts a control plane of its own in a temporary folder (no root, no nodes), and runs the binary on it as a process, under the
// service account and with the rights that users give it. docs/benchmarks.md says what each figure means.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"k8s.io/client-go/discovery"

	"github.com/mysql-operator/mysql-operator/schema"
	"github.com/mysql-operator/mysql-operator/test/bench/figure"
	"github.com/mysql-operator/mysql-operator/test/bench/machine"
	"github.com/mysql-operator/mysql-operator/test/bench/testbed"
	"github.com/mysql-operator/mysql-operator/test/program"
)

// options say how much to measure.
type options struct {
	boots, clusters, members int
	settle                   time.Duration
	environment              []string
}

// bench is what the operator is measured on.
type bench struct {
	*testbed.Bed
	kinds     []schema.Kind
	discovery discovery.DiscoveryInterface
}

func main() {
	var o options
	flag.IntVar(&o.boots, "boots", 20, "boots without the definitions, and as many with them unchanged; 0 leaves both out")
	flag.IntVar(&o.clusters, "clusters", 20, "MySQLClusters while the memory is measured; 0 leaves that out")
	flag.IntVar(&o.members, "members", 3, "members of each of them")
	flag.DurationVar(&o.settle, "settle", time.Minute, "how long the operator must have had nothing new to do before its memory is read")
	flag.Func("env", "a NAME=VALUE for the operator's environment, to try settings of the Go runtime; may be repeated", func(setting string) error {
		o.environment = append(o.environment, setting)
		return nil
	})
	flag.Parse()
	os.Exit(program.Run(context.Background(), "bench-boot", func(ctx context.Context) error { return run(ctx, o, os.Stdout) }))
}

func run(ctx context.Context, o options, out io.Writer) (err error) {
	if o.boots < 0 || o.clusters < 0 || o.members < 1 {
		return errors.New("read flags: boots and clusters cannot be negative, and a cluster has a member at least")
	}
	bed, err := testbed.Up(ctx, testbed.Options{Environment: o.environment})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bed.Down(context.WithoutCancel(ctx))) }()
	found, err := discovery.NewDiscoveryClientForConfig(bed.Config)
	if err != nil {
		return fmt.Errorf("make a client for discovery: %w", err)
	}
	bench := bench{Bed: bed, kinds: schema.Kinds(), discovery: found}
	if err := machine.Proc.Introduce(ctx, out); err != nil {
		return err
	}
	if o.boots > 0 {
		if err := bench.measureBoots(ctx, o.boots, out); err != nil {
			return err
		}
	}
	if o.clusters > 0 {
		return bench.measureMemory(ctx, o, out)
	}
	return nil
}

// measureBoots boots on a cluster that does not know the definitions, and then on one that has them as they are.
func (b bench) measureBoots(ctx context.Context, count int, out io.Writer) error {
	var fresh, unchanged []boot
	for round := range count {
		if err := b.removeDefinitions(ctx); err != nil {
			return err
		}
		one, err := b.bootOnce(ctx)
		if err != nil {
			return fmt.Errorf("boot %d of %d without definitions: %w", round+1, count, err)
		}
		fresh = append(fresh, one)
	}
	for round := range count {
		one, err := b.bootOnce(ctx)
		if err != nil {
			return fmt.Errorf("boot %d of %d with the definitions unchanged: %w", round+1, count, err)
		}
		unchanged = append(unchanged, one)
	}
	fmt.Fprintf(out, "\n%d boots each, process start until … (ms)\n", count)
	head := [][]string{{"cluster", "moment", "p50", "p95", "max"}}
	figure.Table(out, slices.Concat(head, rowsOf("without definitions", fresh), rowsOf("definitions unchanged", unchanged)))
	fmt.Fprintln(out)
	spreadOf(fresh, boot.allServed).Print(out, "boot_to_served", "ms")
	spreadOf(unchanged, boot.allServed).Print(out, "boot_unchanged", "ms")
	return nil
}

// boot is when things happened, from the start of the process.
type boot struct {
	// served is when a client saw the last kind listed, in discovery and by a request for its resources.
	served time.Duration
	// said is when the operator itself said in /readyz that the definitions are served.
	said time.Duration
	// ready is when /readyz said yes to everything: rights, and caches filled, too.
	ready time.Duration
}

// allServed is when both a client and the operator know it. Definitions that were there before the boot are served throughout: then it is
// when the operator has made sure that they are the right ones.
func (b boot) allServed() time.Duration { return max(b.served, b.said) }

func (b boot) seenByClient() time.Duration { return b.served }
func (b boot) fullyReady() time.Duration   { return b.ready }

func rowsOf(cluster string, boots []boot) [][]string {
	moments := []struct {
		name string
		at   func(boot) time.Duration
	}{
		{"a client is served all kinds", boot.seenByClient},
		{"… and the operator says so", boot.allServed},
		{"/readyz is ok (rights, caches)", boot.fullyReady},
	}
	rows := make([][]string, 0, len(moments))
	for _, moment := range moments {
		spread := spreadOf(boots, moment.at)
		rows = append(rows, []string{cluster, moment.name, fmt.Sprintf("%.0f", spread.P50), fmt.Sprintf("%.0f", spread.P95), fmt.Sprintf("%.0f", spread.Max)})
	}
	return rows
}

func spreadOf(boots []boot, at func(boot) time.Duration) figure.Spread {
	durations := make([]time.Duration, 0, len(boots))
	for _, one := range boots {
		durations = append(durations, at(one))
	}
	return figure.Of(figure.Milliseconds(durations))
}
