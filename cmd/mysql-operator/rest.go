package main

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/mysql-operator/mysql-operator/cmd/internal/cli"
)

// gcPercentAtRest replaces cli's gcPercent when the operator has settled. Then its load is small and steady, garbage is the larger part of
// the memory that can be saved, and more collections still cost little. A boot must be fast, and programs that copy backups make much
// garbage in little time: both keep cli's value.
const gcPercentAtRest = 20

// settled is the time after its start after which an operator's load is the everyday one.
const settled = 10 * time.Second

// reduceMemory returns to the system, once, the memory that only the start needed. From then on, Go keeps less garbage.
func (o operator) reduceMemory(ctx context.Context) {
	if pause(ctx, settled) != nil {
		return
	}
	cli.LimitGarbage(o.p.Environment, gcPercentAtRest)
	debug.FreeOSMemory()
}
