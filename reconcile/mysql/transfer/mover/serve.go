package mover

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/mysql-operator/mysql-operator/listen"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
)

const (
	requestTimeout = 5 * time.Second
	// strangers is how many connections there may be of clients other than the operator, who have no business here.
	strangers = 16
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
	server := listen.Server{
		Handler: m.handler(), TLS: operatorsOnly(e.Layout.ServerTLS()), Trusted: agent.IsOperator,
		Strangers: strangers, Request: requestTimeout, Log: e.Log,
	}
	if err := server.Serve(ctx, listener); err != nil {
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

func (m *meter) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+transfer.ProgressPath, agent.OperatorOnly(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(m.now()) // the peer is gone when this fails; nobody is left to tell
	}))
	return mux
}
