package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/mysql-operator/mysql-operator/test/bench/figure"
	"github.com/mysql-operator/mysql-operator/test/bench/standin"
	"github.com/mysql-operator/mysql-operator/test/bench/testbed"
)

const (
	// warmUp is how long an operator with nothing to do gets before its memory is read.
	warmUp   = 10 * time.Second
	mebibyte = 1 << 20
)

// measureMemory runs the operator, with the kinds that it has by itself, and clusters that are Ready and left alone.
func (b bench) measureMemory(ctx context.Context, o options, out io.Writer) (err error) {
	operator, err := b.Start(ctx, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, operator.Stop()) }()
	if err := operator.AwaitReady(ctx); err != nil {
		return err
	}
	without, err := operator.Sample(ctx, warmUp)
	if err != nil {
		return err
	}
	members, err := standin.Start(ctx, b.Admin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, members.Stop()) }()
	if err := b.makeClusters(ctx, o); err != nil {
		return err
	}
	if err := b.awaitClusters(ctx, o, members); err != nil {
		return fmt.Errorf("%w%s", err, operator.Tail())
	}
	with, err := operator.Sample(ctx, o.settle)
	if err != nil {
		return err
	}
	printMemory(out, fmt.Sprintf("%d clusters of %d", o.clusters, o.members), without, with)
	return nil
}

func printMemory(out io.Writer, load string, without, with testbed.Usage) {
	size := func(bytes float64) string { return fmt.Sprintf("%.1f", bytes/mebibyte) }
	row := func(name string, of testbed.Usage) []string {
		files := float64(of.Resident - of.Anonymous)
		return []string{name, size(float64(of.Resident)), size(float64(of.Anonymous)), size(files), size(float64(of.Peak)), size(of.Heap), size(of.Idle), size(of.Stacks)}
	}
	fmt.Fprintf(out, "\nthe operator's memory at rest (MiB; median of %d s)\n", testbed.Samples)
	figure.Table(out, [][]string{
		{"with", "resident", "of it its own", "of it files (the binary)", "most ever resident", "Go heap in use", "heap idle", "stacks"},
		row("no clusters", without), row(load, with),
	})
	fmt.Fprintln(out)
	figure.Print(out, "operator_rss_anonymous", float64(with.Anonymous)/mebibyte, "MiB")
	figure.Print(out, "operator_rss_anonymous_without_clusters", float64(without.Anonymous)/mebibyte, "MiB")
}
