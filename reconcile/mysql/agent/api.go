package agent

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/mysql-operator/mysql-operator/listen"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

const (
	statusPath     = "/v1/status"
	assignmentPath = "/v1/assignment"

	// hungAfter is how long mysqld may accept connections without answering before the agent has it killed, and kubelet would restart it.
	hungAfter = 2 * time.Minute
	// stuckAfter is how long the agent's own loop may make no progress before kubelet restarts the agent.
	stuckAfter = 3 * time.Minute

	maxBody = 1 << 20
)

// Serve answers probes, metrics and the operator until the context ends. The routes under /v1/ require the operator's certificate.
func (a *Agent) Serve(ctx context.Context, address string) error {
	var sockets net.ListenConfig
	listener, err := sockets.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", address, err)
	}
	return listen.Server{Handler: a.Handler(), TLS: a.tls.server(), Trusted: IsOperator, Log: a.log}.Serve(ctx, listener)
}

// Handler returns the agent's routes.
func (a *Agent) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /startupz", a.probe(func(time.Time) error { return a.started() }))
	mux.HandleFunc("GET /livez", a.probe(a.alive))
	mux.HandleFunc("GET /readyz", a.probe(a.ready))
	mux.HandleFunc("GET /healthz", a.probe(a.loopRunning))
	mux.Handle("GET /metrics", a.metricsHandler())
	mux.HandleFunc("GET "+statusPath, a.operatorOnly(a.getStatus))
	mux.HandleFunc("PUT "+assignmentPath, a.operatorOnly(a.putAssignment))
	mux.HandleFunc("PUT "+hollowPath, a.operatorOnly(a.putHollow))
	return mux
}

// IsOperator reports whether a client has presented the operator's certificate.
func IsOperator(state tls.ConnectionState) bool {
	return len(state.VerifiedChains) > 0 && state.PeerCertificates[0].Subject.CommonName == OperatorName
}

func operatorOnly(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || !IsOperator(*r.TLS) {
			http.Error(w, "only the operator may send this request: use the operator's client certificate", http.StatusUnauthorized)
			return
		}
		next(w, r)
	}
}

// operatorOnly also verifies the certificate of a reused connection against the current CAs.
func (a *Agent) operatorOnly(next http.HandlerFunc) http.HandlerFunc {
	return operatorOnly(func(w http.ResponseWriter, r *http.Request) {
		if err := a.tls.verify(r.TLS.PeerCertificates[0]); err != nil {
			http.Error(w, "only the operator may send this request: the client certificate is no longer trusted", http.StatusUnauthorized)
			return
		}
		next(w, r)
	})
}

func (a *Agent) getStatus(w http.ResponseWriter, r *http.Request) {
	status, by := a.Status(), AlarmTargetOf(r)
	status.AlarmsArrive = a.alarms.arriveAt(by)
	writeJSON(w, http.StatusOK, status)
	if r.Header.Get(bystanderHeader) != "" {
		return
	}
	a.refresh(time.Now())
	a.alarms.looked(time.Now(), by, status.News())
	a.mayHaveNews()
}

// refresh makes the loop look again unless it has just looked. An operator that reads about a problem asks again soon, and needs to read
// what has happened since.
func (a *Agent) refresh(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Sub(a.looked) >= stepEvery {
		a.Wake()
	}
}

func (a *Agent) putAssignment(w http.ResponseWriter, r *http.Request) {
	var assignment replication.Assignment
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&assignment); err != nil {
		http.Error(w, "read assignment: "+err.Error(), http.StatusBadRequest)
		return
	}
	err := a.Assign(assignment)
	var stale *replication.StaleError
	switch {
	case errors.As(err, &stale):
		held := a.Status().Held
		writeJSON(w, http.StatusConflict, refusalBody{Epoch: held.Epoch, Revision: held.Revision})
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		a.forwardConfirmation(context.WithoutCancel(r.Context()), assignment.Confirmed())
		w.WriteHeader(http.StatusNoContent)
	}
}

func writeJSON(w http.ResponseWriter, code int, value any) {
	content, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(code)
	_, _ = w.Write(content) // if this fails, the client is gone, and cannot receive an error
}

// probe answers every client in one word. MySQL's messages and its data are only for the operator.
func (a *Agent) probe(check func(now time.Time) error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if err := check(time.Now()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	}
}

// started returns an error until mysqld has answered since it began to listen. Until then it may be recovering, which takes as long as it
// takes.
func (a *Agent) started() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answered.IsZero() {
		return errors.New("starting")
	}
	return nil
}

// alive returns an error if mysqld hangs.
func (a *Agent) alive(now time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	since := a.answered
	if since.IsZero() {
		since = a.hung
	}
	if !since.IsZero() && now.Sub(since) > hungAfter && now.Sub(a.looked) < hungAfter {
		return errors.New("hung")
	}
	return nil
}

// loopRunning returns an error if the agent's own loop is stuck.
func (a *Agent) loopRunning(now time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.looked.IsZero() && now.Sub(a.looked) > stuckAfter {
		return errors.New("stuck")
	}
	return nil
}

// A replica that served stays ready while the primary is replaced. Otherwise clients would wait for kubelet, which looks every two seconds.
// Until the next primary is chosen, at most for choiceFor, the replica does not fall behind. Then it gets turnsFor to follow that one.
const (
	choiceFor = time.Minute
	turnsFor  = 5 * time.Second
)

// staysReady returns until when the member stays ready after it has accepted an assignment. The caller must hold the lock.
func (a *Agent) staysReady(now time.Time, order replication.Assignment) time.Time {
	switch {
	case order.Record.FormerPrimary != "" && a.status.State == replication.StateReplicating:
		return now.Add(choiceFor)
	case order.Record.FormerPrimary != "":
		return a.readyUntil
	case order.Role == replication.RoleReplica && !order.InSync:
		return time.Time{}
	}
	if limit := now.Add(turnsFor); limit.Before(a.readyUntil) {
		return limit
	}
	return a.readyUntil
}

// ready returns an error unless Services may send clients to this member.
func (a *Agent) ready(now time.Time) error {
	a.mu.Lock()
	turns := now.Before(a.readyUntil)
	a.mu.Unlock()
	status := a.Status()
	isTurning := status.State == replication.StateCatchingUp || status.State == replication.StatePromoting
	if status.Serves() || turns && isTurning {
		return nil
	}
	return errors.New(string(status.State))
}
