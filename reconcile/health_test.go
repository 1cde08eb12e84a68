package reconcile

import (
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestStrangersDoNotStopTheOperator: 300 connections with large headers take less than half of the memory limit of the operator's
// container, and kubelet gets its answers meanwhile.
func TestStrangersDoNotStopTheOperator(t *testing.T) { //nolint:paralleltest // it measures the whole process
	const strangers, limit = 300, 256
	health := &Health{}
	server := Server{Address: "127.0.0.1:0", Handler: health.Handler()}
	listener, err := server.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(t.Context(), listener) }()
	header := []byte("GET /healthz HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X-A: "+strings.Repeat("a", 4000)+"\r\n", 240))
	for range strangers {
		connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = connection.Close() })
		go func() { _, _ = connection.Write(header) }()
	}
	kubelet := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	for range 5 {
		began := time.Now()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String()+"/readyz", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := kubelet.Do(request)
		if err != nil {
			t.Fatalf("kubelet is not answered: %v", err)
		}
		_ = answer.Body.Close()
		if took := time.Since(began); answer.StatusCode != http.StatusOK || took > time.Second {
			t.Errorf("kubelet is answered %s after %s", answer.Status, took)
		}
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		if peak := stats.HeapInuse >> 20; peak > limit/2 {
			t.Errorf("%d MiB of heap are in use, the container's limit is %d MiB", peak, limit)
		}
	}
}
