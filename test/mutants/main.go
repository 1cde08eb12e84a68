// Command mutants breaks the decisions about replication, one rule at a time, and checks that the simulator, or else another test of the
// same package, notices. A rule that can be broken unnoticed has no guard. make test-mutants runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/mysql-operator/mysql-operator/test/bench/figure"
	"github.com/mysql-operator/mysql-operator/test/program"
)

// options say which mutants to try, and for how long to look for a violation.
type options struct {
	only         *regexp.Regexp
	seeds, pairs int
}

func main() {
	o := options{}
	only := flag.String("only", "", "try only mutants whose name matches this regular expression")
	flag.IntVar(&o.seeds, "seeds", 4000, "how many clusters to simulate with each mutant")
	flag.IntVar(&o.pairs, "pairs", 1000, "how many pairs of faults to try with each mutant, in a cluster of each kind")
	flag.Parse()
	os.Exit(program.Run(context.Background(), "mutants", func(ctx context.Context) (err error) {
		if o.only, err = regexp.Compile(*only); err != nil {
			return fmt.Errorf("read flag -only: %w", err)
		}
		return run(ctx, o, os.Stdout)
	}))
}

// run tries the mutants, and fails if one survives.
func run(ctx context.Context, o options, out io.Writer) error {
	folder, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	count := map[catcher]int{}
	var survived error
	chosen := slices.DeleteFunc(mutants(), func(one mutant) bool { return !o.only.MatchString(one.name) })
	if err := tryNone(ctx, folder, o, chosen); err != nil {
		return err
	}
	for _, one := range chosen {
		began := time.Now()
		by, what, err := one.try(ctx, folder, o)
		if err != nil {
			return fmt.Errorf("try the mutant %q: %w", one.name, err)
		}
		count[by]++
		fmt.Fprintf(table, "%s\t%s\t%s s\t%s\n", one.name, by, strconv.Itoa(int(time.Since(began).Seconds())), what)
		if err := table.Flush(); err != nil {
			return err
		}
		if by == nothing {
			survived = errors.Join(survived, fmt.Errorf("the mutant %q survives: no test notices it", one.name))
		}
	}
	figure.Print(out, "mutants_caught_by_simulator", float64(count[simulator]), "count")
	figure.Print(out, "mutants_caught_by_other_tests", float64(count[otherTests]), "count")
	figure.Print(out, "mutants_survived", float64(count[nothing]), "count")
	return survived
}

// tryNone fails if the tests of a package fail although none of its mutants is there.
func tryNone(ctx context.Context, folder string, o options, chosen []mutant) error {
	isTried := map[string]bool{}
	for _, one := range chosen {
		if isTried[one.folder()] {
			continue
		}
		isTried[one.folder()] = true
		if by, what, err := (mutant{file: one.file}).try(ctx, folder, o); err != nil || by != nothing {
			return errors.Join(fmt.Errorf("try no mutant: the tests of %s fail without one: %s", one.folder(), what), err)
		}
	}
	return nil
}

// catcher is what notices a mutant.
type catcher string

const (
	simulator  catcher = "simulator"
	otherTests catcher = "other tests"
	nothing    catcher = "nothing"
)

const (
	replicationFolder = "reconcile/mysql/replication"
	// simulations are the tests of that package that simulate whole clusters.
	simulations = "^(TestSimulated|TestAPairOfFaults|TestTrace)"
)

// try builds the tests with the mutant, and returns what notices it, and what that says.
func (m mutant) try(ctx context.Context, folder string, o options) (by catcher, what string, err error) {
	overlay, err := m.overlay(folder)
	if err != nil {
		return nothing, "", err
	}
	tests := filepath.Join(folder, "tests")
	if said, err := execute(ctx, "", "go", "test", "-c", "-overlay", overlay, "-o", tests, "./"+m.folder()); err != nil {
		return nothing, "", fmt.Errorf("%w:\n%s", err, said)
	}
	others := []string{"-test.timeout=20m"}
	if m.folder() == replicationFolder {
		said, err := execute(ctx, m.folder(), tests, "-test.run", simulations, "-test.timeout=20m", "-simulator-shrink=false",
			"-simulator-seeds", strconv.Itoa(o.seeds), "-explore-pairs", strconv.Itoa(o.pairs))
		if err != nil {
			return simulator, violation(said), ctx.Err()
		}
		others = append(others, "-test.skip", simulations)
	}
	said, err := execute(ctx, m.folder(), tests, others...)
	if err != nil {
		return otherTests, violation(said), ctx.Err()
	}
	return nothing, "", nil
}
