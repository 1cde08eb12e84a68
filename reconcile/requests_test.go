package reconcile

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
)

// hangingWrites serves an API server whose writes of the named resources hang until the test ends, and returns a client of it.
func hangingWrites(t *testing.T, resources ...string) (client *http.Client, address string, hang chan struct{}) {
	t.Helper()
	hang, end := make(chan struct{}, 1000), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		for _, resource := range resources {
			if request.Method != http.MethodGet && strings.Contains(request.URL.Path, resource) {
				hang <- struct{}{}
				<-end
			}
		}
		_, _ = answer.Write([]byte("{}"))
	}))
	t.Cleanup(server.Close)
	m, err := newMetrics(prometheus.NewRegistry(), "test")
	if err != nil {
		t.Fatal(err)
	}
	client, err = rest.HTTPClientFor(instrument(&rest.Config{Host: server.URL}, m, 32))
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	t.Cleanup(group.Wait)
	t.Cleanup(func() { close(end) })
	for _, resource := range resources {
		for range 136 {
			group.Go(func() { ask(t, client, http.MethodPatch, server.URL+"/apis/apps/v1/namespaces/a/"+resource+"/x") })
		}
	}
	return client, server.URL, hang
}

func ask(t *testing.T, client *http.Client, method, url string) {
	t.Helper()
	_ = askUnder(t.Context(), t, client, method, url) // it fails when the test is over
}

func askUnder(ctx context.Context, t *testing.T, client *http.Client, method, url string) error {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// A webhook that hangs on one resource does not delay requests for another.
func TestHangingWritesOfAResourceDelayNoOther(t *testing.T) {
	t.Parallel()
	client, address, hang := hangingWrites(t, "deployments")
	for range 16 {
		<-hang
	}
	began := time.Now()
	for _, method := range []string{http.MethodGet, http.MethodPatch, http.MethodPost} {
		ask(t, client, method, address+"/apis/cr.mysqloperator.grtl.github.com/v1/namespaces/a/mysqlclusters/db")
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("three requests for another resource took %s", took)
	}
}

// The requests of an urgent pass run although all others hang, also if urgent ones of another resource hang.
func TestHangingRequestsDelayNoUrgentPass(t *testing.T) {
	t.Parallel()
	client, address, hang := hangingWrites(t, "deployments", "statefulsets", "services")
	for range 24 {
		<-hang
	}
	ctx, cancel := context.WithTimeout(urgently(t.Context()), 10*time.Second)
	defer cancel()
	var group sync.WaitGroup
	defer group.Wait()
	hanging, end := context.WithCancel(urgently(t.Context()))
	defer end()
	for range 20 {
		group.Go(func() {
			_ = askUnder(hanging, t, client, http.MethodPatch, address+"/apis/apps/v1/namespaces/a/deployments/x")
		})
	}
	for range 4 {
		<-hang
	}
	for _, method := range []string{http.MethodGet, http.MethodPatch} {
		if err := askUnder(ctx, t, client, method, address+"/apis/apps/v1/namespaces/a/others/x"); err != nil {
			t.Fatalf("%s waits for others: %v", method, err)
		}
	}
}

// The Lease is renewed although all other requests hang: a leader that cannot renew it ends, and no operator decides for a while.
func TestHangingRequestsDelayNoLease(t *testing.T) {
	t.Parallel()
	arrived, end := make(chan struct{}, 1000), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		if !strings.Contains(request.URL.Path, "/leases/") {
			arrived <- struct{}{}
			<-end
		}
		answer.Header().Set("Content-Type", "application/json")
		_, _ = answer.Write([]byte(`{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"x"}}`))
	}))
	t.Cleanup(server.Close)
	const slots = 4
	m, err := New(Config{Rest: &rest.Config{Host: server.URL}, MaxRequests: slots, LeaderElect: true, LeaseNamespace: "home", Identity: "us"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	others, err := rest.HTTPClientFor(m.rest)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	t.Cleanup(group.Wait)
	t.Cleanup(func() { close(end) })
	for _, resource := range []string{"pods", "services"} {
		for range 2 * slots {
			group.Go(func() { ask(t, others, http.MethodGet, server.URL+"/api/v1/namespaces/a/"+resource+"/x") })
		}
	}
	for range slots {
		<-arrived
	}
	leases, err := m.leases()
	if err != nil {
		t.Fatal(err)
	}
	bounded, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for range 2 * slots {
		if _, _, err := m.lock(leases).Get(bounded); err != nil {
			t.Fatalf("the Lease waits for others: %v", err)
		}
	}
}

// If all writes hang, reads still succeed.
func TestHangingWritesDelayNoReads(t *testing.T) {
	t.Parallel()
	client, address, hang := hangingWrites(t, "deployments", "statefulsets", "services")
	for range 24 {
		<-hang
	}
	began := time.Now()
	ask(t, client, http.MethodGet, address+"/apis/cr.mysqloperator.grtl.github.com/v1/namespaces/a/mysqlclusters/db")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("a read took %s", took)
	}
}

// A webhook that hangs on the writes of a resource does not delay reads of that resource: a pass reads it live before it decides.
func TestHangingWritesOfAResourceDelayNoReadsOfIt(t *testing.T) {
	t.Parallel()
	client, address, hang := hangingWrites(t, "deployments")
	for range 16 {
		<-hang
	}
	began := time.Now()
	for _, path := range []string{"/deployments/db", "/deployments"} {
		ask(t, client, http.MethodGet, address+"/apis/apps/v1/namespaces/a"+path)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("two reads took %s", took)
	}
}

// A resource of which the API server answers no request, neither reads nor writes, leaves slots for all others.
func TestAHangingResourceTakesNotAllSlots(t *testing.T) {
	t.Parallel()
	slots := newRequestSlots(32)
	try := func(wanted requestInfo) error {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := slots.take(ctx, wanted)
		return err
	}
	for _, verb := range []string{"get", "apply"} {
		for try(requestInfo{verb, "tdsets"}) == nil {
			continue // the request hangs, and never gives its slots back
		}
	}
	for _, verb := range []string{"get", "apply"} {
		if err := try(requestInfo{verb, "mysqlclusters"}); err != nil {
			t.Error(err)
		}
	}
}
