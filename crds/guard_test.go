package crds

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// closing is an API server, or a proxy in front of it, that ends every watch as soon as it has begun.
type closing struct {
	*server
	gets atomic.Int64
	// news says that a watch sends an event of the definition before it ends.
	news bool
}

func (c *closing) Get(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	c.gets.Add(1)
	return c.server.Get(ctx, name)
}

func (c *closing) Watch(context.Context, string, string) (watch.Interface, error) {
	if !c.news {
		return watch.NewEmptyWatch(), nil
	}
	events := make(chan watch.Event, 1)
	events <- watch.Event{Type: watch.Added, Object: &apiextensionsv1.CustomResourceDefinition{}}
	return watch.NewProxyWatcher(events), nil
}

// TestGuardRestsWhereWatchesEndAtOnce: also if each watch sends an outdated event.
func TestGuardRestsWhereWatchesEndAtOnce(t *testing.T) {
	t.Parallel()
	for name, news := range map[string]bool{"it ends": false, "it sends an old definition": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer()
			if _, err := installer(s).Ensure(t.Context(), all(t)); err != nil {
				t.Fatal(err)
			}
			c := &closing{server: s, news: news}
			i := installer(s)
			i.API = c
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			NewGuard(i, all(t), func(context.Context, Notice) {}).Run(ctx)
			if gets := c.gets.Load(); gets < 1 || gets > 5 {
				t.Errorf("the definition was read %d times in half a second", gets)
			}
		})
	}
}

// TestUnservedDefinitionsAreNotGone: if an API server does not serve definitions for a while, none of them is deleted.
func TestUnservedDefinitionsAreNotGone(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("it was sent %s %s", r.Method, r.URL.Path)
		}
		asked.Add(1)
		http.NotFound(w, r) // exactly the API server's answer: "404 page not found"
	}))
	t.Cleanup(server.Close)
	api, err := NewAPI(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.Get(t.Context(), "x"); err == nil || apierrors.IsNotFound(err) {
		t.Errorf("the definition counts as deleted: %v", err)
	}
	var lock sync.Mutex
	told := []Notice{}
	before := asked.Load()
	guard := NewGuard(Installer{API: api, Timeout: 150 * time.Millisecond, Log: logr.Discard()}, all(t), func(_ context.Context, news Notice) {
		lock.Lock()
		defer lock.Unlock()
		told = append(told, news)
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	guard.Run(ctx)
	if len(told) != 1 || told[0].Reason != ReasonFault || !strings.Contains(told[0].Message, "does not serve definitions") {
		t.Errorf("notices %+v", told)
	}
	if count := asked.Load() - before; count > 20 {
		t.Errorf("the API server was asked %d times in a second", count)
	}
}
