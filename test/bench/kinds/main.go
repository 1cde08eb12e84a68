//go:build !without_vcenter

// Command kinds measures how much memory the operator takes with all kinds and many objects of each. It builds the binaries that are
// shipped, starts a control plane of its own in a temporary folder (no root, no nodes), and runs the operator on it as a process, under the
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
	"strings"
	"time"

	"github.com/mysql-operator/mysql-operator/schema"
	"github.com/mysql-operator/mysql-operator/test/bench/figure"
	"github.com/mysql-operator/mysql-operator/test/bench/machine"
	"github.com/mysql-operator/mysql-operator/test/bench/standin"
	"github.com/mysql-operator/mysql-operator/test/bench/testbed"
	"github.com/mysql-operator/mysql-operator/test/program"
)

const (
	// warmUp is how long an operator with nothing to do gets before its memory is read.
	warmUp   = 10 * time.Second
	mebibyte = 1 << 20
)

// options say how much to measure.
type options struct {
	objects int
	settle  time.Duration
}

func main() {
	var o options
	flag.IntVar(&o.objects, "objects", 100, "objects of each kind")
	flag.DurationVar(&o.settle, "settle", time.Minute, "how long nothing must have been written to any object before the operator's memory is read")
	flag.Parse()
	os.Exit(program.Run(context.Background(), "bench-kinds", func(ctx context.Context) error { return run(ctx, o, os.Stdout) }))
}

// bench is what the operator is measured on.
type bench struct {
	*testbed.Bed
	kinds   []schema.Kind
	members *standin.Members
}

// measured is what the operator took without and with objects, and what its helper for vCenters took.
type measured struct {
	without, with testbed.Usage
	helper        machine.Memory
	// changed are the objects of the kinds that were written while the operator was at rest, as Kind/NAME.
	changed []string
}

func run(ctx context.Context, o options, out io.Writer) (err error) {
	if o.objects < 1 {
		return errors.New("read flags: there must be an object at least")
	}
	bed, err := testbed.Up(ctx, testbed.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bed.Down(context.WithoutCancel(ctx))) }()
	members, err := standin.Start(ctx, bed.Admin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, members.Stop()) }()
	b := bench{Bed: bed, kinds: schema.Kinds(), members: members}
	if err := machine.Proc.Introduce(ctx, out); err != nil {
		return err
	}
	m, err := b.measure(ctx, o)
	if err != nil {
		return err
	}
	m.print(out, fmt.Sprintf("%d each of %d kinds", o.objects, len(b.kinds)))
	return nil
}

func (b bench) measure(ctx context.Context, o options) (m measured, err error) {
	operator, err := b.Start(ctx, "all")
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, operator.Stop()) }()
	if err := operator.AwaitReady(ctx); err != nil {
		return m, err
	}
	if m.without, err = operator.Sample(ctx, warmUp); err != nil {
		return m, err
	}
	vcenter, err := startVCenter(ctx)
	if err != nil {
		return m, err
	}
	defer vcenter.end()
	if err := b.makeObjects(ctx, o.objects, vcenter); err != nil {
		return m, err
	}
	if err := b.awaitObjects(ctx); err != nil {
		return m, fmt.Errorf("%w%s", err, operator.Tail())
	}
	err = b.atRest(ctx, o, operator, &m)
	return m, err
}

// atRest measures an operator that has nothing left to do.
func (b bench) atRest(ctx context.Context, o options, operator *testbed.Process, m *measured) error {
	before, err := b.awaitQuiet(ctx, o.settle)
	if err != nil {
		return err
	}
	if m.with, err = operator.Sample(ctx, 0); err != nil {
		return err
	}
	after, err := b.versions(ctx)
	if err != nil {
		return err
	}
	for name, version := range after {
		if before[name] != version {
			m.changed = append(m.changed, name)
		}
	}
	helper, err := machine.Proc.Child(operator.PID())
	if err != nil {
		return err
	}
	m.helper, err = machine.Proc.Memory(helper)
	return err
}

func (m measured) print(out io.Writer, load string) {
	size := func(bytes float64) string { return fmt.Sprintf("%.1f", bytes/mebibyte) }
	row := func(name string, of machine.Memory, heap string) []string {
		return []string{name, size(float64(of.Resident)), size(float64(of.Anonymous)), size(float64(of.Peak)), heap}
	}
	fmt.Fprintf(out, "\nmemory at rest, with all kinds (MiB; the operator's is the median of %d s)\n", testbed.Samples)
	figure.Table(out, [][]string{
		{"", "resident", "of it its own", "most ever resident", "Go heap in use"},
		row("the operator, no objects", m.without.Memory, size(m.without.Heap)),
		row("the operator, "+load, m.with.Memory, size(m.with.Heap)),
		row("its helper for vCenters", m.helper, ""),
	})
	fmt.Fprintln(out)
	if len(m.changed) > 0 {
		slices.Sort(m.changed)
		fmt.Fprintf(out, "written meanwhile: %s\n", strings.Join(m.changed, " "))
	}
	figure.Print(out, "kinds_rss_anonymous", float64(m.with.Anonymous)/mebibyte, "MiB")
	figure.Print(out, "kinds_rss_anonymous_without_objects", float64(m.without.Anonymous)/mebibyte, "MiB")
	figure.Print(out, "kinds_helper_rss_anonymous", float64(m.helper.Anonymous)/mebibyte, "MiB")
	figure.Print(out, "kinds_objects_changed", float64(len(m.changed)), "objects")
}
