//go:build !without_vcenter

// Command mysql-operator-vsphere connects to vCenters for the operator, which starts it when there are VmGroups. It reads questions from
// its standard input, writes answers to its standard output, and ends when the input ends. Users do not start it.
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

	_ "golang.org/x/crypto/x509roots/fallback" // public CAs, for systems without any: the image contains only programs

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vsphere"
)

// gcPercent is the same as the operator's: the process keeps little memory, and frequent collections cost little.
const gcPercent = 50

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	// The operator handles the signals for its process group: it closes this program's input when its passes have ended.
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
