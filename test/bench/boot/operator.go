package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// agentImage is what the operator is told to put into Pods: it runs in none itself that it could take its image from.
	agentImage = "mysql-operator:latest"
	// bootLimit bounds one boot. What takes longer is broken, not slow.
	bootLimit = time.Minute
	// stopPatience is what kubelet gives a Pod to end.
	stopPatience = 30 * time.Second
	// look is how often each question is asked while a boot is watched: the figures are exact to that.
	look = 5 * time.Millisecond
)

// process is the operator running.
type process struct {
	command *exec.Cmd
	began   time.Time
	// health and metrics are addresses, log a file.
	health, metrics, log string
	// ended gets how the process ended.
	ended  chan error
	client *http.Client
}

// start starts the operator as its image does, but for where it finds the cluster and listens.
func (b *bench) start(ctx context.Context) (*process, error) {
	health, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	metrics, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	p := &process{health: health, metrics: metrics, log: filepath.Join(b.dir, "operator.log"), ended: make(chan error, 1), client: &http.Client{Timeout: time.Second}}
	output, err := os.Create(p.log)
	if err != nil {
		return nil, fmt.Errorf("make the operator's log: %w", err)
	}
	defer output.Close()
	p.command = exec.CommandContext(ctx, b.binary, "run", "--kinds=all", "--kubeconfig="+b.kubeconfig, "--agent-image="+agentImage,
		"--health-address="+health, "--metrics-address="+metrics)
	p.command.Stdout, p.command.Stderr = output, output
	p.command.Env = b.environment
	// Asked, and not killed, it gives up its lease.
	p.command.Cancel = func() error { return p.command.Process.Signal(syscall.SIGTERM) }
	p.command.WaitDelay = stopPatience
	p.began = time.Now()
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("start the operator: %w", err)
	}
	go func() { p.ended <- p.command.Wait() }()
	return p, nil
}

// stop ends the operator as kubelet does, and waits for it.
func (p *process) stop() error {
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop the operator: %w", err)
	}
	select {
	case err := <-p.ended:
		if err != nil {
			return fmt.Errorf("the operator ended: %w%s", err, p.tail())
		}
		return nil
	case <-time.After(stopPatience):
		killed := p.command.Process.Kill()
		return fmt.Errorf("the operator did not stop within %s and was killed: %w%s", stopPatience, errors.Join(killed, <-p.ended), p.tail())
	}
}

// readiness asks /readyz once: what the checks say by name, and whether all are content.
func (p *process) readiness(ctx context.Context) (checks map[string]bool, ready bool) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.health+"/readyz?verbose", http.NoBody)
	if err != nil {
		return nil, false
	}
	response, err := p.client.Do(request)
	if err != nil {
		return nil, false // it does not listen yet
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, false
	}
	return parseReadiness(string(content)), response.StatusCode == http.StatusOK
}

// parseReadiness reads the lines "[+] NAME: ok" and "[-] NAME: why not".
func parseReadiness(content string) map[string]bool {
	checks := map[string]bool{}
	for line := range strings.Lines(content) {
		mark, rest, found := strings.Cut(strings.TrimSpace(line), " ")
		name, _, named := strings.Cut(rest, ":")
		if found && named && (mark == "[+]" || mark == "[-]") {
			checks[name] = mark == "[+]"
		}
	}
	return checks
}

// tail is the end of the operator's log, for an error.
func (p *process) tail() string {
	content, err := os.ReadFile(p.log)
	if err != nil {
		return ""
	}
	const enough = 2000
	return "\nits log ends with:\n" + string(content[max(0, len(content)-enough):])
}

// freeAddress is one on loopback where nobody listens.
func freeAddress(ctx context.Context) (string, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	address := listener.Addr().String()
	return address, listener.Close()
}
