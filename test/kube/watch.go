package kube

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// Watch reads the output of kubectl for an object, line by line, until done accepts a line. It runs one kubectl all the time, which takes
// almost no processor time; many short runs would distort measurements. The arguments are those of kubectl get, with an output that ends
// each line. The error says what was waited for and what was seen last.
func (k Kubectl) Watch(ctx context.Context, what string, limit time.Duration, done func(line string) bool, arguments ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not within %s", limit))
	defer cancel()
	last := "nothing yet"
	for {
		found, err := k.follow(ctx, &last, done, arguments)
		if found {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("wait for %s: %w; last seen: %s", what, context.Cause(ctx), last)
		}
		if err != nil {
			last = err.Error()
		}
		select { // API servers end watches from time to time
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// follow runs one watch.
func (k Kubectl) follow(ctx context.Context, last *string, done func(string) bool, arguments []string) (found bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reader, writer := io.Pipe()
	command := exec.CommandContext(ctx, k.Program, append([]string{"--kubeconfig", k.Config, "get", "--watch"}, arguments...)...)
	var complaint strings.Builder
	command.Stdout, command.Stderr = writer, &complaint
	if err := command.Start(); err != nil {
		return false, fmt.Errorf("start kubectl: %w", err)
	}
	ended := make(chan error, 1)
	go func() {
		err := command.Wait()
		_ = writer.Close() // never fails: io.PipeWriter
		ended <- err
	}()
	lines := bufio.NewScanner(reader)
	for !found && lines.Scan() {
		*last = lines.Text()
		found = done(*last)
	}
	cancel()
	_ = reader.Close() // never fails: io.PipeReader
	if err := <-ended; err != nil && !found {
		return false, fmt.Errorf("kubectl get --watch %s: %w: %s", strings.Join(arguments, " "), err, strings.TrimSpace(complaint.String()))
	}
	return found, nil
}
