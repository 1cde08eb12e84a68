// Command scale measures what many MySQLClusters cost the operator. It builds the binary that is shipped, and starts a control plane in a
// temporary folder (no root, no nodes). It runs the binary on it as a process, under the service account and with the permissions that
// users give it. Stand-ins make the Pods of the StatefulSets and, where clusters must become Ready, answer for their agents.
// docs/benchmarks.md says what each figure means.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/mysql-operator/mysql-operator/test/bench/figure"
	"github.com/mysql-operator/mysql-operator/test/bench/machine"
	"github.com/mysql-operator/mysql-operator/test/bench/testbed"
	"github.com/mysql-operator/mysql-operator/test/program"
)

// options say how much to measure.
type options struct {
	// sizes are how many clusters there are, one round each.
	sizes   []int
	members int
	// settle is how long the operator is left alone before it is measured, rest for how long it is measured.
	settle, rest time.Duration
	// ready and unready choose the rounds.
	ready, unready bool
	environment    []string
}

func main() {
	o := options{sizes: []int{20, 200, 1000}}
	flag.Func("clusters", "how many MySQLClusters, one round for each number (default 20,200,1000; 5000 takes its time)", func(text string) error {
		o.sizes = nil
		for part := range strings.SplitSeq(text, ",") {
			size, err := strconv.Atoi(part)
			if err != nil || size < 1 {
				return fmt.Errorf("%q is no number of clusters", part)
			}
			o.sizes = append(o.sizes, size)
		}
		return nil
	})
	flag.IntVar(&o.members, "members", 3, "members of each of them")
	flag.DurationVar(&o.settle, "settle", 90*time.Second, "how long the operator is left alone before it is measured at rest")
	flag.DurationVar(&o.rest, "rest", 5*time.Minute, "for how long it is measured at rest")
	flag.BoolVar(&o.ready, "ready", true, "measure clusters that are Ready")
	flag.BoolVar(&o.unready, "unready", true, "measure clusters whose Pods never start")
	flag.Func("env", "a NAME=VALUE for the operator's environment; may be repeated", func(setting string) error {
		o.environment = append(o.environment, setting)
		return nil
	})
	flag.Parse()
	os.Exit(program.Run(context.Background(), "bench-scale", func(ctx context.Context) error { return run(ctx, o, os.Stdout) }))
}

func run(ctx context.Context, o options, out io.Writer) error {
	if o.members < 1 {
		return errors.New("read flags: a cluster has a member at least")
	}
	if err := machine.Proc.Introduce(ctx, out); err != nil {
		return err
	}
	all := make([]measured, 0, 2*len(o.sizes))
	binary := &builder{}
	defer binary.remove()
	defer func() { // also of the rounds before one that failed
		printTable(out, all)
		printRatios(out, all)
	}()
	for _, unready := range []bool{true, false} {
		if unready && !o.unready || !unready && !o.ready {
			continue
		}
		for _, size := range o.sizes {
			m, err := binary.round(ctx, o, out, size, unready)
			if err != nil {
				return fmt.Errorf("%s: %w", m.name(), err)
			}
			all = append(all, m)
			m.print(out)
		}
	}
	return nil
}

// builder builds the operator once for all rounds.
type builder struct{ path, folder string }

func (b *builder) remove() {
	if b.folder != "" {
		_ = os.RemoveAll(b.folder) // a folder in the system's place for such
	}
}

// up starts a control plane, and keeps the operator that was built for the next one.
func (b *builder) up(ctx context.Context, o options) (*testbed.Bed, error) {
	bed, err := testbed.Up(ctx, testbed.Options{Binary: b.path, Environment: o.environment, WithoutControllers: true})
	if err != nil || b.path != "" {
		return bed, err
	}
	if b.folder, err = os.MkdirTemp("", "bench-scale-"); err != nil {
		return nil, errors.Join(err, bed.Down(ctx))
	}
	b.path = b.folder + "/mysql-operator"
	content, err := os.ReadFile(bed.Binary)
	if err == nil {
		err = os.WriteFile(b.path, content, 0o700)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("keep the operator that was built: %w", err), bed.Down(ctx))
	}
	return bed, nil
}

func printTable(out io.Writer, all []measured) {
	rows := make([][]string, 0, 1+len(all))
	rows = append(rows, []string{
		"clusters", "MiB of its own", "CPU at rest", "requests/s", "writes/s", "passes/s", "storm", "no conditions p99", "restart", "CPU a pass", "pass p50", "p99",
	})
	for _, m := range all {
		kind := "Ready"
		if m.unready {
			kind = "not Ready"
		}
		rows = append(rows, []string{
			fmt.Sprintf("%d %s", m.clusters, kind), fmt.Sprintf("%.1f", m.anonymous/mebibyte), fmt.Sprintf("%.2f %%", m.cpu),
			fmt.Sprintf("%.2f", m.requests), fmt.Sprintf("%.2f", m.writes), fmt.Sprintf("%.2f", m.passes),
			m.storm.Round(100 * time.Millisecond).String(), fmt.Sprintf("%.2f s", figure.Percentile(figure.Seconds(m.told), 99)), m.restart.Round(100 * time.Millisecond).String(),
			m.cost.Round(time.Microsecond).String(), fmt.Sprintf("%.2f ms", m.p50), fmt.Sprintf("%.2f ms", m.p99),
		})
	}
	fmt.Fprintln(out, "\nwhat so many clusters cost the operator")
	figure.Table(out, rows)
	fmt.Fprintln(out)
}

// printRatios tells how much more a pass costs among the most clusters than among the fewest.
func printRatios(out io.Writer, all []measured) {
	for _, unready := range []bool{true, false} {
		var few, many *measured
		for i := range all {
			if m := &all[i]; m.unready == unready {
				if few == nil || m.clusters < few.clusters {
					few = m
				}
				if many == nil || m.clusters > many.clusters {
					many = m
				}
			}
		}
		if few == nil || few == many || few.cost == 0 {
			continue
		}
		name := "pass_cost_ratio"
		if unready {
			name = "pass_cost_ratio_unready"
		}
		figure.Print(out, name, float64(many.cost)/float64(few.cost), "ratio")
	}
}
