package reconcile

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// ending records the calls of End; End fails as long as failures is positive.
type ending struct {
	watching
	ended    []types.NamespacedName
	left     []types.NamespacedName
	failures int
	// does is what HandleDeletion does with its client; nil for nothing.
	does func(*Client) error
}

var errNotYet = errors.New("not yet")

// HandleDeletion implements DeletionHandler.
func (e *ending) HandleDeletion(_ context.Context, client *Client, key types.NamespacedName) error {
	if e.does != nil {
		if err := e.does(client); err != nil {
			return err
		}
	}
	if e.failures > 0 {
		e.failures--
		return errNotYet
	}
	e.ended = append(e.ended, key)
	return nil
}

// ListDeleted implements DeletionHandler.
func (e *ending) ListDeleted(context.Context) ([]types.NamespacedName, error) { return e.left, nil }

// TestAnEndIsToldOnce: End is called again until it succeeds, and not again after that.
func TestAnEndIsToldOnce(t *testing.T) {
	t.Parallel()
	e := &ending{failures: 1}
	s := newStage(t, e)
	s.shows(t, ownerAt("1", "10"))
	s.has(ownerAt("1", "10"))
	same(t, s.attempt(t.Context(), owner()).result, resultDone)
	if err := s.store.Delete(ownerAt("1", "10")); err != nil {
		t.Fatal(err)
	}
	same(t, s.attempt(t.Context(), owner()).result, resultFailed)
	same(t, len(e.ended), 0)
	for range 3 {
		same(t, s.attempt(t.Context(), owner()).result, resultGone)
	}
	same(t, e.ended, []types.NamespacedName{owner()})
}

// TestAnEndWritesForAnObjectThatIsGone: it can own nothing, and the engine keeps no memory of what was written.
func TestAnEndWritesForAnObjectThatIsGone(t *testing.T) {
	t.Parallel()
	config := newObject("v1", "ConfigMap", owner())
	e := &ending{does: func(client *Client) error {
		client.journal.wrote(client.pass, configMaps(), child("left", "30", nil))
		if _, err := client.Create(t.Context(), config); err == nil || !strings.Contains(err.Error(), "the owner no longer exists") {
			t.Errorf("create a child of an object that is gone: %v", err)
		}
		if _, err := client.Apply(t.Context(), config); err == nil || !strings.Contains(err.Error(), "the owner no longer exists") {
			t.Errorf("apply a child of an object that is gone: %v", err)
		}
		return nil
	}}
	s := newStage(t, e)
	s.controller.caches[configMaps()] = newLagging().view
	s.expectDeletion(owner())
	same(t, s.attempt(t.Context(), owner()).result, resultGone)
	same(t, e.ended, []types.NamespacedName{owner()})
	same(t, len(s.journal.records), 0)
}

// TestAnEndOfWhichNobodyWasTold: the object was deleted while no operator ran. End is not called for an object that never had a pass and
// that Left does not return.
func TestAnEndOfWhichNobodyWasTold(t *testing.T) {
	t.Parallel()
	stranger := types.NamespacedName{Namespace: "elsewhere", Name: "never-seen"}
	e := &ending{left: []types.NamespacedName{owner()}}
	s := newStage(t, e)
	queue := s.controller.open(s.metrics.queue, s.line, s.expectDeletion)
	defer s.controller.close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s.lookForLeft(ctx)
	key, _ := queue.Get()
	same(t, key, owner())
	same(t, s.attempt(t.Context(), key).result, resultGone)
	same(t, s.attempt(t.Context(), stranger).result, resultGone)
	same(t, e.ended, []types.NamespacedName{owner()})
}

// TestAnEndBeforeTheFirstPass: the object is gone when its first pass in the term begins. It may have had passes in an earlier term.
func TestAnEndBeforeTheFirstPass(t *testing.T) {
	t.Parallel()
	begun := func(s *stage) { s.queue = s.controller.open(s.metrics.queue, s.line, s.expectDeletion) }
	for story, happens := range map[string]func(*testing.T, *stage){
		"it was there when the term began": func(t *testing.T, s *stage) {
			t.Helper()
			s.shows(t, ownerAt("1", "10"))
			begun(s)
		},
		"it came later": func(_ *testing.T, s *stage) {
			begun(s)
			s.controller.handler(s.controller.itself).OnAdd(ownerAt("1", "10"), false)
		},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			e := &ending{}
			s := newStage(t, e)
			happens(t, s)
			defer s.controller.close()
			if err := s.store.Delete(ownerAt("1", "10")); err != nil {
				t.Fatal(err)
			}
			key, _ := s.queue.Get()
			same(t, s.attempt(t.Context(), key).result, resultGone)
			same(t, e.ended, []types.NamespacedName{owner()})
		})
	}
}
