package reconcile

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
)

// unseenAt returns an object with the status that its definition defaults.
func unseenAt(version string) *unstructured.Unstructured {
	object := ownerAt("1", version)
	object.SetGeneration(4)
	object.Object["status"] = map[string]any{"observedGeneration": int64(unseenGeneration)}
	return object
}

func TestWhoIsUnseen(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	for name, test := range map[string]struct {
		change func(*unstructured.Unstructured)
		want   bool
	}{
		"as its definition makes it": {func(*unstructured.Unstructured) {}, true},
		"being deleted":              {func(o *unstructured.Unstructured) { o.SetDeletionTimestamp(&now) }, false},
		"accepted":                   {func(o *unstructured.Unstructured) { o.Object["status"] = accepted(t, o) }, false},
		"a user reset the generation of a status with other fields": {func(o *unstructured.Unstructured) {
			o.Object["status"] = map[string]any{"observedGeneration": int64(unseenGeneration), "primary": "db-0"}
		}, false},
		"of a kind without a default": {func(o *unstructured.Unstructured) { delete(o.Object, "status") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := unseenAt("10")
			test.change(object)
			same(t, isUnseen(object), test.want)
		})
	}
}

// accepted returns the first status as the API server stores it.
func accepted(t *testing.T, object *unstructured.Unstructured) map[string]any {
	t.Helper()
	document, err := json.Marshal(accept(object).Status)
	if err != nil {
		t.Fatal(err)
	}
	var status map[string]any
	if err := json.Unmarshal(document, &status); err != nil {
		t.Fatal(err)
	}
	return status
}

// A new object gets its first status before the operator makes anything for it. The next pass is a full one, with the API server's answer
// to that write: the object is not read again.
func TestTheFirstPassOverANewObjectWritesItsFirstStatus(t *testing.T) {
	t.Parallel()
	w := &watching{}
	s := newStage(t, w)
	s.shows(t, unseenAt("10"))
	live := unseenAt("10")
	s.has(live)
	requests := []string{}
	s.answers(func(answer http.ResponseWriter, request *http.Request) {
		requests = append(requests, request.Method+" "+request.URL.Path)
		var wanted map[string]any
		if err := json.NewDecoder(request.Body).Decode(&wanted); err == nil {
			live.Object["status"] = wanted["status"]
			live.SetResourceVersion("11")
		}
		answer.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(answer).Encode(live.Object)
	})
	same(t, s.attempt(t.Context(), owner()).result, resultDone)
	same(t, len(w.saw), 0)
	same(t, requests, []string{"PATCH /apis/engine.example.com/v1/namespaces/shop/probes/owner/status"})
	status, _ := live.Object["status"].(map[string]any)
	same(t, status["observedGeneration"], any(4.0))
	same(t, stateOf(live), "NotReady")

	same(t, s.attempt(t.Context(), owner()).result, resultBehind) // the cache does not show it yet
	s.shows(t, live)
	same(t, s.attempt(t.Context(), owner()).result, resultDone)
	same(t, w.saw, []string{"1@11"})
	same(t, len(requests), 1)
}

// Another operator has written the status, which the cache does not show yet: the status stays.
func TestTheFirstStatusReplacesNoOther(t *testing.T) {
	t.Parallel()
	w := &watching{}
	s := newStage(t, w)
	s.shows(t, unseenAt("10"))
	s.has(ownerAt("1", "20"))
	s.refuse = told(apierrors.NewConflict(apischema.GroupResource{Resource: "probes"}, "owner", errors.New("the object has been modified")))
	same(t, s.attempt(t.Context(), owner()).result, resultConflict)
	same(t, len(w.saw), 0)
	s.shows(t, ownerAt("1", "20"))
	same(t, s.attempt(t.Context(), owner()).requeueAfter, time.Duration(0))
	same(t, w.saw, []string{"1@20"})
}

// A user changed a new object, and its watch is stuck: after the conflict the operator reads the object live, and writes its first status.
func TestTheFirstStatusNeedsNoWatch(t *testing.T) {
	t.Parallel()
	s := newStage(t, &watching{})
	s.shows(t, unseenAt("10"))
	live := unseenAt("20")
	s.answers(func(answer http.ResponseWriter, request *http.Request) {
		answer.Header().Set("Content-Type", "application/json")
		sent := unstructured.Unstructured{Object: map[string]any{}}
		if err := json.NewDecoder(request.Body).Decode(&sent.Object); err == nil && sent.GetResourceVersion() != live.GetResourceVersion() {
			refusal := apierrors.NewConflict(apischema.GroupResource{Resource: "probes"}, "owner", errors.New("the object has been modified"))
			answer.WriteHeader(http.StatusConflict)
			_ = json.NewEncoder(answer).Encode(refusal.ErrStatus)
			return
		}
		_ = json.NewEncoder(answer).Encode(live.Object)
	})
	same(t, s.attempt(t.Context(), owner()).result, resultConflict)
	same(t, s.attempt(t.Context(), owner()).result, resultDone)
}
