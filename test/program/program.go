// Package program is what benchmarks and demonstrations have in common as programs.
package program

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Main does a program's work, the context of which ends when somebody interrupts it, so that it can clear up, and ends the program with its
// outcome. name is said before an error.
func Main(name string, work func(context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := work(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}
