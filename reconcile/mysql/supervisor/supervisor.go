// Package supervisor starts mysqld, starts it again after a crash, and decides how it is stopped. Its program is process 1 of the container
// that runs mysqld, and kubelet sends signals to it alone.
//
// On SIGTERM, mysqld tells sessions that wait for a replica's acknowledgement that their commits have succeeded (MySQL source,
// ReplSemiSyncMaster::commitTrx; seen on 9.7.4). So a mysqld to which clients may write never gets a SIGTERM. The agent first ends its
// sessions and makes it refuse writes. If the agent cannot, the supervisor sends SIGKILL, after which no client gets an answer.
package supervisor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	// closeTimeout is how long the agent may take to close mysqld before the supervisor sends SIGKILL.
	closeTimeout = 30 * time.Second
	// mostEnds is how often mysqld may end within endsPeriod and be started again. If it ends more often, the container ends, and kubelet
	// starts it again after a growing pause.
	mostEnds   = 5
	endsPeriod = time.Minute
)

// statusSignal is added to the number of the signal that ended a program, as in the exit status of a shell (POSIX, "Exit Status for
// Commands").
const statusSignal = 128

// Supervisor runs one mysqld at a time.
type Supervisor struct {
	// Command is the path of mysqld with its arguments.
	Command []string
	// RunDir is the folder of the socket for the agent, and of mysqld's own socket.
	RunDir string
	// Log receives messages in the format of mysqld's error log.
	Log io.Writer
	// Wait waits until a process ends.
	Wait func(pid int) (syscall.WaitStatus, error)
	// Attributes are those of the process; nil for the defaults.
	Attributes *syscall.SysProcAttr
	// CloseTimeout is how long the agent may take to close mysqld; 0 means half a minute.
	CloseTimeout time.Duration
	// Heard returns for how long the machine of a peer, which is connected to this port, has not acknowledged anything that was sent to it.
	Heard func(port uint16, peer netip.AddrPort) (time.Duration, error)

	// clock is the clock of leases, and lookEvery is how often the supervisor looks at the lease; Clock, leaseEvery and endsEvery except in
	// tests.
	clock     func() (time.Duration, error)
	lookEvery time.Duration
	// holdLimit is HoldLimit, and agentLimit is AgentLimit, except in tests.
	holdLimit, agentLimit time.Duration

	mu       sync.Mutex
	state    State
	lease    heldLease
	changed  chan struct{} // closed at the next change of state
	process  *os.Process
	answered bool
	watchers int
	ends     []time.Time
}

// Run starts mysqld, and again each time it ends after it has answered, until a signal stops it. It returns the exit status of the last
// mysqld. It acts on all signals that the channel delivers. The context does not end mysqld.
func (s *Supervisor) Run(ctx context.Context, signals <-chan os.Signal) (int, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	listener, err := s.listen(ctx)
	if err != nil {
		return 1, err
	}
	defer listener.Close()
	go s.serve(ctx, listener)
	go s.takeSignals(ctx, signals)
	go s.every(ctx, leaseEvery, s.renewLease)
	go s.every(ctx, endsEvery, s.endLease)
	s.awaitAgent()
	var last syscall.WaitStatus
	for s.mayStart() {
		if last, err = s.runOnce(); err != nil {
			return 1, err
		}
		if !s.ended(last, time.Now()) {
			break
		}
	}
	return exitStatus(last), nil
}

// runOnce runs mysqld until it ends. Meanwhile, nothing else changes its data.
func (s *Supervisor) runOnce() (syscall.WaitStatus, error) {
	locked, err := s.lockToStart()
	if err != nil {
		return 0, fmt.Errorf("lock the data of mysqld: %w", err)
	}
	defer locked.Close()
	pid, err := s.start()
	if err != nil {
		return 0, err
	}
	status, err := s.Wait(pid)
	if err != nil {
		return 0, fmt.Errorf("wait for mysqld: %w", err)
	}
	return status, nil
}

// start starts mysqld.
func (s *Supervisor) start() (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// mysqld refuses to start if a killed one has left these, and any process has its process ID now (seen on 9.7.4).
	for _, left := range []string{"mysqld.sock", "mysqld.sock.lock"} {
		if err := os.Remove(path.Join(s.RunDir, left)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, fmt.Errorf("remove what the last mysqld left: %w", err)
		}
	}
	process, err := os.StartProcess(s.Command[0], s.Command, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: s.Attributes})
	if err != nil {
		return 0, fmt.Errorf("start mysqld: %w", err)
	}
	s.process, s.answered, s.lease = process, false, heldLease{}
	s.state = State{Start: rand.Text(), Starts: s.state.Starts + 1, Running: true, Stopping: s.state.Stopping, Ended: s.state.Ended}
	s.broadcast()
	if s.state.Stopping {
		s.send(syscall.SIGTERM)
	}
	return process.Pid, nil
}

