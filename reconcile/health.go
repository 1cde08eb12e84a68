package reconcile

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"

	"github.com/mysql-operator/mysql-operator/listen"
)

// Health answers the kubelet's probes. /healthz reports that the process serves requests, /readyz that every check passes. With ?verbose
// both list the checks.
type Health struct {
	mu     sync.Mutex
	checks []check
}

// check is a named condition for readiness.
type check struct {
	name string
	test func() error
}

// Add adds a condition for readiness. test must return at once; its error says what is missing.
func (h *Health) Add(name string, test func() error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checks = append(h.checks, check{name: name, test: test})
}

// Handler serves /healthz and /readyz.
func (h *Health) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(answer http.ResponseWriter, request *http.Request) {
		report(answer, request, []check{{name: "ping", test: func() error { return nil }}})
	})
	mux.HandleFunc("GET /readyz", func(answer http.ResponseWriter, request *http.Request) {
		h.mu.Lock()
		checks := slices.Clone(h.checks)
		h.mu.Unlock()
		report(answer, request, checks)
	})
	return mux
}

// report runs checks. It answers 200 if all pass, else 503 with the failed checks.
func report(answer http.ResponseWriter, request *http.Request, checks []check) {
	var lines strings.Builder
	failed := false
	for _, one := range checks {
		if err := one.test(); err != nil {
			failed = true
			fmt.Fprintf(&lines, "[-] %s: %s\n", one.name, err)
			continue
		}
		fmt.Fprintf(&lines, "[+] %s: ok\n", one.name)
	}
	answer.Header().Set("Content-Type", "text/plain; charset=utf-8")
	answer.Header().Set("X-Content-Type-Options", "nosniff")
	if failed {
		answer.WriteHeader(http.StatusServiceUnavailable)
	}
	if failed || request.URL.Query().Has("verbose") {
		_, _ = answer.Write([]byte(lines.String()))
		return
	}
	_, _ = answer.Write([]byte("ok\n"))
}

// Server serves HTTP on an address until its context ends: the metrics, the probes.
type Server struct {
	// Address is where to listen, in net.Listen's form (":8080").
	Address string
	Handler http.Handler
	// Log receives, at a detailed level, why connections ended.
	Log logr.Logger
}

// Listen opens the address, so that a wrong or used address is an error before anything else starts.
func (s Server) Listen(ctx context.Context) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", s.Address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", s.Address, err)
	}
	return listener, nil
}

// Serve answers requests until ctx ends. Running requests then get a few more seconds.
func (s Server) Serve(ctx context.Context, listener net.Listener) error {
	return listen.Server{Handler: s.Handler, Log: s.Log}.Serve(ctx, listener)
}
