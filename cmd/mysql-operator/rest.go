package main

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/mysql-operator/mysql-operator/cmd/internal/cli"
)

// gcPercentAtRest is the same for an operator that has settled. It works a little all day and hardly ever hard: what garbage may pile up to
// is then the larger part of what can be saved, and collecting twice as often is still next to nothing. A boot has to be fast, and what
// copies backups has much garbage and little time: both stay with what cli sets.
const gcPercentAtRest = 25

// settled is how long after its start an operator has seen what it meets every day.
const settled = 10 * time.Second

// settle gives back, once, what only the start needed, and has less garbage kept from then on.
func (o operator) settle(ctx context.Context) {
	if pause(ctx, settled) != nil {
		return
	}
	cli.UseLittleMemory(o.p.Environment, gcPercentAtRest)
	debug.FreeOSMemory()
}
