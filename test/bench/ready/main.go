// Command ready measures how long a cluster of real MySQL takes from being applied to being Ready, and where that time goes; and how many
// writes to the API server the operator makes for clusters that are as they should be. It uses the cluster that make names, a namespace of
// its own, and leaves nothing there. docs/benchmarks.md says what each figure means.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/mysql-operator/mysql-operator/test/bench/figure"
	"github.com/mysql-operator/mysql-operator/test/bench/machine"
	"github.com/mysql-operator/mysql-operator/test/program"
)

// options say how much to measure, and on what.
type options struct {
	rounds, members int
	idle            time.Duration
	keepOperator    bool
	auditLog        string
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 5, "clusters made, one after the other")
	flag.IntVar(&o.members, "members", 3, "members of each")
	flag.DurationVar(&o.idle, "idle", 5*time.Minute, "how long writes are counted at rest; 0 leaves that out")
	flag.BoolVar(&o.keepOperator, "keep-operator", false, "use the operator that runs, whatever its version, instead of replacing one of another version")
	flag.StringVar(&o.auditLog, "audit-log", "", "the API server's audit log (default: audit.log beside the kubeconfig, where the dev cluster has it)")
	flag.Parse()
	os.Exit(program.Run(context.Background(), "bench-ready", func(ctx context.Context) error { return run(ctx, o, os.Stdout) }))
}

func run(ctx context.Context, o options, out io.Writer) (err error) {
	if o.rounds < 1 || o.members < 1 || o.idle < 0 {
		return errors.New("read flags: there must be a round and a member at least, and time does not run backwards")
	}
	b, err := setUp(ctx, o, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.tearDown(context.WithoutCancel(ctx))) }()
	if err := machine.Proc.Introduce(ctx, out); err != nil {
		return err
	}
	var rounds []timeline
	for number := 1; number <= o.rounds; number++ {
		one, err := b.round(ctx, fmt.Sprintf("bench-%d", number))
		if err != nil {
			return fmt.Errorf("round %d of %d: %w", number, o.rounds, err)
		}
		rounds = append(rounds, one)
		if number == o.rounds && o.idle > 0 {
			break // the last one's cluster is the one that rests
		}
		if err := b.remove(ctx, fmt.Sprintf("bench-%d", number)); err != nil {
			return err
		}
	}
	report(out, o.members, rounds)
	if o.idle == 0 {
		return nil
	}
	return b.measureSteadyWrites(ctx, out)
}

// report prints where the time went, and the figures.
func report(out io.Writer, members int, rounds []timeline) {
	fmt.Fprintf(out, "\n%d clusters of %d, apply until … (s, median of the rounds; a stage is through when its last member is)\n", len(rounds), members)
	figure.Table(out, tableOf(rounds))
	fmt.Fprintln(out)
	figure.Of(momentsOf(rounds, stageReady)).Print(out, "ready", "s")
	figure.Print(out, "durable_p50", figure.Percentile(momentsOf(rounds, stageDurable), 50), "s")
}

// auditLogOf is where the audit log is: where it is said to be, or beside the kubeconfig.
func auditLogOf(o options, kubeconfig string) string {
	if o.auditLog != "" {
		return o.auditLog
	}
	return filepath.Join(filepath.Dir(kubeconfig), "audit.log")
}
