package supervisor

import (
	"errors"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/sockets"
)

// age returns for how long a replica's machine has not acknowledged a packet.
func (c *container) age(_ uint16, replica netip.AddrPort) (time.Duration, error) {
	c.mu.Lock()
	hold := c.hold
	c.mu.Unlock()
	if hold != nil {
		hold()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed != nil {
		return 0, c.failed
	}
	heard, found := c.heard[replica]
	if !found {
		return 0, sockets.ErrNotConnected
	}
	return c.clock() - heard, nil
}

// read reads the supervisor's clock.
func (c *container) read() (time.Duration, error) {
	c.reads.Add(1)
	return c.clock(), nil
}

func (c *container) clock() time.Duration {
	now, err := Clock()
	if err != nil {
		c.t.Errorf("no clock: %v", err)
	}
	return now + time.Duration(c.skipped.Load())
}

// skip has the supervisor's clock go forward, and waits until the supervisor has looked at the lease several times after that.
func (c *container) skip(by time.Duration) {
	c.t.Helper()
	c.skipped.Add(int64(by))
	before := c.reads.Load()
	c.until("the supervisor looks at the lease", func(State) bool { return c.reads.Load() >= before+10 })
}

// renews waits until the supervisor has renewed the lease by itself, with evidence of the last minute.
func (c *container) renews() {
	c.t.Helper()
	now := c.clock()
	c.until("the supervisor renews the lease", func(State) bool {
		c.supervised.mu.Lock()
		defer c.supervised.mu.Unlock()
		return c.supervised.lease.since > now-time.Minute
	})
}

// hear has the machines of replicas acknowledge a packet after a time that has passed; all others are not connected.
func (c *container) hear(ago time.Duration, replicas ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = map[netip.AddrPort]time.Duration{}
	for _, replica := range replicas {
		c.heard[netip.MustParseAddrPort(replica)] = c.clock() - ago
	}
}

func (c *container) leads(start string, needs int, lasts time.Duration, change func(*Lease)) (time.Duration, error) {
	left, _, err := c.tries(start, needs, lasts, change)
	return left, err
}

func (c *container) tries(start string, needs int, lasts time.Duration, change func(*Lease)) (time.Duration, bool, error) {
	lease := Lease{Needs: needs, Port: 3306, Lasts: lasts}
	for _, replica := range []string{replicaOne, replicaTwo, replicaThree} {
		lease.Replicas = append(lease.Replicas, netip.MustParseAddrPort(replica))
	}
	if change != nil {
		change(&lease)
	}
	return Lead(c.t.Context(), Socket(c.folder), start, lease)
}

const (
	replicaOne   = "10.0.0.1:40001"
	replicaTwo   = "10.0.0.2:40002"
	replicaThree = "[fd00::3]:40003"
)

// TestALeaseNeedsEvidence: before it is in force. Later the same need keeps what there was, and a higher one needs its own.
func TestALeaseNeedsEvidence(t *testing.T) {
	t.Parallel()
	c := run(t, serving, 0)
	now := c.nth(1)
	const lasts = time.Hour
	refused := func(what string, needs int, change func(*Lease)) {
		t.Helper()
		if left, err := c.leads(now.Start, needs, lasts, change); err == nil || !strings.Contains(err.Error(), "replicas were connected") {
			t.Errorf("%s: the lease is in force for %s (%v)", what, left, err)
		}
	}
	holds := func(what string, needs int, least, most time.Duration, change func(*Lease)) {
		t.Helper()
		if left, err := c.leads(now.Start, needs, lasts, change); err != nil || left < least || left > most {
			t.Errorf("%s: the lease lasts for %s (%v), want %s to %s", what, left, err, least, most)
		}
	}
	refused("no replica", 1, nil)
	c.hear(2*lasts, replicaOne)
	refused("a replica that was not heard for long", 1, nil)
	c.hear(lasts/2, replicaOne)
	refused("one replica of two", 2, nil)
	holds("one replica", 1, lasts/2-time.Minute, lasts/2, nil)
	c.hear(0)
	holds("its connection has ended", 1, lasts/2-time.Minute, lasts/2, nil)
	holds("the operator confirms", 1, lasts-time.Minute, lasts, func(l *Lease) { l.Confirmed = c.clock() })
	holds("the operator confirmed earlier", 1, lasts-time.Minute, lasts, func(l *Lease) { l.Confirmed = c.clock() - lasts/2 })
	holds("a time that has not come", 1, lasts-time.Minute, lasts, func(l *Lease) { l.Confirmed = c.clock() + lasts })
	holds("a shorter one", 1, lasts/4-time.Minute, lasts/4, func(l *Lease) { l.Lasts = lasts / 4 })
	holds("a longer one", 1, lasts-time.Minute, lasts, nil)
	refused("two are needed", 2, nil)
	c.hear(lasts/4, replicaOne, replicaThree)
	holds("two replicas", 2, 3*lasts/4-time.Minute, 3*lasts/4, nil)
	holds("the operator confirms for two", 2, lasts-time.Minute, lasts, func(l *Lease) { l.Confirmed = c.clock() })
	if err := Confirm(t.Context(), Socket(c.folder), now.Start, c.clock()); err != nil {
		t.Error(err)
	}
	c.hear(0, replicaOne, replicaThree)
	if _, isHeard, err := c.tries(now.Start, 2, lasts, nil); err != nil || !isHeard {
		t.Errorf("two replicas are heard: %t (%v)", isHeard, err)
	}
	if _, isHeard, err := c.tries(now.Start, 2, lasts, func(l *Lease) { l.Replicas = []netip.AddrPort{l.Replicas[0], l.Replicas[0]} }); err != nil || isHeard {
		t.Errorf("one replica counts twice: %t (%v)", isHeard, err)
	}
	if _, isHeard, err := c.tries(now.Start, 2, lasts, func(l *Lease) { l.After = c.clock() }); err != nil || isHeard {
		t.Errorf("the lease rests on replicas that were heard before the operator confirmed it: %t (%v)", isHeard, err)
	}
	if _, isHeard, err := c.tries(now.Start, 2, lasts, nil); err != nil || isHeard {
		t.Errorf("the agent has started again, and the supervisor forgets that: %t (%v)", isHeard, err)
	}
	c.hear(0, replicaOne, replicaThree)
	if _, isHeard, err := c.tries(now.Start, 2, lasts, nil); err != nil || !isHeard {
		t.Errorf("they are heard again: %t (%v)", isHeard, err)
	}
	if err := Confirm(t.Context(), Socket(c.folder), now.Start, c.clock()); err != nil {
		t.Error(err)
	}
	if _, isHeard, err := c.tries(now.Start, 2, lasts, nil); err != nil || isHeard {
		t.Errorf("the operator has confirmed it since: %t (%v)", isHeard, err)
	}
	holds("none is needed", 0, lasts-time.Minute, lasts, nil)
	if _, err := c.leads("another start", 1, lasts, nil); err == nil {
		t.Error("another mysqld has a lease")
	}
	if err := Confirm(t.Context(), Socket(c.folder), "another start", c.clock()); err == nil {
		t.Error("another mysqld is confirmed")
	}
	for _, failed := range []error{syscall.EPERM, syscall.ENOBUFS} {
		c.mu.Lock()
		c.failed = failed
		c.mu.Unlock()
		_, err := c.leads(now.Start, 1, lasts, func(l *Lease) { l.Confirmed = c.clock() })
		if isForever := errors.Is(err, ErrNoLease); err == nil || isForever != errors.Is(failed, syscall.EPERM) {
			t.Errorf("the kernel says nothing (%v), and there is a lease, or never one: %v", failed, err)
		}
	}
	c.ready()
	c.tells(Kill, now.Start)
	c.exits(137)
}

// TestALeaseThatIsRefusedHasTheNewAddresses: until more replicas are connected, the former need counts those that are.
func TestALeaseThatIsRefusedHasTheNewAddresses(t *testing.T) {
	t.Parallel()
	one, two := netip.MustParseAddrPort(replicaOne), netip.MustParseAddrPort(replicaTwo)
	held := heldLease{Lease: Lease{Needs: 1, Port: 3306, Replicas: []netip.AddrPort{one}, Lasts: time.Minute}, since: time.Hour}
	asked := heldLease{Lease: Lease{Needs: 2, Port: 3306, Replicas: []netip.AddrPort{two}, Lasts: time.Minute}}
	got, err := held.replacedBy(asked, time.Hour)
	if err == nil || got.Needs != 1 || got.since != time.Hour || len(got.Replicas) != 1 || got.Replicas[0] != two {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestAShorterLeaseThatHasEndedIsRefused: what mysqld has lasts on.
func TestAShorterLeaseThatHasEndedIsRefused(t *testing.T) {
	t.Parallel()
	held := heldLease{Lease: Lease{Needs: 1, Lasts: 20 * time.Second}, since: time.Hour}
	brief := heldLease{Lease: Lease{Needs: 1, Lasts: 6 * time.Second}}
	now := time.Hour + 10*time.Second
	if got, err := held.replacedBy(brief, now); err == nil || got.left(now) != 10*time.Second {
		t.Errorf("it lasts for %s, %v", got.left(now), err)
	}
	brief.since = now - time.Second
	if got, err := held.replacedBy(brief, now); err != nil || got.left(now) != 5*time.Second {
		t.Errorf("with evidence of a second ago, it lasts for %s, %v", got.left(now), err)
	}
}

// TestMysqldIsKilledAlthoughTheLogHangs: its pipe is full.
func TestMysqldIsKilledAlthoughTheLogHangs(t *testing.T) {
	t.Parallel()
	blocked := make(chan struct{})
	defer close(blocked)
	process, err := os.StartProcess("/bin/sleep", []string{"sleep", "60"}, &os.ProcAttr{Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}})
	if err != nil {
		t.Fatal(err)
	}
	for what, end := range map[string]func(*Supervisor){"its lease has ended": (*Supervisor).endLease, "the agent does not close it": (*Supervisor).killOpen} {
		s := &Supervisor{Log: hangingLog(blocked), process: process, state: State{Running: true, Open: true}, lease: heldLease{Lease: Lease{Needs: 1, Lasts: time.Second}, since: 1}}
		ended := make(chan struct{})
		go func() {
			end(s)
			close(ended)
		}()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatalf("%s: the supervisor waits for its log", what)
		}
	}
	if state, err := process.Wait(); err != nil || state.String() != "signal: killed" {
		t.Errorf("mysqld ended with %v, %v", state, err)
	}
}

// hangingLog takes nothing until it is closed.
type hangingLog chan struct{}

func (l hangingLog) Write(line []byte) (int, error) {
	<-l
	return len(line), nil
}

// TestMessagesCountInTheOrderInWhichTheyWereSent: a supervisor that was stopped gets two at once, and the sender of the first has given up.
func TestMessagesCountInTheOrderInWhichTheyWereSent(t *testing.T) {
	t.Parallel()
	s := &Supervisor{state: State{Running: true, Start: "one"}}
	first := message{Verb: lead, Start: "one", Lease: &Lease{}, Sent: time.Hour}
	second := message{Verb: lead, Start: "one", Lease: &Lease{Needs: 0, Lasts: time.Minute}, Sent: time.Hour + 1}
	for _, asked := range []message{second, second} {
		if _, _, err := s.lead(asked); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.lead(first); err == nil || s.lease.Lasts != time.Minute {
		t.Errorf("the first message counts after the second: %+v, %v", s.lease, err)
	}
}

// TestAMessageThatTheKernelDelaysIsRefused: its sender has given up, and may have sent another one.
func TestAMessageThatTheKernelDelaysIsRefused(t *testing.T) {
	t.Parallel()
	c := run(t, serving, 0)
	now := c.nth(1)
	c.hear(0, replicaOne)
	var isAsked atomic.Bool
	answers, late := make(chan struct{}), make(chan error)
	c.mu.Lock()
	c.hold = func() {
		isAsked.Store(true)
		<-answers
	}
	c.mu.Unlock()
	go func() {
		_, err := c.leads(now.Start, 0, 0, nil)
		late <- err
	}()
	c.until("the supervisor looks at connections", func(State) bool { return isAsked.Load() })
	c.mu.Lock()
	c.hold = nil
	c.mu.Unlock()
	if _, err := c.leads(now.Start, 1, time.Hour, nil); err != nil {
		t.Fatal(err)
	}
	close(answers)
	if err := <-late; err == nil || !strings.Contains(err.Error(), "a later one") {
		t.Errorf("the message of before: %v", err)
	}
	c.supervised.mu.Lock()
	needs := c.supervised.lease.Needs
	c.supervised.mu.Unlock()
	if needs != 1 {
		t.Errorf("the lease is for %d replicas", needs)
	}
	c.ready()
	c.tells(Kill, now.Start)
	c.exits(137)
}

// TestAConfirmationFailsForOneReason: it says only what is wrong.
func TestAConfirmationFailsForOneReason(t *testing.T) {
	t.Parallel()
	broken := errors.New("no clock")
	s := &Supervisor{clock: func() (time.Duration, error) { return 0, broken }}
	if err := s.confirm(message{Lease: &Lease{}}); err == nil || err.Error() != broken.Error() {
		t.Errorf("without a clock: %v", err)
	}
	if err := s.confirm(message{}); err == nil || errors.Is(err, broken) {
		t.Errorf("without a confirmation: %v", err)
	}
}

// TestMysqldEndsWithItsLease: an open one, and only then.
func TestMysqldEndsWithItsLease(t *testing.T) {
	t.Parallel()
	c := run(t, serving, 0)
	first := c.nth(1)
	c.ready()
	c.tells(Answered, first.Start)
	confirmed := func(l *Lease) { l.Confirmed = c.clock() }
	c.holds(time.Hour)
	const lasts = time.Hour
	if _, err := c.leads(first.Start, 1, lasts, confirmed); err != nil {
		t.Fatal(err)
	}
	c.skip(2 * lasts)
	if now, _ := c.leads(first.Start, 0, lasts, nil); now > 0 {
		t.Errorf("the lease lasts for %s", now)
	}
	c.until("a closed mysqld runs on without its lease", func(now State) bool { return now.Starts == 1 && now.Running })
	c.hear(0, replicaTwo)
	if _, err := c.leads(first.Start, 1, lasts, nil); err != nil {
		t.Fatal(err)
	}
	c.hear(0)
	c.tells(Open, first.Start)
	c.skip(lasts - time.Minute)
	c.until("an open mysqld runs as long as its lease lasts", func(now State) bool { return now.Starts == 1 && now.Running && now.Open })
	c.skip(time.Minute)
	if held := c.held(); !held.LeaseLost {
		t.Errorf("it has not ended with its lease: %+v", held)
	}
	c.tells(Start, first.Start)
	second := c.nth(2)
	if second.Ended != "signal: killed" || second.Open || second.LeaseLost {
		t.Errorf("%+v", second)
	}
	c.tells(Answered, second.Start)
	c.tells(Open, second.Start)
	c.ready()
	c.skip(2 * lasts) // it needs no lease
	c.until("it runs", func(now State) bool { return now.Starts == 2 && now.Running && now.Open })
	c.tells(Closed, second.Start)
	c.signals <- syscall.SIGTERM
	c.exits(3)
}

// TestALeaseLastsWhileReplicasAreConnected: also without an agent. Then it lasts while the operator confirms.
func TestALeaseLastsWhileReplicasAreConnected(t *testing.T) {
	t.Parallel()
	c := run(t, serving, 0)
	now := c.nth(1)
	c.ready()
	c.tells(Answered, now.Start)
	const lasts = time.Hour
	c.hear(0, replicaTwo)
	if _, err := c.leads(now.Start, 1, lasts, nil); err != nil {
		t.Fatal(err)
	}
	c.tells(Open, now.Start)
	for range 12 {
		c.hear(0, replicaTwo)
		c.renews()
		c.skip(lasts / 10)
	}
	c.hear(0)
	for range 12 {
		if err := Confirm(t.Context(), Socket(c.folder), now.Start, c.clock()); err != nil {
			t.Fatal(err)
		}
		c.skip(lasts / 10)
	}
	c.until("mysqld runs until its lease ends", func(now State) bool { return now.Starts == 1 && now.Running })
	c.skip(lasts)
	if again := c.nth(2); again.Ended != "signal: killed" {
		t.Errorf("%+v", again)
	}
	c.ready()
	c.signals <- syscall.SIGTERM
	c.exits(3)
}

// TestALeaseEndsAlthoughTheKernelHangs: a look at connections that does not return delays nothing.
func TestALeaseEndsAlthoughTheKernelHangs(t *testing.T) {
	t.Parallel()
	c := run(t, serving, 0)
	first := c.nth(1)
	c.ready()
	c.tells(Answered, first.Start)
	const lasts = time.Hour
	c.hear(0, replicaOne)
	if _, err := c.leads(first.Start, 1, lasts, nil); err != nil {
		t.Fatal(err)
	}
	c.tells(Open, first.Start)
	var isAsked atomic.Bool
	answers := make(chan struct{})
	c.mu.Lock()
	c.hold = func() {
		isAsked.Store(true)
		<-answers
	}
	c.mu.Unlock()
	c.until("the supervisor looks at connections", func(State) bool { return isAsked.Load() })
	c.until("mysqld runs until its lease ends", func(now State) bool { return now.Starts == 1 && now.Running && now.Open })
	c.skip(lasts)
	if second := c.nth(2); second.Ended != "signal: killed" {
		t.Errorf("%+v", second)
	}
	close(answers)
	c.ready()
	c.signals <- syscall.SIGTERM
	c.exits(3)
}

// TestNoEvidenceSoonAfterTheMachineStarted: its clock shows less than a lease lasts.
func TestNoEvidenceSoonAfterTheMachineStarted(t *testing.T) {
	t.Parallel()
	now, asked := 5*time.Second, heldLease{Lease: Lease{Needs: 1, Lasts: 20 * time.Second}}
	if left := asked.left(now); left != 0 {
		t.Errorf("without any evidence, the lease lasts for %s", left)
	}
	if _, err := (heldLease{}).replacedBy(asked, now); err == nil {
		t.Error("a lease without evidence is accepted")
	}
	asked.since = now - time.Second
	if left := asked.left(now); left != 19*time.Second {
		t.Errorf("a second after the evidence, the lease lasts for %s", left)
	}
}

// runPrimary runs a primary that hears one replica and has a lease of an hour.
func runPrimary(t *testing.T) (*container, State) {
	t.Helper()
	c := run(t, serving, 0)
	now := c.nth(1)
	c.ready()
	c.tells(Open, now.Start)
	c.hear(0, replicaOne)
	if _, err := c.leads(now.Start, 1, time.Hour, nil); err != nil {
		t.Fatal(err)
	}
	c.until("it lasts", func(now State) bool { return !now.LeaseEnds && now.Heard == replicaOne })
	return c, now
}

// TestTheAgentLearnsThatALeaseEnds: at once, so that the operator can extend it.
func TestTheAgentLearnsThatALeaseEnds(t *testing.T) {
	t.Parallel()
	c, now := runPrimary(t)
	c.skip(MayAge)
	c.until("it ends", func(now State) bool { return now.LeaseEnds && now.Heard == "" })
	c.hear(0, replicaOne, replicaTwo)
	c.until("replicas are heard", func(now State) bool { return !now.LeaseEnds && now.Heard == replicaOne+" "+replicaTwo })
	c.skip(MayAge)
	c.until("it ends again", func(now State) bool { return now.LeaseEnds })
	if err := Confirm(t.Context(), Socket(c.folder), now.Start, c.clock()); err != nil {
		t.Fatal(err)
	}
	c.until("the operator confirms it", func(now State) bool { return !now.LeaseEnds })
	c.tells(Closed, now.Start)
	c.signals <- syscall.SIGTERM
	c.exits(3)
	for lasts, left := range map[time.Duration]time.Duration{20 * time.Second: 17 * time.Second, 2500 * time.Millisecond: 1250 * time.Millisecond} {
		if lease := (Lease{Lasts: lasts}); lease.Ends(left) || !lease.Ends(left-1) {
			t.Errorf("of %s, %s are left: it ends %t", lasts, left, lease.Ends(left))
		}
	}
}

// TestTheAgentLearnsThatALeaseEndsAlthoughTheKernelHangs: the operator can confirm the primary without a look at connections.
func TestTheAgentLearnsThatALeaseEndsAlthoughTheKernelHangs(t *testing.T) {
	t.Parallel()
	c, now := runPrimary(t)
	hangs := make(chan struct{})
	c.mu.Lock()
	c.hold = func() { <-hangs }
	c.mu.Unlock()
	c.skipped.Add(int64(30 * time.Minute))
	c.until("it ends", func(now State) bool { return now.LeaseEnds })
	close(hangs)
	c.tells(Closed, now.Start)
	c.signals <- syscall.SIGTERM
	c.exits(3)
}
