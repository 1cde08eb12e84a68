package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/mysql-operator/mysql-operator/test/bench/bare"
	"github.com/mysql-operator/mysql-operator/test/bench/figure"
)

// floor is how long clients cannot write if the source of three MySQL servers is killed without Kubernetes: the least that is possible on
// this machine.
type floor []float64

// measureFloor kills the source so many times.
func measureFloor(ctx context.Context, o options) (f floor, err error) {
	if o.floor == 0 {
		return nil, nil
	}
	group, err := bare.NewGroup(ctx, o.rootfs)
	if err != nil {
		return nil, fmt.Errorf("measure the floor: %w", err)
	}
	defer func() { err = errors.Join(err, group.Remove()) }()
	gaps, err := group.Failovers(ctx, o.floor)
	for _, gap := range gaps {
		f = append(f, gap.Round(time.Millisecond).Seconds())
	}
	return f, err
}

// print prints the floor, and how many times as long the same fault took here.
func (f floor) print(out io.Writer, kills []float64) {
	if len(f) == 0 {
		return
	}
	fmt.Fprintf(out, "without Kubernetes, clients could not write for (s) %.3f\n", []float64(f))
	figure.Print(out, "failover_kill_floor_p50", figure.Percentile(f, 50)*1000, "ms")
	figure.Print(out, "failover_kill_floor_p99", figure.Percentile(f, 99)*1000, "ms")
	if len(kills) > 0 {
		figure.Print(out, "failover_kill_to_floor", figure.Percentile(kills, 50)/figure.Percentile(f, 50), "ratio")
	}
}
