package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"time"
)

// mostConnections is how many connections the supervisor serves at once. The agent has one, and a second one for a message.
const mostConnections = 16

// listen opens the socket for the agent, which runs as the same user in another container.
func (s *Supervisor) listen(ctx context.Context) (net.Listener, error) {
	path := Socket(s.RunDir)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove the last supervisor's socket: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen for the agent: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("listen for the agent: %w", err), listener.Close())
	}
	return listener, nil
}

// serve answers connections until the listener is closed. It ends them with the context.
func (s *Supervisor) serve(ctx context.Context, listener net.Listener) {
	free := make(chan struct{}, mostConnections)
	for {
		open, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			select { // out of files or memory
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		free <- struct{}{}
		go func() {
			defer func() { <-free }()
			defer open.Close()
			s.converse(ctx, open)
		}()
	}
}

// converse reads one message and answers it.
func (s *Supervisor) converse(ctx context.Context, open net.Conn) {
	_ = open.SetDeadline(time.Now().Add(messageTimeout))
	var asked message
	err := json.NewDecoder(io.LimitReader(open, longestLine)).Decode(&asked)
	if err != nil {
		_ = json.NewEncoder(open).Encode(answer{Error: "read the message: " + err.Error()})
		return
	}
	if asked.Verb == watch {
		_ = open.SetDeadline(time.Time{})
		s.report(ctx, open)
		return
	}
	told := answer{}
	switch asked.Verb {
	case lead:
		told.Left, told.IsHeard, err = s.lead(asked)
		told.IsImpossible = errors.Is(err, errCannotLook)
	case confirm:
		err = s.confirm(asked)
	case Answered, Open, Closed, Kill, Start, watch:
		err = s.take(asked)
	default:
		err = fmt.Errorf("unknown verb %q", asked.Verb)
	}
	if err != nil {
		told.Error = err.Error()
	}
	_ = json.NewEncoder(open).Encode(told) // if this fails, the agent asks again
}

// report sends the state now and after each change, until the watcher closes its connection, or the context ends.
func (s *Supervisor) report(ctx context.Context, open net.Conn) {
	s.watched(+1)
	defer s.watched(-1)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, open)
	}()
	for {
		now, changed := s.now()
		_ = open.SetWriteDeadline(time.Now().Add(messageTimeout))
		if json.NewEncoder(open).Encode(now) != nil {
			return
		}
		select {
		case <-changed:
		case <-gone:
			return
		case <-ctx.Done():
			return
		}
	}
}
