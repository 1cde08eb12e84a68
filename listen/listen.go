// Package listen serves HTTP where anybody on the network can connect: what strangers cost in memory, connections and time is bounded, and
// clients with the right certificate have places of their own.
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
	// MaxHeader is the largest header of a request, in bytes. The TLS handshake before the first one counts.
	MaxHeader = 16 << 10
	// HeaderTime is how long a TLS handshake may take, and how long a header may take after it.
	HeaderTime = 5 * time.Second
	// DefaultRequest is how long a request may take to arrive, and its answer to be sent.
	DefaultRequest = 10 * time.Second
	// DefaultStrangers is how many connections there may be of clients that have shown no trusted certificate.
	DefaultStrangers = 64
	// idleTime is how long a connection that is kept may rest. It is longer than the time between two looks at a member.
	idleTime = 2 * time.Minute
	// strangersBody is the largest body that a stranger may announce, in bytes. The server would wait half a second before it lets go of a
	// connection whose body it did not read.
	strangersBody = 64 << 10
	// grace is how long requests under way may go on when the server stops.
	grace = 3 * time.Second
	// trustedPlaces is how many connections there may be of trusted clients: a few operators, each with one for looking and one for orders.
	trustedPlaces = 16
)

// Server serves HTTP/1.1. Its zero values are the defaults above.
type Server struct {
	Handler http.Handler
	// TLS is how to serve; nil serves plain HTTP.
	TLS *tls.Config
	// Trusted says whether a client may have one of the reserved places. It is asked after the handshake, so the client has proven that it has
	// the key of its certificate. nil trusts nobody.
	Trusted func(tls.ConnectionState) bool
	// Strangers is how many connections there may be of clients that are not trusted.
	Strangers int
	// KeepStrangers keeps the connections of strangers for further requests. Otherwise they get one answer each.
	KeepStrangers bool
	// Request is how long a request may take to arrive, and its answer to be sent.
	Request time.Duration
	// Log receives why connections ended, for those who ask for detail.
	Log logr.Logger
}

// Serve answers requests until ctx ends. Requests under way then get a few seconds more.
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

// server has every limit set. HTTP/1.1 suffices for all clients, and each of its connections carries one request at a time.
func (s Server) server(ctx context.Context, places *places) *http.Server {
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
			places.follow(connection, state, s.trusts)
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

// handler answers strangers once for each connection, unless it is to keep them. It ends the connection of a stranger who sends a large
// body.
func (s Server) handler() http.Handler {
	if s.KeepStrangers {
		return s.Handler
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.trusts(r.TLS) {
			if r.ContentLength < 0 || r.ContentLength > strangersBody {
				_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) // nothing more is read
				panic(http.ErrAbortHandler)
			}
			w.Header().Set("Connection", "close")
		}
		s.Handler.ServeHTTP(w, r)
	})
}
