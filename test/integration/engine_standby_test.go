package integration

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/reconcile"
)

// frozen is a process that stands still: its requests are sent once it continues, and it does not answer until then.
type frozen struct {
	mu    sync.Mutex
	thaws chan struct{}
}

// freeze makes the process stand still until the returned function is called.
func (f *frozen) freeze() (thaw func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	thaws := make(chan struct{})
	f.thaws = thaws
	return sync.OnceFunc(func() { close(thaws) })
}

func (f *frozen) await(ctx context.Context) error {
	f.mu.Lock()
	thaws := f.thaws
	f.mu.Unlock()
	if thaws == nil {
		return nil
	}
	select {
	case <-thaws:
		return nil
	case <-ctx.Done():
		return errors.New("it stands still")
	}
}

func (f *frozen) around(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if err := f.await(request.Context()); err != nil {
			return nil, err
		}
		return next.RoundTrip(request)
	})
}

func TestEngineTakesOverFromALeaderThatStandsStill(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool.Shared(t))
	w.make(t, w.namespace, "a")
	machine := &frozen{}
	made := func(identity string, more func(*reconcile.Config)) *operator {
		return w.operator(t, simply(func(_ context.Context, _ *reconcile.Client, object *unstructured.Unstructured) (reconcile.Outcome, error) {
			return done(object), nil
		}), func(config *reconcile.Config, controller *reconcile.Controller) {
			w.elected(identity)(config, controller)
			// The Lease must not expire meanwhile.
			config.LeaseDuration, config.RenewDeadline, config.RetryPeriod = 10*time.Minute, 5*time.Minute, time.Second
			more(config)
		})
	}
	first := made("first", func(config *reconcile.Config) { config.Rest.Wrap(machine.around) })
	first.start(t)
	w.phase(t, w.namespace, "a", "Ready")
	answered := make(chan struct{}, 1)
	second := made("second", func(config *reconcile.Config) {
		config.Ask = func(ctx context.Context, identity string) error {
			if identity != "first" {
				t.Errorf("the standby asks %q", identity)
			}
			err := machine.await(ctx)
			select {
			case answered <- struct{}{}:
			default:
			}
			return err
		}
	})
	second.start(t)
	<-answered

	thaw := machine.freeze()
	defer thaw()
	soon(t, func(context.Context) string {
		if second.measured(t, "leader", nil) != 1 {
			return "the leader stands still, and the standby does not lead"
		}
		return ""
	})
	w.make(t, w.namespace, "b")
	w.phase(t, w.namespace, "b", "Ready")
	thaw()
	soon(t, func(context.Context) string {
		if first.measured(t, "leader", nil) != 0 {
			return "the former leader continues to work"
		}
		return ""
	})
	if second.measured(t, "leader", nil) != 1 {
		t.Error("the new leader has lost the Lease again")
	}
}
