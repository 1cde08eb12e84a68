// Command hello is the founding document's application in place of crccheck/hello-world: it answers every request on port 8000.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	if err := run(context.Background()); err != nil { //nolint:forbidigo // this is main
		fmt.Fprintln(os.Stderr, "hello:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
	defer stop()
	server := &http.Server{Addr: ":8000", ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(response http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(response, "Hello World")
	})}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
