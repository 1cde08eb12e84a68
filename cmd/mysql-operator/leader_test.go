package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

func TestAStandbyAsksTheLeader(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		uid, address string
		health       func(http.ResponseWriter, *http.Request)
		want         string
	}{
		"it answers":             {uid: "one", address: "127.0.0.1", health: func(http.ResponseWriter, *http.Request) {}},
		"its Pod was replaced":   {uid: "two", address: "127.0.0.1", want: "no Pod of this identity"},
		"its Pod has no address": {uid: "one", want: "no Pod of this identity"},
		"it refuses":             {uid: "one", address: "127.0.0.1", health: http.NotFound, want: "404"},
		"a stranger has its address, and lies": {uid: "one", address: "127.0.0.1", want: "302", health: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "operator-a", UID: types.UID(test.uid)}, Status: corev1.PodStatus{PodIP: test.address}}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/api/v1/namespaces/home/pods/operator-a":
					w.Header().Set("Content-Type", "application/json")
					if err := json.NewEncoder(w).Encode(pod); err != nil {
						t.Error(err)
					}
				case "/healthz":
					test.health(w, r)
				default:
					t.Errorf("asked for %s", r.URL.Path)
				}
			}))
			defer server.Close()
			ask, _ := standby(t, server)
			err := ask(t.Context(), "operator-a_one")
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestAnOperatorWithoutAPodAsksNoLeader(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ identity, health string }{
		"it runs outside of a Pod": {health: ":8081"},
		"it serves no health":      {identity: "operator-b_three"},
	} {
		if ask, err := (self{identity: test.identity}).asksLeader(t.Context(), connection{rest: &rest.Config{}}, test.health); ask != nil || err != nil {
			t.Errorf("%s: it asks: %v, %v", name, ask != nil, err)
		}
	}
}

// standby returns how a standby asks the leader whose Pod and API server both are this server, and the server's address.
func standby(t *testing.T, server *httptest.Server) (ask func(context.Context, string) error, host string) {
	t.Helper()
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	ask, err = self{identity: "operator-b_three"}.asksLeader(t.Context(), connection{rest: &rest.Config{Host: server.URL}, namespace: "home"}, ":"+at.Port())
	if err != nil {
		t.Fatal(err)
	}
	return ask, at.Hostname()
}

// TestAStandbyFollowsTheLeadersAddress: a Pod whose sandbox is made again keeps its name and UID, and gets another address.
func TestAStandbyFollowsTheLeadersAddress(t *testing.T) {
	t.Parallel()
	address := "127.0.0.2" // nothing listens there
	pods := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			return
		}
		pods++
		pod := corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "operator-a", UID: "one"}, Status: corev1.PodStatus{PodIP: address}}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(pod); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	ask, host := standby(t, server)
	if err := ask(t.Context(), "operator-a_one"); err == nil {
		t.Error("something answers at the former address")
	}
	address = host
	asked := 0
	for asked < 2*lookAgain && ask(t.Context(), "operator-a_one") != nil {
		asked++
	}
	if asked == 2*lookAgain || pods != 2 {
		t.Errorf("the leader does not answer %d times, and its Pod was read %d times", asked, pods)
	}
}
