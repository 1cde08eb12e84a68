// Command crds measures what looking after definitions costs where there are many objects: starting while nothing changed, looking at the
// objects before an update, and rewriting them in another version. It uses control planes of its own in temporary folders (no root, no
// nodes). docs/benchmarks.md says what each figure means.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/mysql-operator/mysql-operator/test/bench/machine"
	"github.com/mysql-operator/mysql-operator/test/bench/testbed"
	"github.com/mysql-operator/mysql-operator/test/program"
)

// options say how much to measure.
type options struct {
	objects, boots, checks int
}

func main() {
	var o options
	flag.IntVar(&o.objects, "objects", 10_000, "MySQLClusters there are")
	flag.IntVar(&o.boots, "boots", 30, "boots with them, and as many without")
	flag.IntVar(&o.checks, "checks", 3, "checks of all objects, of which the median counts")
	flag.Parse()
	os.Exit(program.Run(context.Background(), "bench-crds", func(ctx context.Context) error { return run(ctx, o, os.Stdout) }))
}

func run(ctx context.Context, o options, out io.Writer) (err error) {
	if o.objects < 1 || o.boots < 1 || o.checks < 1 {
		return errors.New("read flags: objects, boots and checks are 1 at least")
	}
	empty, full, err := setUp(ctx)
	defer func() { err = errors.Join(err, tearDown(context.WithoutCancel(ctx), full, empty)) }()
	if err != nil {
		return err
	}
	if err := machine.Proc.Introduce(ctx, out); err != nil {
		return err
	}
	for _, one := range []bench{empty, full} {
		if err := one.install(ctx); err != nil {
			return err
		}
	}
	if err := full.fill(ctx, o.objects); err != nil {
		return err
	}
	if err := measureBoots(ctx, empty, full, o, out); err != nil {
		return err
	}
	if err := full.measureCheck(ctx, o, out); err != nil {
		return err
	}
	return full.measureMigration(ctx, o, out)
}

// setUp makes two control planes, one to stay empty, so that boots with and without objects can take turns. It returns what it made also
// with an error.
func setUp(ctx context.Context) (empty, full bench, err error) {
	if empty, err = newBench(ctx, testbed.Options{WithoutControllers: true}); err != nil {
		return empty, full, err
	}
	full, err = newBench(ctx, testbed.Options{WithoutControllers: true, Binary: empty.Binary})
	return empty, full, err
}

func tearDown(ctx context.Context, benches ...bench) error {
	var group errgroup.Group
	for _, one := range benches {
		if one.Bed != nil {
			group.Go(func() error { return one.Down(ctx) })
		}
	}
	return group.Wait()
}
