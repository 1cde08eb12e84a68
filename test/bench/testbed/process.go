package testbed

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// agentImage is what the operator is told to put into Pods: it runs in none itself that it could take its image from.
	agentImage = "mysql-operator:latest"
	// BootLimit bounds one boot. What takes longer is broken, not slow.
	BootLimit = time.Minute
	// stopPatience is what kubelet gives a Pod to end.
	stopPatience = 30 * time.Second
	// Look is how often each question is asked while a boot is watched: the figures are exact to that.
	Look = 5 * time.Millisecond
)

// Process is the operator running.
type Process struct {
	// Began is when it was started.
	Began time.Time

	command *exec.Cmd
	// health and metrics are addresses, log a file.
	health, metrics, log string
	// ended gets how the process ended.
	ended  chan error
	client *http.Client
}

// The operator's checks in /readyz that a boot ends with: the first, and the last to be there at all.
const (
	DefinitionsCheck = "definitions"
	CachesCheck      = "caches"
)

// Start starts the operator, with some kinds ("all", or as in --kinds; empty for those it has by itself), as its image does, but for where
// it finds the cluster and listens.
func (b *Bed) Start(ctx context.Context, kinds string) (*Process, error) {
	health, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	metrics, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	p := &Process{health: health, metrics: metrics, log: filepath.Join(b.dir, "operator.log"), ended: make(chan error, 1), client: &http.Client{Timeout: time.Second}}
	output, err := os.Create(p.log)
	if err != nil {
		return nil, fmt.Errorf("make the operator's log: %w", err)
	}
	defer output.Close()
	p.command = exec.CommandContext(ctx, b.Binary, "run", "--kinds="+kinds, "--kubeconfig="+b.kubeconfig, "--agent-image="+agentImage,
		"--health-address="+health, "--metrics-address="+metrics, "--alarm-address=127.0.0.1:0")
	p.command.Stdout, p.command.Stderr = output, output
	p.command.Env = b.environment
	// Asked, and not killed, it gives up its lease.
	p.command.Cancel = func() error { return p.command.Process.Signal(syscall.SIGTERM) }
	p.command.WaitDelay = stopPatience
	p.Began = time.Now()
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("start the operator: %w", err)
	}
	go func() { p.ended <- p.command.Wait() }()
	return p, nil
}

// Stop ends the operator as kubelet does, and waits for it.
func (p *Process) Stop() error {
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop the operator: %w", err)
	}
	select {
	case err := <-p.ended:
		if err != nil {
			return fmt.Errorf("the operator ended: %w%s", err, p.Tail())
		}
		return nil
	case <-time.After(stopPatience):
		killed := p.command.Process.Kill()
		return fmt.Errorf("the operator did not stop within %s and was killed: %w%s", stopPatience, errors.Join(killed, <-p.ended), p.Tail())
	}
}

// AwaitReady returns when /readyz is content with everything.
func (p *Process) AwaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, BootLimit, fmt.Errorf("not ready within %s", BootLimit))
	defer cancel()
	err := Until(ctx, "the operator to be ready", func() bool {
		_, ready := p.Readiness(ctx)
		return ready
	})
	if err != nil {
		return fmt.Errorf("%w%s", err, p.Tail())
	}
	return nil
}

// Readiness asks /readyz once: what the checks say by name, and whether all are content.
func (p *Process) Readiness(ctx context.Context) (checks map[string]bool, ready bool) {
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

// ReadMetrics reads some of the operator's metrics that have no labels.
func (p *Process) ReadMetrics(ctx context.Context, into map[string]*float64) error {
	all, err := p.Metrics(ctx)
	if err != nil {
		return err
	}
	for name, target := range into {
		value, found := all[name]
		if !found {
			return fmt.Errorf("read the operator's metrics: there is no %s", name)
		}
		*target = value
	}
	return nil
}

// Metrics reads all of the operator's metrics, by name and labels as they are written there.
func (p *Process) Metrics(ctx context.Context) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.metrics+"/metrics", http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := p.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read the operator's metrics: %w", err)
	}
	defer response.Body.Close()
	all := map[string]float64{}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		line := lines.Text()
		end := strings.LastIndex(line, " ")
		if strings.HasPrefix(line, "#") || end < 0 {
			continue
		}
		if all[line[:end]], err = strconv.ParseFloat(line[end+1:], 64); err != nil {
			return nil, fmt.Errorf("read the operator's metric %s: %w", line[:end], err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the operator's metrics: %w", err)
	}
	return all, nil
}

// Tail is the end of the operator's log, for an error.
func (p *Process) Tail() string {
	content, err := os.ReadFile(p.log)
	if err != nil {
		return ""
	}
	const enough = 2000
	return "\nits log ends with:\n" + string(content[max(0, len(content)-enough):])
}

// PID is the process's number.
func (p *Process) PID() int { return p.command.Process.Pid }

// Until asks again and again, tightly.
func Until(ctx context.Context, what string, holds func() bool) error {
	for !holds() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
		case <-time.After(Look):
		}
	}
	return nil
}

// freeAddress returns a loopback address where no process listens.
func freeAddress(ctx context.Context) (string, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	address := listener.Addr().String()
	return address, listener.Close()
}
