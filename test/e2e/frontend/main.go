// Command frontend is the lab's application: it answers every request with the message in its configuration file. It reads the file once,
// when it starts, as most servers do: a new message shows only after a restart.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const (
	configFile = "/config/config.cfg"
	// leaving is how long the server still answers requests after the signal to end: until clients send no more.
	leaving = 3 * time.Second
)

func main() {
	if err := run(context.Background()); err != nil { //nolint:forbidigo // this is main
		fmt.Fprintln(os.Stderr, "frontend:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
	defer stop()
	message, err := readMessage(configFile)
	if err != nil {
		return err
	}
	server := &http.Server{Addr: ":80", ReadHeaderTimeout: 5 * time.Second, Handler: answer(message)}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}

	late := time.NewTimer(leaving)
	defer late.Stop()
	<-late.C
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaving)
	defer cancel()
	if err := server.Shutdown(closing); err != nil {
		return fmt.Errorf("stop serving: %w", err)
	}
	return nil
}

func answer(message string) http.Handler {
	return http.HandlerFunc(func(response http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(response, message)
	})
}

var errNoMessage = errors.New(`there is no line MSG="…"`)

// readMessage reads the value of MSG out of a file of lines NAME="value".
func readMessage(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read configuration: %w", err)
	}
	for line := range strings.Lines(string(content)) {
		if value, found := strings.CutPrefix(strings.TrimSpace(line), "MSG="); found {
			return strings.Trim(value, `"`), nil
		}
	}
	return "", fmt.Errorf("read configuration %s: %w", file, errNoMessage)
}
