// Package kube is how the demo, the end-to-end tests and the benchmarks use a cluster: as a person does, through kubectl, with every
// wait bounded and naming what it waits for.
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
	// Echo shows every command and its output, as on a terminal; nil keeps quiet.
	Echo io.Writer
}

// FromEnvironment uses the kubectl and the cluster that make names in KUBECTL and KUBECONFIG.
func FromEnvironment() (Kubectl, error) {
	program, config := os.Getenv("KUBECTL"), os.Getenv("KUBECONFIG")
	if program == "" {
		program = "kubectl"
	}
	if config == "" {
		return Kubectl{}, errors.New("KUBECONFIG is not set: run this through make, which uses the dev cluster, or name a cluster")
	}
	return Kubectl{Program: program, Config: config}, nil
}

// Rest is the client configuration of the same cluster.
func (k Kubectl) Rest() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", k.Config)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", k.Config, err)
	}
	config.QPS = -1
	return config, nil
}

// Run runs kubectl and returns what it printed, errors included.
func (k Kubectl) Run(ctx context.Context, arguments ...string) (string, error) {
	return k.run(ctx, nil, arguments)
}

// Apply applies a manifest given as text.
func (k Kubectl) Apply(ctx context.Context, manifest string, arguments ...string) (string, error) {
	return k.run(ctx, strings.NewReader(manifest), append([]string{"apply", "-f", "-"}, arguments...))
}

// commandLimit bounds a command whose caller does not: one that waits may wait for ever.
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
	if err != nil && ctx.Err() != nil { // it was killed, which says nothing
		err = context.Cause(ctx)
	}
	if err != nil {
		return text, fmt.Errorf("kubectl %s: %w: %s", strings.Join(arguments, " "), err, strings.TrimSpace(text))
	}
	return text, nil
}

// shown is a command line as a person would type it.
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

// pauseAfter is how long Wait pauses before it asks again, by how long it has waited: a tenth of that, within bounds. Asking mostly means
// to start kubectl, which takes processor time from what is waited for.
func pauseAfter(waited time.Duration) time.Duration {
	return min(max(waited/10, 250*time.Millisecond), time.Second)
}

// Wait asks again and again until check is content, the time is up, or the context ends. The error says what was waited for and what was
// seen last.
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
