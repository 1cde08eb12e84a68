package agent

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

const (
	// keptFor is how long an idle connection to a member stays open: longer than the time between two requests to a member whose alarms do
	// not arrive, and shorter than the agent keeps it open.
	keptFor = 45 * time.Second
	// keptBuffer is how much of a request and of an answer is buffered, in bytes.
	keptBuffer = 1 << 10
	// keptShare is the fraction of the time limit that a kept connection gets. The network in between may have dropped the connection, so a
	// missing answer proves nothing. A new connection gets the rest of the time.
	keptShare = 4
)

// agentConnections are the connections to the agents of one cluster: one for each member, kept from one request to the next. http.Transport
// is not used, because it has two goroutines for each connection: for 1,000 clusters of three their stacks alone take about 50 MiB.
type agentConnections struct {
	security func() *tls.Config

	mu   sync.Mutex
	kept map[string]idleConnection // by host
}

// idleConnection is an idle connection.
type idleConnection struct {
	*tls.Conn
	address string
	since   time.Time
}

// agentRequest is an HTTP request to an agent.
type agentRequest struct {
	method, path string
	content      []byte
	// alarms is where the operator takes alarms; empty for nowhere.
	alarms string
	// isBystander makes the agent not count the request as the operator's look (Bystander).
	isBystander bool
}

// ask sends a request over a member's kept connection, and over a new one if that gives no answer. within bounds both together.
func (l *agentConnections) ask(ctx context.Context, target Target, within time.Duration, asked agentRequest) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if kept := l.take(target); kept != nil {
		hurried, cancel := context.WithTimeout(ctx, within/keptShare)
		defer cancel()
		body, err := l.over(hurried, kept, target, asked)
		if answered := (*AnswerError)(nil); err == nil || errors.As(err, &answered) || ctx.Err() != nil {
			return body, err
		}
	}
	fresh, err := l.dial(ctx, target)
	if err != nil {
		return nil, truncateError(err)
	}
	return l.over(ctx, fresh, target, asked)
}

// take removes and returns the kept connection to a member; nil if there is none. It closes connections that have been idle for too long,
// and the connection to this member if its address has changed.
func (l *agentConnections) take(target Target) *tls.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found *tls.Conn
	for host, one := range l.kept {
		isAsked := host == target.Host
		switch {
		case time.Since(one.since) >= keptFor, isAsked && one.address != target.Address:
			end(one.Conn)
		case isAsked:
			found = one.Conn
		default:
			continue
		}
		delete(l.kept, host)
	}
	return found
}

// keep keeps a connection for the next request.
func (l *agentConnections) keep(target Target, open *tls.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if other, found := l.kept[target.Host]; found {
		end(other.Conn)
	}
	if l.kept == nil {
		l.kept = map[string]idleConnection{}
	}
	l.kept[target.Host] = idleConnection{Conn: open, address: target.Address, since: time.Now()}
}

// close closes the idle connections.
func (l *agentConnections) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.kept {
		end(one.Conn)
	}
	l.kept = nil
}

// end closes a connection at once. A TLS shutdown could take seconds.
func end(open *tls.Conn) { _ = open.NetConn().Close() }

func (l *agentConnections) dial(ctx context.Context, target Target) (*tls.Conn, error) {
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(target.Address, strconv.Itoa(Port)))
	if err != nil {
		return nil, err
	}
	security := l.security()
	security.ServerName = target.Host
	open := tls.Client(raw, security)
	if err := open.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return open, nil
}

// over sends a request over a connection, and keeps the connection for the next request if possible.
func (l *agentConnections) over(ctx context.Context, open *tls.Conn, target Target, asked agentRequest) ([]byte, error) {
	stop := context.AfterFunc(ctx, func() { end(open) })
	body, goesOn, err := converse(ctx, open, target, asked)
	isInTime := stop()
	if isInTime && goesOn {
		l.keep(target, open)
	} else {
		end(open)
	}
	if err != nil && !isInTime {
		return nil, context.Cause(ctx)
	}
	return body, err
}

// converse sends a request and reads the answer. goesOn reports whether another request can follow.
func converse(ctx context.Context, open net.Conn, target Target, asked agentRequest) (body []byte, goesOn bool, err error) {
	request, err := http.NewRequestWithContext(ctx, asked.method, "https://"+target.Host+asked.path, bytes.NewReader(asked.content))
	if err != nil {
		return nil, false, err
	}
	if asked.alarms != "" {
		request.Header.Set(alarmHeader, asked.alarms)
	}
	if asked.isBystander {
		request.Header.Set(bystanderHeader, "true")
	}
	writer := bufio.NewWriterSize(open, keptBuffer)
	if err := errors.Join(request.Write(writer), writer.Flush()); err != nil {
		return nil, false, truncateError(err)
	}
	return receive(open, request)
}

// receive reads the answer to a request.
func receive(open net.Conn, request *http.Request) (body []byte, goesOn bool, err error) {
	bound := &io.LimitedReader{R: open, N: maxAnswerHeader}
	reader := bufio.NewReaderSize(bound, keptBuffer)
	response, err := http.ReadResponse(reader, request)
	if err != nil {
		return nil, false, answerError(err, bound.N <= 0)
	}
	defer response.Body.Close()
	bound.N = 2 * maxBody // the answer with its chunk headers
	body, err = answer(response, maxBody)
	refused := (*AnswerError)(nil)
	isRead := err == nil || errors.As(err, &refused) && refused.Code == http.StatusConflict
	return body, isRead && !response.Close && reader.Buffered() == 0, err
}

// answerError returns why there is no answer. It does not pass on Go's error about malformed HTTP, because that repeats the received text.
func answerError(err error, isLong bool) error {
	_, isNetwork := errors.AsType[net.Error](err)
	switch {
	case isLong:
		return fmt.Errorf("the header of the answer is longer than %d KiB", maxAnswerHeader>>10)
	case isNetwork, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return truncateError(err)
	}
	return errors.New("the answer is not HTTP")
}
