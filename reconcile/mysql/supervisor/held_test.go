package supervisor

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// holds sets for how long the supervisor waits for the agent.
func (c *container) holds(limit time.Duration) {
	c.supervised.mu.Lock()
	defer c.supervised.mu.Unlock()
	c.supervised.holdLimit = limit
}

// held waits until the supervisor holds the start of mysqld.
func (c *container) held() State {
	c.t.Helper()
	return c.until("the start is held", func(now State) bool { return now.Held && !now.Running && !now.Open })
}

// crashes ends a mysqld to which clients could write.
func (c *container) crashes() State {
	c.t.Helper()
	now := c.nth(1)
	c.tells(Answered, now.Start)
	c.tells(Open, now.Start)
	c.ready()
	c.tells(Kill, now.Start)
	now = c.held()
	if now.LeaseLost {
		c.t.Errorf("it has ended with its lease: %+v", now)
	}
	return now
}

// TestTheStartAfterACrashIsHeld until the agent orders it, or is not there to do so.
func TestTheStartAfterACrashIsHeld(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		limit time.Duration
		then  func(*container, State)
	}{
		"the agent orders it": {time.Hour, func(c *container, now State) {
			if err := c.tell(Start, "another"); err == nil {
				c.t.Error("the order for another start is accepted")
			}
			c.tells(Start, now.Start)
		}},
		"the agent is gone":        {time.Hour, func(c *container, _ State) { c.leaves() }},
		"the agent takes too long": {500 * time.Millisecond, func(*container, State) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := run(t, serving, 0)
			c.holds(test.limit)
			test.then(c, c.crashes())
			c.ready()
			c.supervised.mu.Lock()
			now := c.supervised.state
			c.supervised.mu.Unlock()
			if !now.Running || now.Held || now.Starts != 2 {
				t.Errorf("the next start is %+v", now)
			}
			c.signals <- syscall.SIGTERM
			c.exits(3)
		})
	}
}

// TestNoStartIsHeldAfterAShutdown: mysqld has told clients that commits which waited for replicas have succeeded. RESTART ends it with
// status 16.
func TestNoStartIsHeldAfterAShutdown(t *testing.T) {
	t.Parallel()
	c := run(t, `touch $0/ready; while [ ! -e $0/shut ]; do sleep 0.01; done; rm $0/shut; exit 16`, 0)
	c.holds(time.Hour)
	now := c.nth(1)
	c.tells(Answered, now.Start)
	c.tells(Open, now.Start)
	if err := os.WriteFile(filepath.Join(c.folder, "shut"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if now := c.nth(2); now.Ended != "exit status 16" {
		t.Errorf("mysqld ended with %s", now.Ended)
	}
}

// TestNoStartIsHeldOfAContainerThatEnds, because mysqld ended too often.
func TestNoStartIsHeldOfAContainerThatEnds(t *testing.T) {
	t.Parallel()
	c := run(t, serving, 0)
	for i := 1; i <= mostEnds+1; i++ {
		now := c.nth(i)
		c.tells(Answered, now.Start)
		c.tells(Open, now.Start)
		c.tells(Kill, now.Start)
	}
	c.exits(statusSignal + int(syscall.SIGKILL))
	c.supervised.mu.Lock()
	defer c.supervised.mu.Unlock()
	if c.supervised.state.Held {
		t.Error("the start is held")
	}
}

// TestNoMysqldStartsWhileItsDataIsLocked, and the data cannot be locked while one runs.
func TestNoMysqldStartsWhileItsDataIsLocked(t *testing.T) {
	t.Parallel()
	c := run(t, serving, 0)
	c.holds(time.Hour)
	c.nth(1)
	if _, err := LockData(c.folder); err == nil {
		t.Fatal("the data of a mysqld that runs can be locked")
	}
	now := c.crashes()
	release, err := LockData(c.folder)
	if err != nil {
		t.Fatal(err)
	}
	c.tells(Start, now.Start)
	c.until("the start is not held", func(now State) bool { return !now.Held })
	<-time.After(10 * lockEvery)
	c.supervised.mu.Lock()
	starts := c.supervised.state.Starts
	c.supervised.mu.Unlock()
	if starts != 1 {
		t.Error("mysqld has started while its data was locked")
	}
	release()
	c.nth(2)
}

// TestNoStartIsHeldOfAContainerThatStops: kubelet waits for it.
func TestNoStartIsHeldOfAContainerThatStops(t *testing.T) {
	t.Parallel()
	c := run(t, serving, 0)
	c.holds(time.Hour)
	c.crashes()
	c.signals <- syscall.SIGTERM
	c.exits(statusSignal + int(syscall.SIGKILL))
}

// TestAClosedMysqldStartsAtOnce: no commit waits on it.
func TestAClosedMysqldStartsAtOnce(t *testing.T) {
	t.Parallel()
	c := run(t, serving, 0)
	now := c.nth(1)
	c.tells(Answered, now.Start)
	c.tells(Open, now.Start)
	c.tells(Closed, now.Start)
	c.tells(Kill, now.Start)
	c.nth(2)
}

// TestTheFirstStartWaitsForTheAgent, for a while.
func TestTheFirstStartWaitsForTheAgent(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		limit time.Duration
		then  func(*Supervisor)
		want  bool
	}{
		"it watches":             {time.Hour, func(s *Supervisor) { s.watched(+1) }, true},
		"it does not":            {10 * time.Millisecond, func(*Supervisor) {}, true},
		"the container stops":    {time.Hour, func(s *Supervisor) { s.signal(syscall.SIGTERM) }, true},
		"it has not watched yet": {time.Hour, func(*Supervisor) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &Supervisor{Log: t.Output(), agentLimit: test.limit}
			ended := make(chan struct{})
			go func() {
				s.awaitAgent()
				close(ended)
			}()
			test.then(s)
			select {
			case <-ended:
				if !test.want {
					t.Error("mysqld starts")
				}
			case <-time.After(map[bool]time.Duration{true: time.Minute, false: 100 * time.Millisecond}[test.want]):
				if test.want {
					t.Error("mysqld does not start")
				}
				s.watched(+1)
				<-ended
			}
		})
	}
}
