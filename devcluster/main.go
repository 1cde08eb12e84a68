// Command devcluster runs real Kubernetes on this machine, for development and
// tests: see docs/devcluster.md.
//
//	go run ./devcluster up [--nodes N] [--control-plane-only]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintln(os.Stderr, "devcluster:", err)
	stop()
	os.Exit(1) //nolint:gocritic // the deferred stop was called
}
