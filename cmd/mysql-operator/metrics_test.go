package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

func TestMetricsNeedNoCompressor(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector())
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody)
	request.Header.Set("Accept-Encoding", "gzip, zstd") // Prometheus
	answer := httptest.NewRecorder()
	metricsHandler(registry).ServeHTTP(answer, request)
	if encoding := answer.Header().Get("Content-Encoding"); encoding != "" {
		t.Errorf("compressed with %s", encoding)
	}
	if !strings.Contains(answer.Body.String(), "\ngo_goroutines ") {
		t.Errorf("got %d %q, want metrics as text", answer.Code, answer.Body)
	}
}
