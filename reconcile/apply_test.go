package reconcile

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// creating is an API server with one ConfigMap at most, which no cache shows.
type creating struct {
	live     *unstructured.Unstructured
	requests []string
	// refuse answers applies that would create; effective says that they create all the same.
	refuse    *apierrors.StatusError
	effective bool
}

// ServeHTTP is the API server.
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
		// requests are those of two passes, and wants says what their errors have to be.
		first, second           []string
		wantsFirst, wantsSecond func(error) bool
	}{
		"nothing is there: it is made with one request": {
			server: creating{}, first: []string{"PATCH"}, wantsFirst: isNil, second: []string{"PATCH", "GET", "PATCH"}, wantsSecond: isNil,
		},
		"somebody's is there: it stays, and is tried once": {
			server: creating{live: foreign}, first: []string{"PATCH", "GET"}, wantsFirst: isForeign, second: []string{"GET"}, wantsSecond: isForeign,
		},
		"its own is there: it is brought up to date": {
			server: creating{live: own}, first: []string{"PATCH", "GET", "PATCH"}, wantsFirst: isNil, second: []string{"GET", "PATCH"}, wantsSecond: isNil,
		},
		"a quota refuses it: nothing hides that": {
			server: creating{refuse: apierrors.NewForbidden(configMaps().GroupResource(), "db-config", errors.New("exceeded quota"))},
			first:  []string{"PATCH", "GET"}, wantsFirst: apierrors.IsForbidden, second: []string{"PATCH", "GET"}, wantsSecond: apierrors.IsForbidden,
		},
		"somebody's was there for a moment: nothing is made over what comes next": {
			server: creating{refuse: apierrors.NewConflict(configMaps().GroupResource(), "db-config", errors.New("the object has been modified"))},
			first:  []string{"PATCH", "GET"}, wantsFirst: apierrors.IsConflict, second: []string{"PATCH", "GET"}, wantsSecond: apierrors.IsConflict,
		},
		"it was made, and the answer was lost: the pass does not go on as if nothing had changed": {
			server: creating{refuse: apierrors.NewTimeoutError("the write took effect", 0), effective: true},
			first:  []string{"PATCH", "GET"}, wantsFirst: apierrors.IsTimeout, second: []string{"GET", "PATCH"}, wantsSecond: isNil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := &test.server
			client := clientOf(t, server.ServeHTTP)
			ctx := withPass(t.Context(), pass{key: owner(), uid: "1"})
			for _, pass := range []struct {
				requests []string
				wants    func(error) bool
			}{{test.first, test.wantsFirst}, {test.second, test.wantsSecond}} {
				server.requests = nil
				if _, err := client.Apply(ctx, holder, parse(t, settings)); !pass.wants(err) {
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

func isNil(err error) bool { return err == nil }

func isForeign(err error) bool {
	_, is := errors.AsType[*ForeignError](err)
	return is
}
