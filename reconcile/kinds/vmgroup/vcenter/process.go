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

// Program is the name of the helper's program. It is beside the operator's.
const Program = "mysql-operator-vsphere"

const (
	// restHelper is the pause after a helper that could not be started, or ended by itself.
	restHelper = 5 * time.Second
	// graceHelper is how long a helper that is told to end may take to end its sessions. Then it is killed.
	graceHelper = 5 * time.Second
	// pingHelper is after how long a helper that says nothing is asked whether it hangs, and how long it has to answer. Both fit a pass.
	pingHelper = 15 * time.Second
)

// Process is an API that a helper process serves. It is started with the first question, and again after it has ended or hung. Whoever
// makes one ends it (End); where that cannot be, its standard input ends with the operator, and so it does.
type Process struct {
	path string
	now  func() time.Time
	// ping and grace are pingHelper and graceHelper.
	ping, grace time.Duration

	mu      sync.Mutex
	current *helper
	// wrong is why there is no helper, until a next one may be tried.
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

// end ends a helper's input, and so the helper, which ends its sessions first. One that takes longer than grace is killed.
func (h *helper) end(grace time.Duration) {
	_ = h.input.Close() // it is killed if this does nothing
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case <-h.ended:
		return
	case <-late.C:
	}
	_ = h.process.Kill() // it fails only for what has ended
	<-h.ended
}

// NewProcess makes an API of the helper with this path.
func NewProcess(path string, now func() time.Time) *Process {
	return &Process{path: path, now: now, ping: pingHelper, grace: graceHelper}
}

// Beside is the path of the helper: beside the program that asks, else in PATH.
func Beside() string {
	own, err := os.Executable()
	if err == nil {
		beside := filepath.Join(filepath.Dir(own), Program)
		if _, err := os.Stat(beside); err == nil {
			return beside
		}
	}
	return Program
}

// Look is API's.
func (p *Process) Look(ctx context.Context, group Group) (Inventory, error) {
	found := Inventory{}
	err := p.call(ctx, pathLook, group, &found)
	return found, err
}

// Do is API's.
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
		return nil, p.failed(fmt.Sprintf("%v: the operator's image has %s beside the operator; where it runs without that image, put it into PATH", err, Program))
	}
	p.current, p.wrong = started, nil
	return started, nil
}

// End ends the helper, if one runs, and returns when it has ended, which takes a few seconds at most: in a container it does not outlive
// the operator, and sessions that it does not end the vCenters keep for half an hour. The next question would start another.
func (p *Process) End() {
	p.mu.Lock()
	one := p.current
	p.current = nil
	p.mu.Unlock()
	if one != nil {
		one.end(p.grace)
	}
}

// lost notes that a helper does not answer any more.
func (p *Process) lost(one *helper, cause error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == one {
		// One that is only confused, or hangs, has to end, too. Who asked does not wait for that.
		go one.end(p.grace)
		p.current = nil
	}
	return p.failed(cause.Error() + ": it is started again")
}

// failed notes why there is no helper; p.mu is held.
func (p *Process) failed(why string) *Error {
	p.wrong = &Error{Reason: NoHelper, Message: why, After: restHelper}
	p.until = p.now().Add(restHelper)
	return p.wrong
}

// start starts a helper. It outlives the question that it is started for, and ends when its standard input does.
func start(path string, ping time.Duration) (*helper, error) {
	command := exec.Command(path) //nolint:noctx,gosec // it ends with this process, and not with whoever asked first; the path is the operator's own
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", Program, err)
	}
	// A pipe of our own: Wait must not close what is still read.
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
		// How it ended is of no use: whoever asks next starts another.
		_ = command.Wait()
	}()
	return one, nil
}
