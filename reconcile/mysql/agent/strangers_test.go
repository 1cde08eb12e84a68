package agent

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestStrangersDoNotStopTheAgent: 300 connections without a certificate, idle or with large headers, take less than half of the memory that
// the agent's container may use. Meanwhile the agent answers the operator and kubelet.
func TestStrangersDoNotStopTheAgent(t *testing.T) { //nolint:paralleltest // it measures the whole process
	const strangers, limit = 300, 128
	header := []byte("GET /metrics HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X-A: "+strings.Repeat("a", 4000)+"\r\n", 240))
	for name, sends := range map[string][]byte{"idle": nil, "large headers": header} { //nolint:paralleltest // the same
		t.Run(name, func(t *testing.T) {
			s := serve(t)
			security := s.ca.client("")
			security.ServerName = memberHost
			for number := range strangers {
				dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 96, byte(number/200), byte(1+number%200))}, Timeout: 5 * time.Second}
				connection, err := dialer.DialContext(t.Context(), "tcp", net.JoinHostPort(s.address, fmt.Sprint(Port)))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = connection.Close() })
				secure := tls.Client(connection, security)
				go func() {
					if secure.HandshakeContext(t.Context()) == nil {
						_, _ = secure.Write(sends)
					}
				}()
			}
			operator := NewClient(s.ca.operator(), 5*time.Second)
			fastest := map[string]time.Duration{}
			for range 5 {
				answers(t, fastest, "the operator", func() error {
					_, err := operator.Status(t.Context(), Target{Address: s.address, Host: memberHost})
					return err
				})
				answers(t, fastest, "kubelet", func() error {
					status, _, err := s.ask(t, s.ca.client(""), http.MethodGet, "/readyz")
					if err == nil && status != http.StatusServiceUnavailable { // mysqld has never answered
						err = errors.New(http.StatusText(status))
					}
					return err
				})
				if peak := heapInUse(); peak > limit/2 {
					t.Errorf("%d MiB of heap are in use, the container is killed at %d MiB", peak, limit)
				}
			}
			for who, took := range fastest {
				if took > time.Second { // kubelet waits that long
					t.Errorf("%s always waits for %s and more", who, took)
				}
			}
		})
	}
}

// answers asks the agent, and notes the fastest answer: other programs of the machine may delay some.
func answers(t *testing.T, fastest map[string]time.Duration, who string, ask func() error) {
	t.Helper()
	began := time.Now()
	if err := ask(); err != nil {
		t.Errorf("%s gets no answer: %v", who, err)
	}
	took := time.Since(began)
	if before, found := fastest[who]; !found || took < before {
		fastest[who] = took
	}
}

func heapInUse() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapInuse >> 20
}
