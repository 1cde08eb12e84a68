package reconcile

import (
	"encoding/json"
	"errors"
	"net/http"
	"path"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// creating is an API server with at most one ConfigMap, which no cache shows.
type creating struct {
	live     *unstructured.Unstructured
	requests []string
	// refuse answers applies that would create. If effective is true, they create the object anyway.
	refuse    *apierrors.StatusError
	effective bool
}

// ServeHTTP answers as the API server.
func (c *creating) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	c.requests = append(c.requests, request.Method)
	answer.Header().Set("Content-Type", "application/json")
	var refused *apierrors.StatusError
	if request.Method == http.MethodGet && c.live == nil {
		refused = apierrors.NewNotFound(configMaps().GroupResource(), "db-config")
	}
	if request.Method == http.MethodPatch {
		refused = c.apply(request)
	}
	if refused != nil {
		answer.WriteHeader(int(refused.ErrStatus.Code))
		_ = json.NewEncoder(answer).Encode(told(refused).ErrStatus)
		return
	}
	_ = json.NewEncoder(answer).Encode(c.live.Object)
}

func (c *creating) apply(request *http.Request) *apierrors.StatusError {
	desired := &unstructured.Unstructured{}
	_ = json.NewDecoder(request.Body).Decode(&desired.Object)
	if version := desired.GetResourceVersion(); c.live != nil && version != "" && version != c.live.GetResourceVersion() {
		return apierrors.NewConflict(configMaps().GroupResource(), "db-config", errors.New("the object has been modified"))
	}
	isRefused := c.live == nil && c.refuse != nil
	if !isRefused || c.effective {
		desired.SetUID("child")
		desired.SetResourceVersion("5")
		c.live = desired
	}
	if isRefused {
		return c.refuse
	}
	return nil
}

func TestApplyOfWhatNoCacheShows(t *testing.T) {
	t.Parallel()
	holder := ownerAt("1", "1")
	own := parse(t, settings)
	own.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(holder, holder.GroupVersionKind())})
	own.SetUID("child")
	own.SetResourceVersion("4")
	foreign := parse(t, settings)
	foreign.SetUID("theirs")
	foreign.SetResourceVersion("4")
	for name, test := range map[string]struct {
		server creating
		// first and second are the requests of two passes; wantsFirst and wantsSecond check their errors.
		first, second           []string
		wantsFirst, wantsSecond func(error) bool
	}{
		"no object exists: one request creates it": {
			server: creating{}, first: []string{"PATCH"}, wantsFirst: isNil, second: []string{"PATCH", "GET", "PATCH"}, wantsSecond: isNil,
		},
		"a foreign object exists: it stays, and one create is tried": {
			server: creating{live: foreign}, first: []string{"PATCH", "GET"}, wantsFirst: isForeign, second: []string{"GET"}, wantsSecond: isForeign,
		},
		"the owner's own child exists: it is updated": {
			server: creating{live: own}, first: []string{"PATCH", "GET", "PATCH"}, wantsFirst: isNil, second: []string{"GET", "PATCH"}, wantsSecond: isNil,
		},
		"a quota refuses it: the error says so": {
			server: creating{refuse: apierrors.NewForbidden(configMaps().GroupResource(), "db-config", errors.New("exceeded quota"))},
			first:  []string{"PATCH", "GET"}, wantsFirst: apierrors.IsForbidden, second: []string{"PATCH", "GET"}, wantsSecond: apierrors.IsForbidden,
		},
		"a foreign object existed for a moment: a later object is not overwritten": {
			server: creating{refuse: apierrors.NewConflict(configMaps().GroupResource(), "db-config", errors.New("the object has been modified"))},
			first:  []string{"PATCH", "GET"}, wantsFirst: apierrors.IsConflict, second: []string{"PATCH", "GET"}, wantsSecond: apierrors.IsConflict,
		},
		"it was created, and the answer was lost: the pass does not continue as if nothing had changed": {
			server: creating{refuse: apierrors.NewTimeoutError("the write took effect", 0), effective: true},
			first:  []string{"PATCH", "GET"}, wantsFirst: apierrors.IsTimeout, second: []string{"GET", "PATCH"}, wantsSecond: isNil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := &test.server
			client := clientOf(t, holder, server.ServeHTTP)
			for _, pass := range []struct {
				requests []string
				wants    func(error) bool
			}{{test.first, test.wantsFirst}, {test.second, test.wantsSecond}} {
				server.requests = nil
				if _, err := client.Apply(t.Context(), parse(t, settings)); !pass.wants(err) {
					t.Errorf("unexpected end: %v", err)
				}
				same(t, server.requests, pass.requests)
			}
			if server.live != nil && server.live.GetUID() == "theirs" {
				same(t, server.live.Object, foreign.Object)
			}
		})
	}
}

// TestAnOrphanIsAdoptedByAnOwnerThatStays: garbage collection would delete what an owner adopts that is gone.
func TestAnOrphanIsAdoptedByAnOwnerThatStays(t *testing.T) {
	t.Parallel()
	orphan := applyAs(t, parse(t, settings), nil)
	orphan.SetUID("child")
	now := metav1.Now()
	for story, test := range map[string]struct {
		change func(*unstructured.Unstructured)
		want   []string
		wants  func(error) bool
	}{
		"it is as the cache shows it":  {func(*unstructured.Unstructured) {}, []string{"GET probes", "PATCH configmaps"}, isNil},
		"it is being deleted":          {func(o *unstructured.Unstructured) { o.SetDeletionTimestamp(&now) }, []string{"GET probes"}, apierrors.IsConflict},
		"another one has its name now": {func(o *unstructured.Unstructured) { o.SetUID("2") }, []string{"GET probes"}, apierrors.IsConflict},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			holder, requests := ownerAt("1", "1"), []string{}
			live := holder.DeepCopy()
			test.change(live)
			client := clientOf(t, holder, func(answer http.ResponseWriter, request *http.Request) {
				resource, object := path.Base(path.Dir(request.URL.Path)), orphan
				if resource == "probes" {
					object = live
				}
				requests = append(requests, request.Method+" "+resource)
				answer.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(answer).Encode(object.Object)
			}, orphan.DeepCopy())
			if _, err := client.Apply(t.Context(), parse(t, settings)); !test.wants(err) {
				t.Errorf("unexpected end: %v", err)
			}
			same(t, requests, test.want)
		})
	}
}

func isNil(err error) bool { return err == nil }

func isForeign(err error) bool {
	_, is := errors.AsType[*ForeignError](err)
	return is
}
