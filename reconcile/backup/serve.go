package backup

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/mysql-operator/mysql-operator/reconcile/agent"
)

const (
	readHeaderTimeout = 5 * time.Second
	writeTimeout      = 5 * time.Second
	// maxConnections bounds what strangers cost: the Pod has little memory, and its operator needs one.
	maxConnections = 16
)

// serve answers the operator's questions until the context ends. Nothing depends on its being heard: what keeps it from listening is
// logged and nothing else.
func (e Environment) serve(ctx context.Context, m *meter) {
	var sockets net.ListenConfig
	listener, err := sockets.Listen(ctx, "tcp", fmt.Sprintf(":%d", e.ProgressPort))
	if err != nil {
		e.Log.Error(err, "nobody can ask for the progress")
		return
	}
	e.serveOn(ctx, listener, m)
}

func (e Environment) serveOn(ctx context.Context, listener net.Listener, m *meter) {
	server := &http.Server{
		Handler: m.handler(), TLSConfig: operatorsOnly(e.Layout.ServerTLS()), ConnState: atMost(maxConnections),
		ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readHeaderTimeout, WriteTimeout: writeTimeout, MaxHeaderBytes: maxBody,
		// Connections that break off are told in the log's own form, and only to those who ask for detail.
		ErrorLog: slog.NewLogLogger(logr.ToSlogHandler(e.Log), slog.LevelDebug),
	}
	server.SetKeepAlivesEnabled(false)
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ServeTLS(listener, "", ""); err != nil && !errors.Is(err, http.ErrServerClosed) {
		e.Log.Error(err, "nobody can ask for the progress any more")
	}
}

// operatorsOnly lets nobody get as far as a request who shows no certificate of the cluster's CA. Nobody else has to ask, kubelet neither.
func operatorsOnly(security *tls.Config) *tls.Config {
	read := security.GetConfigForClient
	security.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		found, err := read(hello)
		if err != nil {
			return nil, err
		}
		found.ClientAuth = tls.RequireAndVerifyClientCert
		return found, nil
	}
	return security
}

// atMost closes connections beyond a number.
func atMost(limit int32) func(net.Conn, http.ConnState) {
	var open atomic.Int32
	return func(connection net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			if open.Add(1) > limit {
				_ = connection.Close() // the server notices, and takes it off the count
			}
		case http.StateClosed, http.StateHijacked:
			open.Add(-1)
		case http.StateActive, http.StateIdle:
		}
	}
}

func (m *meter) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+progressPath, agent.OperatorOnly(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(m.now()) // the peer is gone when this fails; nobody is left to tell
	}))
	return mux
}
