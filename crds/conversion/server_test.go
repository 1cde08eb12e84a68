package conversion

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
)

type noDefinitions struct{}

func (noDefinitions) Get(context.Context, string) (*apiextensionsv1.CustomResourceDefinition, error) {
	return nil, context.Canceled
}

// TestConnectionsEndWhileAReplicaRetires: a replica that retires answers on the connections that API servers keep, and ends them. A request
// on a connection that the process closes at the same moment would fail.
func TestConnectionsEndWhileAReplicaRetires(t *testing.T) {
	t.Parallel()
	var webhook *httptest.Server
	ends := func() bool {
		answer, err := webhook.Client().Post(webhook.URL+servePath, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Error(err)
			return false
		}
		_ = answer.Body.Close()
		return answer.Close
	}
	endedAtOnce := make(chan bool, 1)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { // the replica removes the label of the Pod
		endedAtOnce <- ends()
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"Pod","apiVersion":"v1"}`))
	}))
	defer api.Close()
	server, err := NewServer(Config{
		Rest: &rest.Config{Host: api.URL}, Registry: &Registry{}, Definitions: noDefinitions{},
		Owner: "me", Domain: "example.com", Namespace: "here", Name: "webhook", Pod: "me-0",
	})
	if err != nil {
		t.Fatal(err)
	}
	webhook = httptest.NewServer(server.handler)
	defer webhook.Close()
	close(server.ready)

	if ends() {
		t.Error("a connection ended while the replica serves")
	}
	started := time.Now()
	if err := server.retire(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !<-endedAtOnce {
		t.Error("a connection was kept when the Pod left the Service")
	}
	if served := time.Since(started); served < drainTime {
		t.Errorf("it served for %s, which is too short for every node to update its routes", served)
	}
}
