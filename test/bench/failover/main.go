// Command failover measures for how long clients cannot write when the primary of a cluster of real MySQL fails, in several ways, and for
// how long the cluster is then incomplete. It checks that no acknowledged row is lost, and that what clients read is right. It uses the
// cluster that make names, which must be on this machine, a namespace of its own, and leaves nothing there. docs/benchmarks.md says what
// each figure means.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/mysql-operator/mysql-operator/test/bench/figure"
	"github.com/mysql-operator/mysql-operator/test/bench/machine"
	"github.com/mysql-operator/mysql-operator/test/program"
)

// options say how much to measure, and on what.
type options struct {
	rounds       int
	faults       string
	random       bool
	seed         uint64
	out          string
	keepOperator bool
	// load is how many clients write without a pause, and rows is how many rows each of their transactions has.
	load, rows int
	// floor is how often the source of servers without Kubernetes is killed, whose programs are in rootfs.
	floor  int
	rootfs string
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 3, "how often each fault is inflicted")
	flag.StringVar(&o.faults, "faults", namesOf(faultsByDefault()), "faults, inflicted in turn")
	flag.BoolVar(&o.random, "random", false, "inflict the faults in a random order, which follows from the seed")
	flag.Uint64Var(&o.seed, "seed", 0, "seed of the order and of what clients do; 0 chooses one")
	flag.StringVar(&o.out, "out", "", "file to which each round is added as a line of JSON; by default, a new one in the folder bench beside the kubeconfig")
	flag.BoolVar(&o.keepOperator, "keep-operator", false, "use the operator that runs, whatever its version, instead of replacing one of another version")
	flag.IntVar(&o.load, "load", 0, "how many clients write without a pause, beside the one whose time without writes counts")
	flag.IntVar(&o.rows, "rows", 1, "how many rows each of their transactions has, inserted one by one")
	flag.IntVar(&o.floor, "floor", 0, "how often the source of three servers without Kubernetes is killed before, to compare with")
	flag.StringVar(&o.rootfs, "rootfs", ".dev/images/mysql-rootfs", "where their mysqld is")
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
	if o.rows < 1 {
		return errors.New("read flags: a transaction must have a row at least")
	}
	if o.seed == 0 {
		o.seed = uint64(rand.Uint32()) + 1
	}
	least, err := measureFloor(ctx, o)
	if err != nil {
		return err
	}
	b, err := setUp(ctx, o, faults, out)
	if err != nil {
		return err
	}
	b.floor = least
	defer func() { err = errors.Join(err, b.tearDown(context.WithoutCancel(ctx))) }()
	if err := machine.Proc.Introduce(ctx, out); err != nil {
		return err
	}
	if err := b.placement(ctx, out); err != nil {
		return err
	}
	if faults, err = b.suitable(ctx, faults, out); err != nil {
		return err
	}
	if err := b.measure(ctx, faults, o); err != nil {
		return errors.Join(err, b.describe(ctx, out))
	}
	return nil
}

// measure has a client write all the time, inflicts the faults, and reports. If a round fails, it reports the rounds before.
func (b *bench) measure(ctx context.Context, faults []fault, o options) error {
	file, err := openRaw(o.out, b.kubectl.Config, time.Now())
	if err != nil {
		return err
	}
	defer file.Close()
	fmt.Fprintf(b.out, "seed %d; each round is a line of %s\n", o.seed, file.Name())
	if err := b.connect(ctx); err != nil {
		return err
	}
	defer b.disconnect()
	w := startWriter(ctx, b.write, 0, 1, thinking)
	defer w.end()
	others := startLoad(ctx, b.write, o.load, o.rows)
	rounds, failed := b.rounds(ctx, w, schedule(faults, o), file)
	w.end()
	written := append(w.seen(), others.end()...)
	report(b.out, faults, rounds, o.load)
	b.floor.print(b.out, summarised(rounds).gaps[faultKill])
	wrong := summarised(rounds).failure()
	if failed != nil {
		return errors.Join(failed, wrong)
	}
	return errors.Join(b.check(ctx, written), wrong)
}

// rounds inflicts the faults, and returns the rounds, the one that failed included. Each round is a line of the file.
func (b *bench) rounds(ctx context.Context, w *writer, faults []fault, file io.Writer) ([]round, error) {
	if _, err := b.awaitSettled(ctx, w, time.Now()); err != nil {
		return nil, err
	}
	rounds := make([]round, 0, len(faults))
	for i, one := range faults {
		fmt.Fprintf(b.out, "round %d of %d, %s … ", i+1, len(faults), one.name)
		obstacle, err := b.prepare(ctx, one)
		if err != nil {
			return rounds, err
		}
		if obstacle != "" {
			fmt.Fprintln(b.out, "left out: "+obstacle)
			continue
		}
		done, err := b.round(ctx, w, i+1, one)
		rounds = append(rounds, done)
		if noted := writeRaw(file, rawOf(done, b.seed, err)); err == nil {
			err = noted
		}
		if err != nil {
			return rounds, fmt.Errorf("round %d of %d, fault %s: %w", i+1, len(faults), one.name, err)
		}
		announce(b.out, done)
	}
	return rounds, nil
}

// check makes certain that what was acknowledged is there, on all members, and that each GTID names the same rows everywhere.
func (b *bench) check(ctx context.Context, attempts []attempt) error {
	missing, err := b.checkLost(ctx, attempts)
	if err != nil {
		return err
	}
	figure.Print(b.out, "acknowledged_lost", float64(len(missing)), "count")
	acknowledged, _ := acknowledgedSince(attempts, time.Time{})
	fmt.Fprintf(b.out, "of %d writes, %d were acknowledged\n", len(attempts), acknowledged)
	if len(missing) > 0 {
		err = fmt.Errorf("%d acknowledged rows are lost: %v", len(missing), missing)
	}
	return errors.Join(err, b.awaitSame(ctx), b.checkReused(ctx, acknowledged))
}

// checkReused makes certain that each GTID names the same rows everywhere. Each acknowledged write is a transaction on two members.
func (b *bench) checkReused(ctx context.Context, acknowledged int) error {
	reused, compared, err := b.readReused(ctx)
	if err != nil {
		return err
	}
	figure.Print(b.out, "gtid_reused", float64(len(reused)), "count")
	fmt.Fprintf(b.out, "of %d GTIDs in the binary logs of two members or more\n", compared)
	if compared < acknowledged {
		return fmt.Errorf("only %d GTIDs are in the binary logs of two members, of %d acknowledged writes: a member may have been copied", compared, acknowledged)
	}
	if len(reused) > 0 {
		return fmt.Errorf("%d GTIDs name different rows: %v", len(reused), reused)
	}
	return nil
}
