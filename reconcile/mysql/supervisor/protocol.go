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
	// Ended is how the latest mysqld that has ended did so; empty if none has.
	Ended string `json:"ended,omitempty"`
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

	// watch asks for the State now and after each change.
	watch Verb = "Watch"
)

// message is what an agent sends: one line of JSON. Start is the start of mysqld that it concerns.
type message struct {
	Verb  Verb   `json:"verb"`
	Start string `json:"start,omitempty"`
}

// answer is the supervisor's answer to a message.
type answer struct {
	Error string `json:"error,omitempty"`
}

const (
	// longestLine is how many bytes of a message or an answer are read.
	longestLine = 1 << 10
	// messageTimeout bounds the exchange of one message and its answer, which takes less than a millisecond.
	messageTimeout = 2 * time.Second
)

// Tell sends an announcement or an order that concerns one start of mysqld. It returns an error if that mysqld no longer runs.
func Tell(ctx context.Context, socket string, verb Verb, start string) error {
	ctx, cancel := context.WithTimeout(ctx, messageTimeout)
	defer cancel()
	open, err := dial(ctx, socket, message{verb, start})
	if err != nil {
		return err
	}
	defer open.Close()
	var told answer
	if err := json.NewDecoder(io.LimitReader(open, longestLine)).Decode(&told); err != nil {
		return fmt.Errorf("read the answer of mysqld's supervisor: %w", err)
	}
	if told.Error != "" {
		return fmt.Errorf("mysqld's supervisor: %s", told.Error)
	}
	return nil
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
