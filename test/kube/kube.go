// Package kube lets the demo, the end-to-end tests and the benchmarks use a cluster as a user does, with kubectl. Every wait is bounded,
// and its error says what it waited for.
package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Kubectl runs kubectl against one cluster.
type Kubectl struct {
	// Program is the path of kubectl, Config that of the kubeconfig.
	Program, Config string
	// Echo receives every command and its output, as on a terminal; nil turns this off.
	Echo io.Writer
}

// FromEnvironment returns the kubectl and the cluster that make passes in KUBECTL and KUBECONFIG.
func FromEnvironment() (Kubectl, error) {
	program, config := os.Getenv("KUBECTL"), os.Getenv("KUBECONFIG")
	if program == "" {
		program = "kubectl"
	}
	if config == "" {
		return Kubectl{}, errors.New("KUBECONFIG is not set: run this with make, which uses the dev cluster, or set it to a cluster's kubeconfig")
	}
	return Kubectl{Program: program, Config: config}, nil
}

// Rest returns the client configuration of the same cluster.
func (k Kubectl) Rest() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", k.Config)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", k.Config, err)
	}
	config.QPS = -1
	return config, nil
}

// Run runs kubectl and returns its output, errors included.
func (k Kubectl) Run(ctx context.Context, arguments ...string) (string, error) {
	return k.run(ctx, nil, arguments)
}

// Apply applies a manifest given as text.
func (k Kubectl) Apply(ctx context.Context, manifest string, arguments ...string) (string, error) {
	return k.run(ctx, strings.NewReader(manifest), append([]string{"apply", "-f", "-"}, arguments...))
}

// commandLimit bounds a command whose caller sets no deadline: a command that waits could wait indefinitely.
const commandLimit = 5 * time.Minute

func (k Kubectl) run(ctx context.Context, input io.Reader, arguments []string) (string, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, commandLimit, fmt.Errorf("not done within %s", commandLimit))
		defer cancel()
	}
	command := exec.CommandContext(ctx, k.Program, append([]string{"--kubeconfig", k.Config}, arguments...)...)
	var output bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = input, &output, &output
	if k.Echo != nil {
		fmt.Fprintf(k.Echo, "$ kubectl %s\n", shown(arguments))
	}
	err := command.Run()
	text := output.String()
	if k.Echo != nil {
		fmt.Fprint(k.Echo, text)
	}
	if err != nil && ctx.Err() != nil { // it was killed: return the reason
		err = context.Cause(ctx)
	}
	if err != nil {
		return text, fmt.Errorf("kubectl %s: %w: %s", strings.Join(arguments, " "), err, strings.TrimSpace(text))
	}
	return text, nil
}

// shown returns a command line as a user would type it.
func shown(arguments []string) string {
	quoted := make([]string, len(arguments))
	for i, argument := range arguments {
		quoted[i] = argument
		if strings.ContainsAny(argument, " \"'{}$*;&|\\") {
			quoted[i] = "'" + strings.ReplaceAll(argument, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// pauseAfter returns the pause of Wait between two checks: a tenth of the time it has waited, within bounds. Most checks start kubectl,
// which takes processor time from the program that is waited for.
func pauseAfter(waited time.Duration) time.Duration {
	return min(max(waited/10, 250*time.Millisecond), time.Second)
}

// Wait calls check until it reports done, the limit is over, or the context ends. The error says what was waited for and what was seen
// last.
func Wait(ctx context.Context, what string, limit time.Duration, check func(context.Context) (done bool, seen string)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not within %s", limit))
	defer cancel()
	began, last := time.Now(), "nothing yet"
	for {
		done, seen := check(ctx)
		if done {
			return nil
		}
		if ctx.Err() == nil && seen != "" {
			last = seen
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w; last seen: %s", what, context.Cause(ctx), last)
		case <-time.After(pauseAfter(time.Since(began))):
		}
	}
}
