package main

import (
	"context"
	"runtime/debug"
	"time"
)

// gcPercent is how much, in percent of what is live, the heap grows before it is collected (Go, "A Guide to the Go Garbage Collector").
// Go's default is 100. What an operator keeps is small and lives long, and what a pass allocates is soon garbage: collecting twice as often
// costs it next to nothing, and on every node there are agents of the same binary. make bench-boot measures what it saves.
const gcPercent = 50

// gcPercentAtRest is the same for an operator that has settled. It works a little all day and hardly ever hard: what garbage may pile up to
// is then the larger part of what can be saved, and collecting twice as often is still next to nothing. A boot has to be fast, and what
// copies backups has much garbage and little time: both stay with gcPercent.
const gcPercentAtRest = 25

// useLittleMemory sets up the garbage collector, unless the user has done so by GOGC.
func useLittleMemory(environment func(name string) string, percent int) {
	if environment("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// settled is how long after its start an operator has seen what it meets every day.
const settled = 10 * time.Second

// settle gives back, once, what only the start needed, and has less garbage kept from then on.
func (o operator) settle(ctx context.Context) error {
	if pause(ctx, settled) != nil {
		return nil //nolint:nilerr // the end of the run is no failure
	}
	useLittleMemory(o.p.environment, gcPercentAtRest)
	debug.FreeOSMemory()
	if err := releaseProgram(); err != nil {
		o.log.V(1).Info("could not give back memory", "error", err.Error())
	}
	return nil
}
