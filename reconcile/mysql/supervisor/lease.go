package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/sockets"
)

// Lease is what a primary must have to take writes and to serve reads. It lasts for some time after each piece of evidence that no other
// member may have taken over: enough replicas were connected that acknowledge commits, or an operator read that this member leads. When the
// lease ends, the supervisor kills mysqld. So once a primary has certainly had no evidence for that time, another member may take over,
// although nothing answers for this one.
//
// Members that have stopped acknowledging for another primary have closed these connections. So the replicas need no other protocol than
// replication. A replica counts only while its machine acknowledges what is sent to it: TCP notices a network that fails after 15 minutes
// (tcp(7), tcp_retries2). The time of evidence is that of sending. So evidence through a replica is never later than when that replica
// heard the primary last.
type Lease struct {
	// Needs is how many replicas must be connected; 0 if mysqld needs no lease.
	Needs int `json:"needs,omitempty"`
	// Port is the port of mysqld, and Replicas are the addresses of the replicas that are connected there and acknowledge commits.
	Port     uint16           `json:"port,omitempty"`
	Replicas []netip.AddrPort `json:"replicas,omitempty"`
	// Confirmed is a time, by Clock, after which an operator read that this member is the primary; 0 for none.
	Confirmed time.Duration `json:"confirmed,omitempty"`
	// After is the time after which replicas must have been heard for the lease to rest on them alone.
	After time.Duration `json:"after,omitempty"`
	// Lasts is for how long the lease lasts after the last evidence.
	Lasts time.Duration `json:"lasts,omitempty"`
}

// MayAge is how old the evidence of a long lease may be before it counts as ending.
const MayAge = 3 * time.Second

// Ends reports whether the lease ends soon, because there has been no evidence for a while. The rest of it is for the operator, which must
// extend it or confirm the primary.
func (l Lease) Ends(left time.Duration) bool { return left < l.Lasts-min(MayAge, l.Lasts/2) }

// Clock returns the time since this machine started (clock_gettime(2), CLOCK_BOOTTIME). All containers of a machine have the same.
func Clock() (time.Duration, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0, fmt.Errorf("read the clock: %w", err)
	}
	return time.Duration(now.Nano()), nil
}

const (
	// mostReplicas is how many replicas of a lease count.
	mostReplicas = 16
	// leaseEvery is how often the supervisor looks at the connections of replicas, and endsEvery at the clock.
	leaseEvery = 100 * time.Millisecond
	endsEvery  = 50 * time.Millisecond
)

// heldLease is the lease of the mysqld that runs, with the time of the last evidence; 0 for none. asked is when the agent sent the last
// message about it. A message whose sender has given up may come later than the next one.
type heldLease struct {
	Lease
	since, asked time.Duration
}

// heard returns the latest time after which something was sent to enough replicas that their machines have acknowledged; 0 for never. ages
// are for how long that is.
func (l Lease) heard(now time.Duration, ages []time.Duration) time.Duration {
	slices.Sort(ages)
	if l.Needs == 0 || len(ages) < l.Needs {
		return 0
	}
	return max(0, now-ages[l.Needs-1])
}

// left is how long the lease lasts. Without evidence it lasts no time, also on a machine that has just started.
func (l heldLease) left(now time.Duration) time.Duration {
	if l.since == 0 {
		return 0
	}
	return l.since + l.Lasts - now
}

// replacedBy returns the lease that replaces this one. One that needs more replicas must have evidence of its own. One that would end at
// once is refused, and then only the addresses are replaced.
func (l heldLease) replacedBy(next heldLease, now time.Duration) (heldLease, error) {
	if next.Needs <= l.Needs {
		next.since = max(next.since, l.since)
	}
	if next.Needs > 0 && next.left(now) <= 0 {
		l.Port, l.Replicas = next.Port, next.Replicas
		return l, fmt.Errorf("for %s, fewer than %d replicas were connected that acknowledge, and no operator has confirmed that this member is the primary", next.Lasts, next.Needs)
	}
	return next, nil
}

// lead replaces the lease of the mysqld that runs. It returns how long it lasts, and whether it rests on enough replicas that
// have been heard lately.
func (s *Supervisor) lead(asked message) (left time.Duration, isHeard bool, err error) {
	if asked.Lease == nil {
		return 0, false, errors.New("the message has no lease")
	}
	next := heldLease{Lease: *asked.Lease, asked: asked.Sent}
	slices.SortFunc(next.Replicas, netip.AddrPort.Compare)
	next.Replicas = slices.Compact(next.Replicas)
	next.Replicas = next.Replicas[:min(len(next.Replicas), mostReplicas)]
	now, err := s.readClock()
	if err != nil {
		return 0, false, err
	}
	if next.Needs > 0 {
		if err := s.tryToLook(); err != nil {
			return 0, false, err
		}
	}
	ages, lately := s.agesOf(next.Lease)
	heard := next.heard(now, ages)
	next.since = max(heard, min(next.Confirmed, now))
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.state.Running || asked.Start != s.state.Start {
		return 0, false, errEnded
	}
	if asked.Sent < s.lease.asked {
		return 0, false, errors.New("the message comes so late that a later one has replaced the lease")
	}
	next.After = max(next.After, s.lease.After, min(next.Confirmed, now))
	s.lease, err = s.lease.replacedBy(next, now)
	s.lease.asked, s.lease.After = asked.Sent, next.After
	s.tellLease(now, lately)
	return s.lease.left(now), heard > next.After && now-heard < next.Lasts, err
}

