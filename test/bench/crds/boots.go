package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/mysql-operator/mysql-operator/test/bench/figure"
	"github.com/mysql-operator/mysql-operator/test/bench/testbed"
)

// rest is how long both API servers get to finish with one boot before the next begins.
const rest = time.Second

// turn is a control plane to boot on, and how long the boots took.
type turn struct {
	on   bench
	took []time.Duration
}

// measureBoots boots in turns where there are no objects and where there are many, so that whatever else the machine does hits both alike;
// neither always comes first.
func measureBoots(ctx context.Context, empty, full bench, o options, out io.Writer) error {
	without, with := &turn{on: empty}, &turn{on: full}
	for round := range o.boots {
		turns := []*turn{without, with}
		if round%2 == 1 {
			turns = []*turn{with, without}
		}
		for _, one := range turns {
			took, err := one.on.bootUnchanged(ctx)
			if err != nil {
				return fmt.Errorf("boot %d of %d: %w", round+1, o.boots, err)
			}
			one.took = append(one.took, took)
		}
	}
	grown, err := ratio(with.took, without.took)
	if err != nil {
		return err
	}
	fewer, more := figure.Of(figure.Milliseconds(without.took)), figure.Of(figure.Milliseconds(with.took))
	row := func(objects int, spread figure.Spread) []string {
		return []string{fmt.Sprint(objects), fmt.Sprintf("%.0f", spread.P50), fmt.Sprintf("%.0f", spread.P95), fmt.Sprintf("%.0f", spread.Max)}
	}
	fmt.Fprintf(out, "\n%d boots each, process start until the unchanged definitions are in force (ms)\n", o.boots)
	figure.Table(out, [][]string{{"objects", "p50", "p95", "max"}, row(0, fewer), row(o.objects, more)})
	fmt.Fprintln(out)
	fewer.Print(out, "boot_unchanged_without_objects", "ms")
	more.Print(out, "boot_unchanged_with_objects", "ms")
	figure.Print(out, "boot_unchanged_objects_ratio", grown, "ratio")
	return nil
}

// ratio tells how much longer the one takes than the other, by their medians.
func ratio(with, without []time.Duration) (float64, error) {
	above, below := figure.Percentile(figure.Milliseconds(with), 50), figure.Percentile(figure.Milliseconds(without), 50)
	if grown := above / below; below > 0 && grown > 0 {
		return grown, nil
	}
	return 0, fmt.Errorf("compare boots: %d with objects (median %v ms) and %d without (median %v ms) make no ratio", len(with), above, len(without), below)
}

// bootUnchanged measures a boot of an operator that has nothing to change in its definitions. In any other case it returns an error.
func (b bench) bootUnchanged(ctx context.Context) (time.Duration, error) {
	if err := b.unchanged(ctx); err != nil {
		return 0, err
	}
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(rest):
	}
	return b.bootOnce(ctx)
}

// bootOnce starts the operator, and stops it as soon as it says that the definitions are in force. So it does not fill its caches, or only
// begins to, which takes the longer the more objects there are.
func (b bench) bootOnce(ctx context.Context) (time.Duration, error) {
	operator, err := b.Start(ctx, "all")
	if err != nil {
		return 0, err
	}
	watching, cancel := context.WithTimeoutCause(ctx, testbed.BootLimit, fmt.Errorf("not within %s", testbed.BootLimit))
	defer cancel()
	err = testbed.Until(watching, "the operator to say that the definitions are in force", func() bool {
		checks, _ := operator.Readiness(watching)
		return checks[testbed.DefinitionsCheck]
	})
	took := time.Since(operator.Began)
	if err != nil {
		err = fmt.Errorf("%w%s", err, operator.Tail())
	}
	return took, errors.Join(err, operator.Stop())
}
