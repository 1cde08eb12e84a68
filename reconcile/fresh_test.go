package reconcile

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/mysql-operator/mysql-operator/schema"
)

func TestOnlyTheSpecThatIsStillWantedDeletes(t *testing.T) {
	t.Parallel()
	kind := schema.Kind{Group: "test.example.com", Version: "v1", Kind: "Probe", Plural: "probes"}
	seen := newObject("test.example.com/v1", "Probe", types.NamespacedName{Namespace: "shop", Name: "a"})
	seen.SetUID("1")
	seen.SetGeneration(3)
	changed := func(change func(*unstructured.Unstructured)) *unstructured.Unstructured {
		live := seen.DeepCopy()
		change(live)
		return live
	}
	now := metav1.Now()
	for name, test := range map[string]struct {
		live *unstructured.Unstructured
		want string
	}{
		"as it was seen": {seen, ""},
		"its status and labels changed": {changed(func(o *unstructured.Unstructured) {
			o.SetLabels(map[string]string{"a": "b"})
			o.SetResourceVersion("9")
		}), ""},
		"its spec changed":       {changed(func(o *unstructured.Unstructured) { o.SetGeneration(4) }), "its generation is now 4"},
		"it is being deleted":    {changed(func(o *unstructured.Unstructured) { o.SetDeletionTimestamp(&now) }), "it is being deleted"},
		"another took its place": {changed(func(o *unstructured.Unstructured) { o.SetUID("2") }), "it was deleted and created again"},
		"it is gone":             {nil, "it no longer exists"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				var answer any = test.live
				if test.live == nil {
					missing := apierrors.NewNotFound(kind.GVR().GroupResource(), "a").Status()
					missing.APIVersion, missing.Kind = "v1", "Status"
					w.WriteHeader(http.StatusNotFound)
					answer = missing
				}
				if err := json.NewEncoder(w).Encode(answer); err != nil {
					t.Error(err)
				}
			}))
			t.Cleanup(server.Close)
			api, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			client := &Client{Reader: &Reader{api: api, names: resourceNames{}}, journal: newJournal(nil, nil), owner: seen}
			err = client.CheckUnchanged(t.Context())
			switch {
			case test.want == "" && err != nil:
				t.Errorf("it is not wanted any more: %v", err)
			case test.want != "" && (!apierrors.IsConflict(err) || !strings.Contains(err.Error(), test.want)):
				t.Errorf("the error is %v, want a Conflict: %q", err, test.want)
			}
		})
	}
}
