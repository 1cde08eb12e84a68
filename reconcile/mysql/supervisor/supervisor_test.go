package supervisor

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// container is a supervisor whose mysqld is a shell script.
type container struct {
	t       *testing.T
	folder  string
	signals chan os.Signal
	exited  chan int
	// supervised is the supervisor.
	supervised *Supervisor
	// skipped is by how much its clock is ahead of Clock, and reads is how often it has read that.
	skipped, reads atomic.Int64

	mu   sync.Mutex
	seen State
	// heard is when the machines of replicas acknowledged a packet, by the supervisor's clock.
	heard map[netip.AddrPort]time.Duration
	// failed is what the kernel says about connections instead.
	failed error
	// leaves ends the connection of the agent.
	leaves context.CancelFunc
	// hold, unless nil, returns when the kernel may answer.
	hold func()
}

// run starts a supervisor. With a time-out of 0, the agent has a minute to close mysqld.
func run(t *testing.T, script string, timeout time.Duration) *container {
	t.Helper()
	short, err := os.MkdirTemp("", "s") //nolint:usetesting // the path of a socket has 107 characters at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	c := &container{t: t, folder: short, signals: make(chan os.Signal, 8), exited: make(chan int, 1)}
	c.skipped.Store(int64(24 * time.Hour)) // this machine may have started just now
	for _, left := range []string{"mysqld.sock", "mysqld.sock.lock", "supervisor.sock"} {
		if err := os.WriteFile(filepath.Join(short, left), []byte("1"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.supervised = &Supervisor{
		Command: []string{"/bin/sh", "-c", script, short}, RunDir: short, Log: t.Output(), Wait: waitFor,
		CloseTimeout: timeout, Heard: c.age, Attributes: &syscall.SysProcAttr{Setpgid: true},
		clock: c.read, lookEvery: 5 * time.Millisecond, holdLimit: time.Millisecond,
	}
	if timeout == 0 {
		c.supervised.CloseTimeout = time.Minute
	}
	go func() {
		status, err := c.supervised.Run(context.WithoutCancel(t.Context()), c.signals)
		if err != nil {
			t.Errorf("the supervisor fails: %v", err)
		}
		c.exited <- status
	}()
	watching, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(stop)
	t.Cleanup(c.ends)
	c.leaves = stop
	go func() {
		for watching.Err() == nil {
			_ = Watch(watching, Socket(short), c.sees)
			<-time.After(time.Millisecond)
		}
	}()
	return c
}

// ends kills a mysqld that still runs.
func (c *container) ends() {
	c.supervised.mu.Lock()
	defer c.supervised.mu.Unlock()
	c.supervised.state.Stopping = true
	if c.supervised.state.Running {
		c.supervised.send(syscall.SIGKILL)
	}
}

func waitFor(pid int) (syscall.WaitStatus, error) {
	for {
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &status, 0, nil); !errors.Is(err, syscall.EINTR) {
			return status, err
		}
	}
}

func (c *container) sees(now State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = now
}

// until waits for a state.
func (c *container) until(what string, holds func(State) bool) State {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	for {
		c.mu.Lock()
		now := c.seen
		c.mu.Unlock()
		if holds(now) {
			return now
		}
		select {
		case <-ctx.Done():
			c.t.Fatalf("timed out after a minute: %s; the state is %+v", what, now)
		case <-time.After(time.Millisecond):
		}
	}
}

// nth waits for the nth start.
func (c *container) nth(n int) State {
	c.t.Helper()
	return c.until("mysqld starts", func(now State) bool { return now.Starts == n && now.Running })
}

func (c *container) tell(verb Verb, start string) error {
	return Tell(c.t.Context(), Socket(c.folder), verb, start)
}

func (c *container) tells(verb Verb, start string) {
	c.t.Helper()
	if err := c.tell(verb, start); err != nil {
		c.t.Fatalf("%s: %v", verb, err)
	}
}

func (c *container) exits(want int) {
	c.t.Helper()
	select {
	case got := <-c.exited:
		if got != want {
			c.t.Errorf("exit status %d, want %d", got, want)
		}
	case <-time.After(time.Minute):
		c.t.Fatal("the supervisor did not end in a minute")
	}
}

// serving is a mysqld that ends on SIGTERM with status 3, and tells when it can do so.
const serving = `trap 'exit 3' TERM; touch $0/ready; while :; do sleep 0.01; done`

// ready waits until a serving mysqld can end.
func (c *container) ready() {
	c.t.Helper()
	c.until("mysqld has its handlers", func(State) bool {
		return os.Remove(filepath.Join(c.folder, "ready")) == nil
	})
}

// TestMysqldStartsAgain: a mysqld that has answered and ends is started again. The other ones show kubelet why they cannot start.
func TestMysqldStartsAgain(t *testing.T) {
	t.Parallel()
	c := run(t, serving, 0)
	c.holds(time.Hour)
	first := c.nth(1)
	for _, left := range []string{"mysqld.sock", "mysqld.sock.lock"} {
		if _, err := os.Stat(filepath.Join(c.folder, left)); err == nil {
			t.Errorf("the last mysqld's %s is still there", left)
		}
	}
	c.tells(Answered, first.Start)
	c.tells(Open, first.Start)
	c.tells(Kill, first.Start)
	c.tells(Start, c.held().Start)
	second := c.nth(2)
	if second.Start == first.Start || second.Open || second.Ended != "signal: killed" {
		t.Errorf("the second start is %+v, after %+v", second, first)
	}
	for _, verb := range []Verb{Answered, Open, Closed, Kill, Start} {
		if err := c.tell(verb, first.Start); err == nil {
			t.Errorf("%s of the former mysqld is accepted", verb)
		}
	}
	c.tells(Kill, second.Start)
	c.exits(statusSignal + int(syscall.SIGKILL))
}

// TestMysqldEndsTooOften: kubelet has growing pauses between starts.
func TestMysqldEndsTooOften(t *testing.T) {
	t.Parallel()
	c := run(t, serving, 0)
	for n := range mostEnds + 1 {
		now := c.nth(n + 1)
		c.tells(Answered, now.Start)
		c.tells(Kill, now.Start)
	}
	c.exits(statusSignal + int(syscall.SIGKILL))
}

// TestAClosedMysqldGetsSIGTERM: mysqld takes no writes, so it can stop at once.
func TestAClosedMysqldGetsSIGTERM(t *testing.T) {
	t.Parallel()
	for _, sent := range []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR2} {
		c := run(t, serving, 0)
		now := c.nth(1)
		c.tells(Answered, now.Start)
		c.tells(Open, now.Start)
		c.tells(Closed, now.Start)
		c.ready()
		c.signals <- sent
		c.exits(3)
	}
}

// TestAnOpenMysqldIsClosedFirst: it gets SIGTERM when the agent has closed it, and not before.
func TestAnOpenMysqldIsClosedFirst(t *testing.T) {
	t.Parallel()
	c := run(t, serving, 0)
	now := c.nth(1)
	c.tells(Answered, now.Start)
	c.tells(Open, now.Start)
	c.ready()
	c.signals <- syscall.SIGTERM
	c.signals <- syscall.SIGTERM
	c.until("the agent sees that it must close mysqld", func(now State) bool { return now.Stopping && now.Open && now.Running })
	select {
	case status := <-c.exited:
		t.Fatalf("mysqld ended with %d before it was closed", status)
	case <-time.After(50 * time.Millisecond):
	}
	if err := c.tell(Open, now.Start); err == nil || !strings.Contains(err.Error(), "stops") {
		t.Errorf("a mysqld that stops may be opened: %v", err)
	}
	c.tells(Closed, now.Start)
	c.exits(3)
}

// TestAnOpenMysqldIsKilledWithoutItsAgent: no client gets an answer.
func TestAnOpenMysqldIsKilledWithoutItsAgent(t *testing.T) {
	t.Parallel()
	c := run(t, serving, 50*time.Millisecond)
	now := c.nth(1)
	c.tells(Answered, now.Start)
	c.tells(Open, now.Start)
	c.ready()
	c.signals <- syscall.SIGTERM
	c.exits(statusSignal + int(syscall.SIGKILL))
}

// TestAnswersAreBounded: the socket is open to all programs of the user that runs mysqld.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	c := run(t, serving, 0)
	now := c.nth(1)
	if err := c.tell("Dance", now.Start); err == nil {
		t.Error("an unknown verb is accepted")
	}
	if err := c.tell(Open, strings.Repeat("x", 2*longestLine)); err == nil {
		t.Error("a message without an end is accepted")
	}
	c.ready()
	c.signals <- syscall.SIGTERM
	c.exits(3)
}
