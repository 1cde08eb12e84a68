// Command failover measures for how long clients cannot write when the primary of a cluster of real MySQL fails, in several ways, and for
// how long the cluster is then incomplete. It checks that no acknowledged row is lost. It uses the cluster that make names, which must be
// on this machine, a namespace of its own, and leaves nothing there. docs/benchmarks.md says what each figure means.
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

	"github.com/mysql-operator/mysql-operator/test/bench/figure"
	"github.com/mysql-operator/mysql-operator/test/bench/machine"
	"github.com/mysql-operator/mysql-operator/test/program"
)

// options say how much to measure, and on what.
type options struct {
	rounds       int
	faults       string
	keepOperator bool
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 3, "how often each fault is inflicted")
	flag.StringVar(&o.faults, "faults", "kill,stop,freeze,partition,delete", "faults, inflicted in turn")
	flag.BoolVar(&o.keepOperator, "keep-operator", false, "use the operator that runs, whatever its version, instead of replacing one of another version")
	flag.Parse()
	os.Exit(program.Run(context.Background(), "bench-failover", func(ctx context.Context) error { return run(ctx, o, os.Stdout) }))
}

func run(ctx context.Context, o options, out io.Writer) (err error) {
	faults, err := parseFaults(o.faults)
	if err != nil {
		return err
	}
	if o.rounds < 1 {
		return errors.New("read flags: there must be a round at least")
	}
	b, err := setUp(ctx, o, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.tearDown(context.WithoutCancel(ctx))) }()
	if err := machine.Proc.Introduce(ctx, out); err != nil {
		return err
	}
	if err := b.measure(ctx, faults, o.rounds, out); err != nil {
		return errors.Join(err, b.describe(ctx, out))
	}
	return nil
}

// measure has a client write all the time, inflicts the faults in turn, and reports. If a round fails, it reports the rounds before.
func (b *bench) measure(ctx context.Context, faults []string, times int, out io.Writer) error {
	db, err := b.openService(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := makeTable(ctx, db); err != nil {
		return err
	}
	w := startWriter(ctx, db)
	defer w.end()
	rounds, failed := b.rounds(ctx, w, schedule(faults, times), out)
	w.end()
	report(out, faults, rounds)
	if failed != nil {
		return failed
	}
	return b.check(ctx, w.seen(), out)
}

// schedule returns each fault so many times, in turn.
func schedule(faults []string, times int) []string {
	return slices.Concat(slices.Repeat([][]string{faults}, times)...)
}

// rounds inflicts the faults, and returns the rounds that were complete, also with an error.
func (b *bench) rounds(ctx context.Context, w *writer, faults []string, out io.Writer) ([]round, error) {
	if _, err := b.awaitSettled(ctx, w, time.Now()); err != nil {
		return nil, err
	}
	rounds := make([]round, 0, len(faults))
	for number, fault := range faults {
		fmt.Fprintf(out, "round %d of %d, %s … ", number+1, len(faults), fault)
		one, err := b.round(ctx, w, fault)
		if err != nil {
			return rounds, fmt.Errorf("round %d of %d, fault %s: %w", number+1, len(faults), fault, err)
		}
		fmt.Fprintf(out, "%s s without writes, %s s until it was settled\n", seconds(one.silent.length), seconds(one.rejoin))
		rounds = append(rounds, one)
	}
	return rounds, nil
}

// report prints the rounds, if there are any, and the figures.
func report(out io.Writer, faults []string, rounds []round) {
	if len(rounds) == 0 {
		return
	}
	fmt.Fprintln(out, "\nfaults in the order in which they were inflicted (s; the longest time without acknowledged writes, and when it began)")
	rows := make([][]string, 0, 1+len(rounds))
	rows = append(rows, []string{"fault", "of", "without writes", "begins after the fault", "next longest", "rejoin", "leads afterwards", "epoch"})
	rejoins := make([]float64, 0, len(rounds))
	without := map[string][]float64{}
	for _, one := range rounds {
		rows = append(rows, []string{
			one.fault, one.victim, seconds(one.silent.length), seconds(one.silent.after), seconds(one.further.length), seconds(one.rejoin), one.leader, one.epoch,
		})
		rejoins = append(rejoins, one.rejoin.Seconds())
		without[one.fault] = append(without[one.fault], one.silent.length.Seconds())
	}
	figure.Table(out, rows)
	fmt.Fprintln(out)
	for _, fault := range faults {
		if len(without[fault]) > 0 {
			figure.Print(out, "failover_"+fault+"_p50", figure.Percentile(without[fault], 50), "s")
			figure.Print(out, "failover_"+fault+"_p99", figure.Percentile(without[fault], 99), "s")
		}
	}
	figure.Print(out, "rejoin_p50", figure.Percentile(rejoins, 50), "s")
}

func seconds(length time.Duration) string {
	return fmt.Sprintf("%.2f", length.Round(10*time.Millisecond).Seconds()) // rounded, so that there is no -0.00
}

// check makes certain that what was acknowledged is there, on all members.
func (b *bench) check(ctx context.Context, attempts []attempt, out io.Writer) error {
	missing, err := b.checkLost(ctx, attempts)
	if err != nil {
		return err
	}
	figure.Print(out, "acknowledged_lost", float64(len(missing)), "count")
	acknowledged, _ := acknowledgedSince(attempts, time.Time{})
	fmt.Fprintf(out, "of %d writes, %d were acknowledged\n", len(attempts), acknowledged)
	if len(missing) > 0 {
		err = fmt.Errorf("%d acknowledged rows are lost: %v", len(missing), missing)
	}
	return errors.Join(err, b.awaitSame(ctx))
}
