package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"path"
	"time"
)

// Program is the file name of the program that supervises mysqld in a member's Pod.
const Program = "mysql-operator-supervisor"

// Socket returns the path of the socket on which the supervisor listens, in the run folder of a member's Pod.
func Socket(run string) string { return path.Join(run, "supervisor.sock") }

// State is what the supervisor knows about mysqld.
type State struct {
	// Start identifies the latest start of mysqld. No two starts have the same one.
	Start string `json:"start"`
	// Starts is how often mysqld has started in this container.
	Starts int `json:"starts"`
	// Running reports whether this mysqld runs.
	Running bool `json:"running"`
	// Open reports whether clients may write to this mysqld, as the agent has announced. Such a mysqld gets no SIGTERM.
	Open bool `json:"open"`
	// Stopping means that the container stops: this mysqld is the last one.
	Stopping bool `json:"stopping"`
	// Held reports whether the latest mysqld has crashed while clients could write, and the supervisor waits for Start.
	Held bool `json:"held,omitempty"`
	// Ended is how the latest mysqld that has ended did so; empty if none has.
	Ended string `json:"ended,omitempty"`
	// LeaseLost means that the supervisor has killed this mysqld because its lease had ended.
	LeaseLost bool `json:"leaseLost,omitempty"`
	// LeaseEnds reports whether this mysqld needs its lease, and there has been no evidence for a while (Lease.Ends).
	LeaseEnds bool `json:"leaseEnds,omitempty"`
	// Heard are the addresses of the replicas of its lease that have been heard lately, separated by spaces; empty if it needs none.
	Heard string `json:"heard,omitempty"`
}

// Verb is what an agent announces or orders.
type Verb string

const (
	// Answered announces that mysqld answers. If it ends later, the supervisor starts it again.
	Answered Verb = "Answered"
	// Open announces that the agent is about to let clients write.
	Open Verb = "Open"
	// Closed announces that mysqld refuses writes, and that no session waits for its commit to be acknowledged.
	Closed Verb = "Closed"
	// Kill orders the supervisor to end mysqld with SIGKILL.
	Kill Verb = "Kill"
	// Start orders the supervisor to start mysqld again whose start it holds.
	Start Verb = "Start"

	// lead replaces the lease, and confirm adds a confirmation to it.
	lead    Verb = "Lead"
	confirm Verb = "Confirm"
	// watch asks for the State now and after each change.
	watch Verb = "Watch"
)

// message is what an agent sends: one line of JSON. Start is the start of mysqld that it concerns.
type message struct {
	Verb  Verb   `json:"verb"`
	Start string `json:"start,omitempty"`
	// Lease is the next one, and Sent when the agent asked for it, by Clock.
	Lease *Lease        `json:"lease,omitempty"`
	Sent  time.Duration `json:"sent,omitempty"`
}

// answer is the supervisor's answer to a message.
type answer struct {
	Error string `json:"error,omitempty"`
	// Left is how long the lease lasts. IsHeard reports whether it rests on enough replicas that have been heard lately.
	Left    time.Duration `json:"left,omitempty"`
	IsHeard bool          `json:"heard,omitempty"`
	// IsImpossible means that there can be no lease here.
	IsImpossible bool `json:"impossible,omitempty"`
}

const (
	// longestLine is how many bytes of a message or an answer are read.
	longestLine = 1 << 12
	// messageTimeout bounds the exchange of one message and its answer, which takes less than a millisecond.
	messageTimeout = 2 * time.Second
)

// Tell sends an announcement or an order that concerns one start of mysqld. It returns an error if that mysqld no longer runs; for Start,
// if the supervisor does not hold the next one.
func Tell(ctx context.Context, socket string, verb Verb, start string) error {
	_, err := ask(ctx, socket, message{Verb: verb, Start: start})
	return err
}

// ErrNoLease means that the kernel does not say which replicas are connected, so that there can be no lease.
var ErrNoLease = errors.New("mysqld's supervisor cannot see which replicas are connected")

// Lead replaces the lease of one start of mysqld. It returns how long it lasts, and whether enough replicas are connected. If the
// supervisor refuses it, the former one stays. The error wraps ErrNoLease if there can be none.
func Lead(ctx context.Context, socket, start string, lease Lease) (left time.Duration, isHeard bool, err error) {
	sent, err := Clock()
	if err != nil {
		return 0, false, err
	}
	got, err := ask(ctx, socket, message{Verb: lead, Start: start, Lease: &lease, Sent: sent})
	if got.IsImpossible {
		err = fmt.Errorf("%w: %w", ErrNoLease, err)
	}
	return got.Left, got.IsHeard, err
}

// Confirm adds the operator's confirmation to the lease of one start of mysqld.
func Confirm(ctx context.Context, socket, start string, at time.Duration) error {
	_, err := ask(ctx, socket, message{Verb: confirm, Start: start, Lease: &Lease{Confirmed: at}})
	return err
}

func ask(ctx context.Context, socket string, asked message) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, messageTimeout)
	defer cancel()
	var got answer
	open, err := dial(ctx, socket, asked)
	if err != nil {
		return got, err
	}
	defer open.Close()
	if err := json.NewDecoder(io.LimitReader(open, longestLine)).Decode(&got); err != nil {
		return got, fmt.Errorf("read the answer of mysqld's supervisor: %w", err)
	}
	if got.Error != "" {
		return got, fmt.Errorf("mysqld's supervisor: %s", got.Error)
	}
	return got, nil
}

// Watch calls seen with the State now and after each change, until the context or the supervisor ends. It always returns an error.
func Watch(ctx context.Context, socket string, seen func(State)) error {
	open, err := dial(ctx, socket, message{Verb: watch})
	if err != nil {
		return err
	}
	defer open.Close()
	stop := context.AfterFunc(ctx, func() { _ = open.Close() })
	defer stop()
	bound := &io.LimitedReader{R: open}
	decoder := json.NewDecoder(bound)
	for {
		bound.N = longestLine
		var now State
		if err := decoder.Decode(&now); err != nil {
			return errors.Join(ctx.Err(), fmt.Errorf("watch mysqld's supervisor: %w", err))
		}
		seen(now)
	}
}

func dial(ctx context.Context, socket string, asked message) (net.Conn, error) {
	open, err := (&net.Dialer{Timeout: messageTimeout}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("connect to mysqld's supervisor: %w", err)
	}
	deadline, bounded := ctx.Deadline()
	if bounded {
		err = open.SetDeadline(deadline)
	}
	if err = errors.Join(err, json.NewEncoder(open).Encode(asked)); err != nil {
		return nil, errors.Join(fmt.Errorf("ask mysqld's supervisor: %w", err), open.Close())
	}
	return open, nil
}
