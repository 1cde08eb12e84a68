package integration

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/mysql-operator/mysql-operator/reconcile"
)

// operating is an operator at work.
type operating struct {
	manager  *reconcile.Manager
	wire     *wire
	registry *prometheus.Registry
	log      *errorLog
	stop     context.CancelFunc
	ended    chan error
}

// operate starts an operator of kinds that runs until the test ends, or finish. configure may change how.
func (p *place) operate(t *testing.T, configure func(*reconcile.Config), controllers ...reconcile.Controller) *operating {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	o := &operating{registry: prometheus.NewRegistry(), log: &errorLog{}, stop: stop, ended: make(chan error, 1), wire: &wire{die: stop}}
	config := reconcile.Config{
		Rest: rest.CopyConfig(p.Config), Namespaces: []string{p.namespace}, Identity: "operator", Registry: o.registry,
		Logger: o.log.logger(t), DrainTimeout: 2 * time.Second,
	}
	config.Rest.Impersonate = rest.ImpersonationConfig{UserName: p.operatorUser(), Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	config.Rest.Wrap(o.wire.around)
	if configure != nil {
		configure(&config)
	}
	manager, err := reconcile.New(config, controllers)
	if err != nil {
		t.Fatal(err)
	}
	o.manager = manager
	go func() {
		defer close(o.ended)
		o.ended <- manager.Run(ctx)
	}()
	t.Cleanup(func() { o.finish(t) })
	return o
}

// elected makes an operator stand for election in the namespace.
func (p *place) elected(config *reconcile.Config) {
	config.LeaderElect, config.LeaseNamespace = true, p.namespace
}

// omnipotent makes an operator the administrator.
func (p *place) omnipotent(config *reconcile.Config) {
	config.Rest.Impersonate = rest.ImpersonationConfig{}
}

// finish stops the operator and waits until it has ended.
func (o *operating) finish(t *testing.T) {
	t.Helper()
	o.stop()
	if err, ok := <-o.ended; ok && err != nil {
		t.Errorf("the operator ended with: %v", err)
	}
}

// hears has the operator's engine send a request, of which only the answer's Date matters: one that was killed hears nothing.
func (o *operating) hears(t *testing.T) {
	t.Helper()
	config := o.manager.RestConfig()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := client.Get(config.Host + "/version"); err == nil {
		_ = answer.Body.Close()
	}
}

// passes is how many passes have ended well.
func (o *operating) passes(t *testing.T) float64 {
	t.Helper()
	measured := operator{registry: o.registry}
	return measured.measured(t, "reconcile_total", map[string]string{"result": "done"})
}

// restful is how many passes have ended well, once there have been no more for a while: the last of them may be due to a write that a test
// has seen already.
func (o *operating) restful(t *testing.T) float64 {
	t.Helper()
	ended, since := o.passes(t), time.Now()
	soon(t, func(context.Context) string {
		if now := o.passes(t); now != ended {
			ended, since = now, time.Now()
		}
		if quiet := time.Since(since); quiet < time.Second {
			return fmt.Sprintf("the last of %v passes ended only %s ago", ended, quiet)
		}
		return ""
	})
	return ended
}

// errorLog passes an operator's log on to the test's, and keeps the errors.
type errorLog struct {
	mu     sync.Mutex
	errors []string
}

func (l *errorLog) logger(t *testing.T) logr.Logger {
	t.Helper()
	return funcr.New(func(prefix, line string) {
		t.Log(prefix, line)
		if !strings.Contains(line, `"level"=`) { // funcr gives a level to what is no error
			l.mu.Lock()
			defer l.mu.Unlock()
			l.errors = append(l.errors, line)
		}
	}, funcr.Options{LogTimestamp: true})
}

func (l *errorLog) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.errors
}

// wire is what lies between an operator and the API server: it notes the writes but the Lease's, and may kill the operator at one.
type wire struct {
	die context.CancelFunc

	mu     sync.Mutex
	writes []string
	// deadly is the number of the write, from 1, that the operator does not survive; 0 for none. Sent says that the API server has
	// got it, and only the answer is lost.
	deadly int
	sent   bool
	dead   bool
}

// around implements rest.Config's Wrap.
func (w *wire) around(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if request.Method == http.MethodGet || strings.Contains(request.URL.Path, "/leases") {
			if w.isDead() {
				return nil, context.Canceled
			}
			return next.RoundTrip(request)
		}
		// One write at a time, so that it is certain which one was the last.
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.dead {
			return nil, context.Canceled
		}
		w.writes = append(w.writes, request.Method+" "+request.URL.Path)
		if len(w.writes) != w.deadly {
			return next.RoundTrip(request)
		}
		w.dead = true
		if w.sent {
			if response, err := next.RoundTrip(request); err == nil {
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
			}
		}
		w.die()
		return nil, context.Canceled
	})
}

// dieAt makes a write the operator's last.
func (w *wire) dieAt(number int, sent bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deadly, w.sent = number, sent
}

func (w *wire) isDead() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dead
}

// written returns all writes so far.
func (w *wire) written() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes
}
