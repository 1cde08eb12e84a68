package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"
)

const (
	// keptFor is how long a connection to a member is kept without a question: longer than the time between two looks at a member at rest,
	// and shorter than the agent keeps it.
	keptFor = 45 * time.Second
	// keptBuffer is how much is buffered for each kept connection, in bytes: there is one for every member of every cluster.
	keptBuffer = 1 << 10
	// keptShare is what share of the time for an answer a kept connection gets. Whatever lies between may have forgotten it, so that no
	// answer proves nothing; a new connection gets the rest of the time.
	keptShare = 4
)

// lines are the connections to the agents of one cluster: one for each member, kept from one question to the next.
type lines struct {
	security *tls.Config

	mu      sync.Mutex
	members map[string]line // by host
}

type line struct {
	address string
	client  *http.Client
}

// to returns the client for a member. Of a member that has moved nothing is kept.
func (l *lines) to(target Target) *http.Client {
	l.mu.Lock()
	defer l.mu.Unlock()
	held, known := l.members[target.Host]
	if known && held.address == target.Address {
		return held.client
	}
	if known {
		held.client.CloseIdleConnections()
	}
	client := Questioner(l.security, target.Host)
	if transport, ok := client.Transport.(*http.Transport); ok {
		transport.DisableKeepAlives, transport.IdleConnTimeout, transport.MaxIdleConnsPerHost = false, keptFor, 1
		transport.ReadBufferSize, transport.WriteBufferSize = keptBuffer, keptBuffer
	}
	if l.members == nil {
		l.members = map[string]line{}
	}
	l.members[target.Host] = line{address: target.Address, client: client}
	return client
}

// close ends the connections that nobody uses at the moment.
func (l *lines) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, held := range l.members {
		held.client.CloseIdleConnections()
	}
}

// ask asks over a member's kept connection, and over a new one if that gives no answer. within bounds both together.
func (l *lines) ask(ctx context.Context, target Target, within time.Duration, request func(context.Context) (*http.Request, error)) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	client := l.to(target)
	body, kept, err := askOnce(ctx, client, within/keptShare, request)
	var answered *AnswerError
	if err == nil || !kept || errors.As(err, &answered) || ctx.Err() != nil {
		return body, err
	}
	client.CloseIdleConnections()
	body, _, err = askOnce(ctx, client, within, request)
	return body, err
}

// askOnce asks, and says whether that was over a connection that was there before. patience bounds it then.
func askOnce(
	ctx context.Context, client *http.Client, patience time.Duration, request func(context.Context) (*http.Request, error),
) (body []byte, kept bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	impatience := time.AfterFunc(time.Hour, cancel)
	defer impatience.Stop()
	reused := false // GotConn is called before a request is sent, and Do returns after that
	var mu sync.Mutex
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		mu.Lock()
		defer mu.Unlock()
		reused = info.Reused
		if info.Reused {
			impatience.Reset(patience)
			return
		}
		impatience.Stop()
	}})
	asked, err := request(traced)
	if err != nil {
		return nil, false, err
	}
	body, err = Ask(client, asked, maxBody)
	mu.Lock()
	defer mu.Unlock()
	return body, reused, err
}
