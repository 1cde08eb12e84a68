// Package listen serves HTTP on addresses to which any client on the network can connect. It limits what strangers cost in memory,
// connections and time. Clients with a trusted certificate have reserved connections.
package listen

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
)

const (
	// MaxHeader is the largest header of a request, in bytes. Before the first request, the bytes of the TLS handshake count as well.
	MaxHeader = 16 << 10
	// HeaderTime is how long a TLS handshake may take, and how long a header may take after it.
	HeaderTime = 5 * time.Second
	// DefaultRequest is how long a request may take to arrive, and its answer to be sent.
	DefaultRequest = 10 * time.Second
	// DefaultStrangers is how many connections clients without a trusted certificate may have.
	DefaultStrangers = 64
	// idleTime is how long an open connection may be idle. It is longer than the time between two requests of the operator to a member.
	idleTime = 2 * time.Minute
	// strangersBody is the largest body, in bytes, that a stranger may announce. The server would wait half a second before it closes a
	// connection whose body it did not read.
	strangersBody = 64 << 10
	// grace is how long running requests may continue when the server stops.
	grace = 3 * time.Second
	// trustedPlaces is how many connections trusted clients may have: a few operators, each with one for status requests and one for
	// assignments.
	trustedPlaces = 16
)

// Server serves HTTP/1.1. Its zero values are the defaults above.
type Server struct {
	Handler http.Handler
	// TLS is the server's TLS configuration; nil serves plain HTTP.
	TLS *tls.Config
	// Trusted reports whether a client may have one of the reserved connections. The server calls it after the handshake, so the client has
	// proven that it has the key of its certificate. Nil trusts no client.
	Trusted func(tls.ConnectionState) bool
	// Strangers is how many connections clients that are not trusted may have.
	Strangers int
	// KeepStrangers keeps the connections of strangers open for further requests. Otherwise each gets one answer.
	KeepStrangers bool
	// Request is how long a request may take to arrive, and its answer to be sent.
	Request time.Duration
	// Log receives, at a detailed level, why connections ended.
	Log logr.Logger
}

// Serve answers requests until ctx ends. Running requests then get a few more seconds.
func (s Server) Serve(ctx context.Context, listener net.Listener) error {
	places := newPlaces(listener, s.strangers(), trustedPlaces)
	server := s.server(ctx, places)
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		if err := server.Shutdown(bounded); err != nil {
			_ = server.Close()
		}
	})
	err := serve(server, places)
	if !stop() {
		<-stopped
	}
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	}
	return nil
}

func serve(server *http.Server, listener net.Listener) error {
	if server.TLSConfig != nil {
		return server.ServeTLS(listener, "", "")
	}
	return server.Serve(listener)
}

// server returns an http.Server with every limit set. HTTP/1.1 suffices for all clients, and each of its connections has one request at a
// time.
func (s Server) server(ctx context.Context, places *connections) *http.Server {
	request := s.Request
	if request == 0 {
		request = DefaultRequest
	}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	server := &http.Server{
		Handler: s.handler(), TLSConfig: s.TLS, Protocols: protocols, MaxHeaderBytes: MaxHeader,
		ReadHeaderTimeout: HeaderTime, ReadTimeout: request, WriteTimeout: request, IdleTimeout: idleTime,
		ConnState: func(connection net.Conn, state http.ConnState) {
			places.updateState(connection, state, s.trusts)
		},
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		ErrorLog:    slog.NewLogLogger(logr.ToSlogHandler(s.Log), slog.LevelDebug),
	}
	server.RegisterOnShutdown(places.endIdle)
	return server
}

func (s Server) strangers() int {
	if s.Strangers == 0 {
		return DefaultStrangers
	}
	return s.Strangers
}

func (s Server) trusts(state *tls.ConnectionState) bool {
	return state != nil && state.HandshakeComplete && s.Trusted != nil && s.Trusted(*state)
}

// handler answers each connection of a stranger once, unless KeepStrangers is set. It closes the connection of a stranger that sends a
// large body.
func (s Server) handler() http.Handler {
	if s.KeepStrangers {
		return s.Handler
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.trusts(r.TLS) {
			if r.ContentLength < 0 || r.ContentLength > strangersBody {
				_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) // the server reads nothing more
				panic(http.ErrAbortHandler)
			}
			w.Header().Set("Connection", "close")
		}
		s.Handler.ServeHTTP(w, r)
	})
}
