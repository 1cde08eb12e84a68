package main

import (
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

//nolint:paralleltest // it sets up the whole process
func TestUseLittleMemoryLeavesTheLastWordToTheUser(t *testing.T) {
	const before = 123
	for _, story := range []struct {
		name, gogc string
		percent    int
		want       int
	}{
		{"nothing said, at the start", "", gcPercent, gcPercent},
		{"nothing said, at rest", "", gcPercentAtRest, gcPercentAtRest},
		{"the user's own, at rest", "200", gcPercentAtRest, before},
	} {
		t.Run(story.name, func(t *testing.T) {
			defer debug.SetGCPercent(debug.SetGCPercent(before))
			useLittleMemory(func(string) string { return story.gogc }, story.percent)
			if got := debug.SetGCPercent(before); got != story.want {
				t.Errorf("the heap grows by %d %% before it is collected, want %d", got, story.want)
			}
		})
	}
}

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
