//go:build !without_vcenter

// Command mysql-operator-vsphere speaks to vCenters for the operator, which starts it when there are VmGroups: it answers questions on its
// standard input with answers on its standard output, and ends when the input does. Nobody starts it by hand.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	_ "golang.org/x/crypto/x509roots/fallback" // public CAs, for where the system has none: the image has no files but programs

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vsphere"
)

// gcPercent is as the operator's: little is kept, and little is lost by collecting often.
const gcPercent = 50

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	// Signals for the operator's process group are the operator's: it closes the input when its passes have ended.
	signal.Ignore(os.Interrupt, syscall.SIGTERM)
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, vcenter.Program+": "+err.Error())
		os.Exit(1)
	}
}

// run answers until the input ends, and then ends the sessions.
func run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	service := vsphere.New(time.Now)
	var tidying sync.WaitGroup
	tidying.Go(func() { service.Tidy(ctx) })
	err := vcenter.Serve(vcenter.Pipe(os.Stdin, os.Stdout), service)
	stop()
	tidying.Wait()
	return err
}