// confirm adds a confirmation of the operator to the lease of the mysqld that runs.
func (s *Supervisor) confirm(asked message) error {
	if asked.Lease == nil {
		return errors.New("the message has no confirmation")
	}
	now, err := s.readClock()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.state.Running || asked.Start != s.state.Start {
		return errEnded
	}
	confirmed := min(asked.Lease.Confirmed, now)
	s.lease.since, s.lease.After = max(s.lease.since, confirmed), max(s.lease.After, confirmed)
	s.tellLease(now, s.state.Heard)
	return nil
}

// errCannotLook means that the kernel does not say which connections there are, because a sandbox or a profile forbids that.
var errCannotLook = errors.New("the kernel does not say which replicas are connected")

// tryToLook returns an error if the kernel does not say which connections there are: errCannotLook if it never will. It has none with these
// peers, which are reserved for documentation (RFC 5737, RFC 3849).
func (s *Supervisor) tryToLook() error {
	for _, peer := range []string{"192.0.2.1:1", "[2001:db8::1]:1"} {
		switch _, err := s.Heard(1, netip.MustParseAddrPort(peer)); {
		case errors.Is(err, sockets.ErrNotConnected):
		case isForbidden(err):
			return fmt.Errorf("%w: %w", errCannotLook, err)
		default:
			return fmt.Errorf("look at connections: %w", err)
		}
	}
	return nil
}

func isForbidden(err error) bool {
	never := []error{syscall.EPERM, syscall.EACCES, syscall.EPROTONOSUPPORT, syscall.EAFNOSUPPORT, syscall.EOPNOTSUPP, errors.ErrUnsupported}
	return slices.ContainsFunc(never, func(one error) bool { return errors.Is(err, one) })
}

// heardLately is for how long a replica counts that has been heard. The primary sends something five times a second.
const heardLately = 1250 * time.Millisecond

// agesOf returns for how long the machines of a lease's replicas have not acknowledged anything, and which of them have lately. A replica
// whose connection is closed has no age, and neither has one of which the kernel says nothing. One that has just connected counts as heard.
func (s *Supervisor) agesOf(lease Lease) (ages []time.Duration, lately string) {
	var heard []string
	for _, replica := range lease.Replicas {
		age, err := s.Heard(lease.Port, replica)
		if err == nil {
			ages = append(ages, age)
		}
		if err == nil && age < heardLately || errors.Is(err, errNotHeard) {
			heard = append(heard, replica.String())
		}
	}
	return ages, strings.Join(heard, " ")
}

// readClock returns the time by which leases last.
func (s *Supervisor) readClock() (time.Duration, error) {
	if s.clock != nil {
		return s.clock()
	}
	return Clock()
}

// every calls a function again and again until the context ends.
func (s *Supervisor) every(ctx context.Context, pause time.Duration, do func()) {
	ticker := time.NewTicker(cmp.Or(s.lookEvery, pause))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			do()
		}
	}
}

// renewLease looks at the connections of replicas. The kernel may answer late.
func (s *Supervisor) renewLease() {
	s.mu.Lock()
	start, lease, isHeld := s.state.Start, s.lease.Lease, s.state.Open && s.lease.Needs > 0
	s.mu.Unlock()
	now, err := s.readClock()
	if !isHeld || err != nil {
		return
	}
	ages, lately := s.agesOf(lease)
	heard := lease.heard(now, ages)
	s.mu.Lock()
	defer s.mu.Unlock()
	if start == s.state.Start && s.lease.Needs == lease.Needs {
		s.lease.since = max(s.lease.since, heard)
		s.tellLease(now, lately)
	}
}

// tellLease tells the agent when the lease begins to end, and when it does not any more, and which replicas have been heard lately. The
// caller must hold the lock.
func (s *Supervisor) tellLease(now time.Duration, heard string) {
	ends := s.lease.Needs > 0 && s.lease.Ends(s.lease.left(now))
	if s.lease.Needs == 0 {
		heard = ""
	}
	if ends != s.state.LeaseEnds || heard != s.state.Heard {
		s.state.LeaseEnds, s.state.Heard = ends, heard
		s.broadcast()
	}
}

// endLease kills a mysqld that has lost its lease.
func (s *Supervisor) endLease() {
	now, err := s.readClock()
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := s.lease
	if err != nil || !s.state.Open || lost.Needs == 0 {
		return
	}
	s.tellLease(now, s.state.Heard) // renewLease may hang
	if lost.left(now) > 0 {
		return
	}
	s.lease, s.state.LeaseLost = heldLease{}, true
	s.send(syscall.SIGKILL)
	go s.warn("for %s, neither %d replicas nor an operator had shown that this member is still the primary: the supervisor has killed mysqld, because another member may take over", lost.Lasts, lost.Needs)
}
