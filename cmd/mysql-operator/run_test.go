package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile"
)

func TestNotReadyBeforeAllGatesAreOpen(t *testing.T) {
	t.Parallel()
	one := operator{health: &reconcile.Health{}}
	closed := one.gates()
	for _, gate := range []struct {
		name string
		gate *gate
	}{{"definitions", closed.definitions}, {"rights", closed.rights}, {"engine", closed.engine}} {
		code, said := readiness(t, one)
		if code != http.StatusServiceUnavailable || !strings.Contains(said, "[-] "+gate.name+": ") {
			t.Errorf("before %s: got %d %s", gate.name, code, said)
		}
		gate.gate.open()
	}
	if code, said := readiness(t, one); code != http.StatusOK {
		t.Errorf("all are open: got %d %s", code, said)
	}
}

func readiness(t *testing.T, one operator) (code int, said string) {
	t.Helper()
	answer := httptest.NewRecorder()
	one.health.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", http.NoBody))
	return answer.Code, answer.Body.String()
}
