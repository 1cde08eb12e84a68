//go:build !without_pulsar

// Command pulsarserver stands in for a Pulsar server in the dev cluster: one broker of test/pulsarbroker that names the address it is told
// as its own.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/mysql-operator/mysql-operator/test/pulsarbroker"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) //nolint:forbidigo // this is main
	err := serve(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pulsarserver:", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", ":6650")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	broker := pulsarbroker.New().Serve(advertised{listener}, nil)
	<-ctx.Done()
	return broker.Stop()
}

// advertised is a listener that gives the address of a Service instead of its own, which is 0.0.0.0.
type advertised struct {
	net.Listener
}

func (a advertised) Addr() net.Addr { return service(os.Getenv("ADVERTISED_ADDRESS")) }

// service is an address by name.
type service string

func (service) Network() string  { return "tcp" }
func (s service) String() string { return string(s) }
