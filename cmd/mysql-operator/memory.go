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

// useLittleMemory sets up the garbage collector, unless the user has done so by GOGC.
func useLittleMemory(environment func(name string) string) {
	if environment("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// settled is how long after its start an operator has seen what it meets every day.
const settled = 10 * time.Second

// settle gives back, once, what only the start needed.
func (o operator) settle(ctx context.Context) error {
	if pause(ctx, settled) != nil {
		return nil //nolint:nilerr // the end of the run is no failure
	}
	debug.FreeOSMemory()
	if err := releaseProgram(); err != nil {
		o.log.V(1).Info("could not give back memory", "error", err.Error())
	}
	return nil
}