// ended records how mysqld ended. It reports whether to start it again. A mysqld that ends before it has answered cannot start, and kubelet
// shows why if the container ends with it.
func (s *Supervisor) ended(status syscall.WaitStatus, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends = slices.DeleteFunc(append(s.ends, now), func(end time.Time) bool { return now.Sub(end) > endsPeriod })
	startsAgain := s.answered && !s.state.Stopping && len(s.ends) <= mostEnds
	s.state = State{
		Start: s.state.Start, Starts: s.state.Starts, Stopping: s.state.Stopping, Ended: describe(status), LeaseLost: s.state.LeaseLost,
		Held: startsAgain && s.state.Open && hasCrashed(status) && s.watchers > 0,
	}
	s.broadcast()
	switch {
	case startsAgain:
		s.warn("mysqld ended (%s): the supervisor starts it again", s.state.Ended)
	case len(s.ends) > mostEnds:
		s.warn("mysqld ended (%s) for the %dth time within a minute: the container ends", s.state.Ended, len(s.ends))
	}
	return startsAgain
}

// takeSignals acts on signals until the context ends.
func (s *Supervisor) takeSignals(ctx context.Context, signals <-chan os.Signal) {
	for {
		select {
		case received := <-signals:
			s.signal(received)
		case <-ctx.Done():
			return
		}
	}
}

// signal stops mysqld on the signals that would end it, and passes others on.
func (s *Supervisor) signal(received os.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains([]os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR2}, received) {
		s.send(received)
		return
	}
	if s.state.Stopping {
		return
	}
	s.state.Stopping = true
	s.broadcast()
	if !s.state.Open {
		s.send(syscall.SIGTERM)
		return
	}
	limit := s.CloseTimeout
	if limit == 0 {
		limit = closeTimeout
	}
	time.AfterFunc(limit, s.killOpen)
}

// killOpen ends a mysqld that the agent has not closed.
func (s *Supervisor) killOpen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.Open {
		s.send(syscall.SIGKILL)
		go s.warn("the agent has not closed mysqld in time: the supervisor has killed it, and no client gets an answer")
	}
}

var errEnded = errors.New("this mysqld has ended")

// take carries out an announcement or an order.
func (s *Supervisor) take(asked message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if asked.Verb == Start {
		return s.orderStart(asked.Start)
	}
	if !s.state.Running || asked.Start != s.state.Start {
		return errEnded
	}
	switch asked.Verb {
	case Answered:
		s.answered = true
	case Open:
		if s.state.Stopping {
			return errors.New("mysqld stops")
		}
		s.setOpen(true)
	case Closed:
		s.setOpen(false)
		if s.state.Stopping {
			s.send(syscall.SIGTERM)
		}
	case Kill:
		s.send(syscall.SIGKILL)
	case Start, watch, lead, confirm: // answered elsewhere
	}
	return nil
}

// setOpen records whether clients may write. The caller must hold the lock.
func (s *Supervisor) setOpen(open bool) {
	if s.state.Open != open {
		s.state.Open = open
		s.broadcast()
	}
}

// send sends a signal to mysqld. The caller must hold the lock.
func (s *Supervisor) send(signal os.Signal) {
	if s.process != nil && s.state.Running {
		_ = s.process.Signal(signal) // it fails if mysqld has just ended
	}
}

// broadcast wakes all watchers. The caller must hold the lock.
func (s *Supervisor) broadcast() {
	if s.changed != nil {
		close(s.changed)
	}
	s.changed = make(chan struct{})
}

// now returns the state, and a channel that is closed when it changes.
func (s *Supervisor) now() (State, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.state, s.changed
}

// warn writes to the log. It waits while the log takes nothing, so what ends mysqld does not wait for it.
func (s *Supervisor) warn(format string, arguments ...any) {
	_, _ = fmt.Fprintf(s.Log, Program+": [Warning] "+format+"\n", arguments...)
}

func describe(status syscall.WaitStatus) string {
	if status.Signaled() {
		return "signal: " + status.Signal().String()
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}

func exitStatus(status syscall.WaitStatus) int {
	if status.Signaled() {
		return statusSignal + int(status.Signal())
	}
	return status.ExitStatus()
}
