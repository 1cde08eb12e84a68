package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/listen"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
)

const (
	// alarmsEvery and alarmBurst limit how many passes the members of one cluster can cause by alarms.
	alarmsEvery = time.Second / 2
	alarmBurst  = 30 // a takeover takes fewer
	// alarmClients is how many members can send alarms at once: those of all clusters may miss the same node.
	alarmClients = 512
	// alarmTime is how long an alarm may take. It is shorter than the time in which a term must end.
	alarmTime  = 2 * time.Second
	notAnAlarm = "an alarm is a request of a member without a body"
	// listenAgain is when the operator listens again after it could not.
	listenAgain = 10 * time.Second
)

// Listen implements reconcile.Listener: it takes the members' alarms (package agent). Each requests a pass over the member's cluster.
func (r *reconciler) Listen(ctx context.Context, request func(types.NamespacedName)) {
	for r.operator.AlarmAddress != "" && ctx.Err() == nil {
		err := r.takeAlarms(ctx, request)
		if err == nil {
			return
		}
		logr.FromContextOrDiscard(ctx).Error(err, "failed to take alarms of members, so the operator looks every ten seconds, and notices failures that much later; will try again", "address", r.operator.AlarmAddress)
		select {
		case <-ctx.Done():
		case <-time.After(listenAgain):
		}
	}
}

// takeAlarms takes alarms until ctx ends. A member is a stranger for the listener: it gets one answer for each connection.
func (r *reconciler) takeAlarms(ctx context.Context, request func(types.NamespacedName)) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", r.operator.AlarmAddress)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", r.operator.AlarmAddress, err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String()) // an address of a listener has a port
	r.memory.alarmPort.Store(&port)
	defer r.memory.alarmPort.Store(nil)
	server := listen.Server{
		Handler: r.answersAlarms(request), TLS: r.memory.alarmTLS(), Strangers: alarmClients, Request: alarmTime,
		Log: logr.FromContextOrDiscard(ctx),
	}
	return server.Serve(ctx, listener)
}

// answersAlarms answers alarms and tests. The connection is that of a member of the cluster that its host name names (alarmTLS).
func (r *reconciler) answersAlarms(request func(types.NamespacedName)) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+agent.AlarmTestPath, func(w http.ResponseWriter, asked *http.Request) {
		if _, ok := alarmedCluster(asked); !ok {
			http.Error(w, notAnAlarm, http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST "+agent.AlarmPath, func(w http.ResponseWriter, asked *http.Request) {
		key, ok := alarmedCluster(asked)
		switch {
		case !ok:
			http.Error(w, notAnAlarm, http.StatusBadRequest)
		case !r.memory.alarms.allows(key, r.now()):
			http.Error(w, "the members of this cluster have sent many alarms, try again later", http.StatusTooManyRequests)
		default:
			request(key)
			w.WriteHeader(http.StatusNoContent)
		}
	})
	return mux
}

func alarmedCluster(asked *http.Request) (types.NamespacedName, bool) {
	if asked.TLS == nil || len(asked.TLS.VerifiedChains) == 0 || asked.ContentLength != 0 {
		return types.NamespacedName{}, false
	}
	namespace, name, ok := agent.ClusterOfAlarms(asked.TLS.ServerName)
	return types.NamespacedName{Namespace: namespace, Name: name}, ok
}

var errUnknownCluster = errors.New("no cluster of this name sends alarms to this operator")

// alarmTLS returns the configuration of the server that takes alarms. It accepts only certificates of a CA of the cluster that the client
// names, and shows one of them. Of several CAs, members trust the oldest. Only after the key of a CA was lost, alarms do not arrive until
// the members trust the new one.
func (m *memory) alarmTLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			namespace, name, _ := agent.ClusterOfAlarms(hello.ServerName)
			m.mu.Lock()
			security := m.clusters[types.NamespacedName{Namespace: namespace, Name: name}].security
			m.mu.Unlock()
			if security == nil {
				return nil, errUnknownCluster
			}
			config := security.AlarmServer()
			if config == nil {
				return nil, errUnknownCluster
			}
			return config, nil
		},
	}
}

// alarmLimits limit the alarms of each cluster. The zero value is ready to use.
type alarmLimits struct {
	mu  sync.Mutex
	all map[types.NamespacedName]*rate.Limiter
}

// allows reports whether the members of a cluster may cause another pass.
func (l *alarmLimits) allows(key types.NamespacedName, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[types.NamespacedName]*rate.Limiter{}
	}
	limit, found := l.all[key]
	if !found {
		limit = rate.NewLimiter(rate.Every(alarmsEvery), alarmBurst)
		l.all[key] = limit
	}
	return limit.AllowN(now, 1)
}

func (l *alarmLimits) forget(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, key)
}

// alarmsAt returns where the operator takes the alarms of a cluster; empty while it takes none.
func (m *memory) alarmsAt(key types.NamespacedName) string {
	port := m.alarmPort.Load()
	if port == nil {
		return ""
	}
	return net.JoinHostPort(agent.AlarmHost(key.Namespace, key.Name), *port)
}
