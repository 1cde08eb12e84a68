package vcenter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// Program is the name of the helper's program. It is in the folder of the operator's program.
const Program = "mysql-operator-vsphere"

const (
	// restHelper is the pause after a helper that could not start, or ended itself.
	restHelper = 5 * time.Second
	// graceHelper is how long a helper may take to end its sessions when it must end. After that, End kills it.
	graceHelper = 5 * time.Second
	// pingHelper is how long a helper may be silent before it is pinged, and how long it may take to answer. Both together are shorter than
	// a pass.
	pingHelper = 15 * time.Second
)

// Process is an API that a helper process serves. The first call starts the helper, and so does a call after it has ended or hung. The
// creator of a Process must end it (End). If that is not possible, the helper's standard input ends with the operator, and so does the
// helper.
type Process struct {
	path string
	now  func() time.Time
	// ping and grace are pingHelper and graceHelper; tests set others.
	ping, grace time.Duration

	mu      sync.Mutex
	current *helper
	// wrong is why there is no helper, until a new one may be started.
	wrong *Error
	until time.Time
}

// helper is a running helper.
type helper struct {
	client
	input   io.Closer
	process *os.Process
	ended   chan struct{}
}

// end closes a helper's input, so that the helper ends its sessions and then itself. end kills a helper that takes longer than grace.
func (h *helper) end(grace time.Duration) {
	_ = h.input.Close() // if this has no effect, the helper is killed
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case <-h.ended:
		return
	case <-late.C:
	}
	_ = h.process.Kill() // it fails only if the process has ended
	<-h.ended
}

// NewProcess returns an API of the helper with this path.
func NewProcess(path string, now func() time.Time) *Process {
	return &Process{path: path, now: now, ping: pingHelper, grace: graceHelper}
}

// HelperPath returns the path of the helper: in the folder of the running program, else in PATH.
func HelperPath() string {
	own, err := os.Executable()
	if err == nil {
		beside := filepath.Join(filepath.Dir(own), Program)
		if _, err := os.Stat(beside); err == nil {
			return beside
		}
	}
	return Program
}

// Look implements API.
func (p *Process) Look(ctx context.Context, group Group) (Inventory, error) {
	found := Inventory{}
	err := p.call(ctx, pathLook, group, &found)
	return found, err
}

// Do implements API.
func (p *Process) Do(ctx context.Context, order Order) error {
	return p.call(ctx, pathDo, order, &struct{}{})
}

func (p *Process) call(ctx context.Context, path string, question, told any) error {
	one, err := p.helper()
	if err != nil {
		return err
	}
	err = one.call(ctx, path, question, told)
	var known *Error
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return p.lost(one, fmt.Errorf("ask the helper %s: %w", Program, err))
}

// helper returns the running helper, or starts one.
func (p *Process) helper() (*helper, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != nil {
		select {
		case <-p.current.ended:
			p.current = nil
		default:
			return p.current, nil
		}
	}
	if left := p.until.Sub(p.now()); p.wrong != nil && left > 0 {
		return nil, &Error{Reason: p.wrong.Reason, Message: p.wrong.Message, After: left}
	}
	started, err := start(p.path, p.ping)
	if err != nil {
		return nil, p.failed(fmt.Sprintf("%v: the operator's image has %s next to the operator; to run without that image, put it into PATH", err, Program))
	}
	p.current, p.wrong = started, nil
	return started, nil
}

// End ends the helper, if one runs, and returns when it has ended, which takes a few seconds at most. In a container the helper does not
// outlive the operator, and vCenters keep sessions that it does not end for half an hour. A later call starts another helper.
func (p *Process) End() {
	p.mu.Lock()
	one := p.current
	p.current = nil
	p.mu.Unlock()
	if one != nil {
		one.end(p.grace)
	}
}

// lost records that a helper no longer answers.
func (p *Process) lost(one *helper, cause error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == one {
		// A helper that is in a wrong state, or hangs, must end too. The caller does not wait for that.
		go one.end(p.grace)
		p.current = nil
	}
	return p.failed(cause.Error() + ": the operator starts it again")
}

// failed records why there is no helper. The caller holds p.mu.
func (p *Process) failed(why string) *Error {
	p.wrong = &Error{Reason: HelperNotRunning, Message: why, After: restHelper}
	p.until = p.now().Add(restHelper)
	return p.wrong
}

// start starts a helper. It outlives the call that it was started for, and ends when its standard input ends.
func start(path string, ping time.Duration) (*helper, error) {
	command := exec.Command(path) //nolint:noctx,gosec // it ends with this process, not with the first caller; the path is the operator's own
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", Program, err)
	}
	// This pipe is separate, because Wait must not close one that is still read.
	out, theirs, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", Program, err)
	}
	command.Stdout = theirs
	err = command.Start()
	theirs.Close()
	if err != nil {
		out.Close()
		return nil, fmt.Errorf("start %s: %w", Program, err)
	}
	one := &helper{client: newClient(Pipe(out, in), ping), input: in, process: command.Process, ended: make(chan struct{})}
	go func() {
		defer close(one.ended)
		// How it ended does not matter: the next call starts another.
		_ = command.Wait()
	}()
	return one, nil
}
