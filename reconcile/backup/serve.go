package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"

	"github.com/mysql-operator/mysql-operator/reconcile/agent"
)

const (
	readHeaderTimeout = 5 * time.Second
	idleTimeout       = time.Minute
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
		Handler: m.handler(), TLSConfig: e.Layout.ServerTLS(), ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout,
		// Connections that break off are told in the log's own form, and only to those who ask for detail.
		ErrorLog: slog.NewLogLogger(logr.ToSlogHandler(e.Log), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ServeTLS(listener, "", ""); err != nil && !errors.Is(err, http.ErrServerClosed) {
		e.Log.Error(err, "nobody can ask for the progress any more")
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
