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
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
)

const (
	requestTimeout = 5 * time.Second
	// strangers is how many connections there may be of clients other than the operator, which have no reason to connect.
	strangers = 16
)

// serve answers the operator's requests until the context ends. The transfer does not depend on them: a failure to listen is only logged.
func (e Environment) serve(ctx context.Context, m *meter) {
	var sockets net.ListenConfig
	listener, err := sockets.Listen(ctx, "tcp", fmt.Sprintf(":%d", e.ProgressPort))
	if err != nil {
		e.Log.Error(err, "failed to listen for requests for the progress")
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
		e.Log.Error(err, "failed to answer requests for the progress")
	}
}

// operatorsOnly refuses each client without a certificate of the cluster's CA before its first request. No other client needs to connect,
// not even kubelet.
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
	mux.HandleFunc("GET "+protocol.ProgressPath, agent.OperatorOnly(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(m.now()) // this fails if the peer is gone; there is no one else to inform
	}))
	return mux
}
