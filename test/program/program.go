// Package program has the common code of the benchmarks and demonstrations as programs.
package program

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Run calls work and returns the exit status. A signal ends the context, so that work can clean up. An error is printed after the name.
func Run(ctx context.Context, name string, work func(context.Context) error) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := work(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
	return 0
}
