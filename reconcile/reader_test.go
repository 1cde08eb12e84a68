package reconcile

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestAReaderSendsNoWrites: whatever a program that only reads asks for by mistake.
func TestAReaderSendsNoWrites(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("the API server gets a %s", r.Method)
		}
	}))
	t.Cleanup(server.Close)
	only := readsOnly{server.Client().Transport}
	for method, isSent := range map[string]bool{http.MethodGet: true, http.MethodPut: false, http.MethodPatch: false, http.MethodPost: false, http.MethodDelete: false} {
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := only.RoundTrip(request)
		if (err == nil) != isSent {
			t.Errorf("%s: %v", method, err)
		}
		if response != nil {
			_ = response.Body.Close()
		}
	}
}
