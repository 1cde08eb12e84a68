package testbed

import (
	"context"
	"fmt"
	"time"

	"github.com/mysql-operator/mysql-operator/test/bench/figure"
	"github.com/mysql-operator/mysql-operator/test/bench/machine"
)

// Samples, a second apart, make one figure: the median of what /proc says.
const Samples = 30

// Usage is what an operator takes, in bytes.
type Usage struct {
	machine.Memory
	// Heap, Idle and Stacks are Go's own numbers, from the operator's metrics.
	Heap, Idle, Stacks float64
}

// Sample lets the operator rest and then reads its memory, the median of some seconds.
func (p *Process) Sample(ctx context.Context, rest time.Duration) (Usage, error) {
	if err := Pause(ctx, rest); err != nil {
		return Usage{}, err
	}
	var resident, anonymous []float64
	var seen Usage
	for range Samples {
		memory, err := machine.Proc.Memory(p.PID())
		if err != nil {
			return seen, fmt.Errorf("%w%s", err, p.Tail())
		}
		resident, anonymous = append(resident, float64(memory.Resident)), append(anonymous, float64(memory.Anonymous))
		seen.Peak = memory.Peak
		if err := Pause(ctx, time.Second); err != nil {
			return seen, err
		}
	}
	seen.Resident, seen.Anonymous = uint64(figure.Percentile(resident, 50)), uint64(figure.Percentile(anonymous, 50))
	return seen, p.ReadMetrics(ctx, map[string]*float64{
		"go_memstats_heap_inuse_bytes": &seen.Heap, "go_memstats_heap_idle_bytes": &seen.Idle, "go_memstats_stack_inuse_bytes": &seen.Stacks,
	})
}

// Pause waits; its error is the context's.
func Pause(ctx context.Context, length time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(length):
		return nil
	}
}
