package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// impostor is what a cluster's own MySQL image can run where the operator expects an agent: it has the member's certificate.
func impostor(t *testing.T, answer http.HandlerFunc) (*Client, Target) {
	t.Helper()
	layout, ca := newLayout(t), newAuthority(t)
	ca.install(layout, 2, memberHost)
	pair, err := tls.LoadX509KeyPair(layout.certFile(), layout.keyFile())
	if err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(address, fmt.Sprint(Port)))
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: answer}, TLS: &tls.Config{Certificates: []tls.Certificate{pair}}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return NewClient(ca.operator(), 5*time.Second), Target{Address: address, Host: memberHost}
}

// TestTheOperatorFollowsNoRedirect: otherwise a program in a Pod could reach what the operator can reach.
func TestTheOperatorFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	var reached atomic.Int32
	internal := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached.Add(1)
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "INTERNAL-ONLY")
	}))
	t.Cleanup(internal.Close)
	for _, code := range []int{
		http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect,
	} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			client, target := impostor(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, internal.URL, code) })
			_, err := client.Status(t.Context(), target)
			for what, err := range map[string]error{"status": err, "assignment": client.Assign(t.Context(), target, replication.Assignment{})} {
				if err == nil || !strings.Contains(err.Error(), "redirects are not followed") || strings.Contains(err.Error(), "INTERNAL") {
					t.Errorf("%s: got %v", what, err)
				}
			}
			if reached.Load() != 0 {
				t.Error("the other service was reached")
			}
		})
	}
}

// TestNothingOfAnImpostorIsRepeated: otherwise its text would be in the operator's log, and in the cluster's status.
func TestNothingOfAnImpostorIsRepeated(t *testing.T) {
	t.Parallel()
	const secret = "WRITTEN-BY-THE-IMPOSTOR"
	answer := func(code int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, story := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"an error":               {answer(http.StatusForbidden, "text/plain", secret), "403 Forbidden"},
		"a refusal in words":     {answer(http.StatusConflict, "text/plain", secret), "409"},
		"a refusal as JSON":      {answer(http.StatusConflict, jsonType, `"`+secret+`"`), "409"},
		"no JSON":                {answer(http.StatusOK, "text/html", secret), "not JSON"},
		"no status":              {answer(http.StatusOK, jsonType, secret), "not a member's status"},
		"no GTID set":            {answer(http.StatusOK, jsonType, `{"executed":"`+secret+`"}`), "not a member's status"},
		"another kind of answer": {answer(http.StatusAccepted, jsonType, secret), "202 Accepted"},
		"a large status":         {answer(http.StatusOK, jsonType, `"`+strings.Repeat(secret, maxBody/len(secret)+1)+`"`), "too large: more than 1024 KiB"},
		"no HTTP": {func(w http.ResponseWriter, _ *http.Request) {
			connection, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(connection, secret+"\r\n\r\n")
			_ = connection.Close()
		}, "not HTTP"},
		"a large header": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(secret, strings.Repeat("a", maxAnswerHeader))
		}, "longer than 16 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, target := impostor(t, story.answer)
			_, err := client.Status(t.Context(), target)
			if err == nil || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), story.want) || !strings.Contains(err.Error(), memberHost) {
				t.Errorf("got %v, want %q about %s and no text of the impostor", err, story.want, memberHost)
			}
			if err := client.Assign(t.Context(), target, replication.Assignment{}); err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("the refusal of an assignment repeats the impostor's text: %v", err)
			}
		})
	}
}

// TestLongErrorsAreCut: the API server refuses a status or an event with half a character.
func TestLongErrorsAreCut(t *testing.T) {
	t.Parallel()
	late := fmt.Errorf("%s: %w", strings.Repeat("a", maxReason), context.DeadlineExceeded)
	for story, test := range map[string]struct {
		err  error
		want string
	}{
		"a short one":                     {errors.New("no route to hōst"), "no route to hōst"},
		"as long as may be":               {errors.New(strings.Repeat("a", maxReason)), strings.Repeat("a", maxReason)},
		"one byte more":                   {errors.New(strings.Repeat("a", maxReason+1)), strings.Repeat("a", maxReason) + "…"},
		"a character across the end":      {errors.New(strings.Repeat("a", maxReason-1) + "ō and more"), strings.Repeat("a", maxReason-1) + "…"},
		"a long character across the end": {errors.New(strings.Repeat("a", maxReason-3) + "🐬 and more"), strings.Repeat("a", maxReason-3) + "…"},
		"a character before the end":      {errors.New(strings.Repeat("a", maxReason-2) + "ō and more"), strings.Repeat("a", maxReason-2) + "ō…"},
		"a timeout":                       {late, late.Error()},
	} {
		if got := truncateError(test.err).Error(); got != test.want {
			t.Errorf("%s: got %q, want %q", story, got, test.want)
		}
	}
}

// TestProbesAnswerInOneWord: any client may ask, but MySQL's errors and GTIDs are only for the operator.
func TestProbesAnswerInOneWord(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.agent.mu.Lock()
	s.agent.status.State, s.agent.status.Message = replication.StateStarting, "Access denied for 'x'@'y'; 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7"
	s.agent.answered, s.agent.looked = time.Time{}, time.Now().Add(-2*stuckAfter)
	s.agent.mu.Unlock()
	for path, want := range map[string]string{"/startupz": "starting", "/readyz": "Starting", "/healthz": "stuck"} {
		if code, body, err := s.ask(t, s.ca.client(""), http.MethodGet, path); err != nil || code != http.StatusServiceUnavailable || body != want+"\n" {
			t.Errorf("%s: got %d %q (%v), want %q", path, code, body, err, want)
		}
	}
}
