// Package program is what benchmarks and demonstrations have in common as programs.
package program

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Run does a program's work, the context of which ends when somebody interrupts it, so that it can clear up, and returns the exit status.
// name is said before an error.
func Run(ctx context.Context, name string, work func(context.Context) error) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := work(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
	return 0
}
