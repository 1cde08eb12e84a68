package reconcile

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// TestTheAPIServersTimeIsHeard: each answer to the request itself sets the clock. Between answers, the clock continues by the process's own
// measure.
func TestTheAPIServersTimeIsHeard(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		// answers are the headers of the answers, a minute apart; status is their code.
		answers []http.Header
		status  int
		// want is the API server's time a minute after the last answer; empty if it is unknown.
		want string
	}{
		"nothing was asked yet":       {},
		"an answer":                   {answers: []http.Header{dated("2027-11-20 12:00:00")}, want: "2027-11-20 12:01:00"},
		"the latest one counts":       {answers: []http.Header{dated("2027-11-20 12:00:00"), dated("2025-11-20 12:00:00")}, want: "2025-11-20 12:01:00"},
		"an error is an answer, too":  {answers: []http.Header{dated("2027-11-20 12:00:00")}, status: http.StatusConflict, want: "2027-11-20 12:01:00"},
		"a proxy takes the date away": {answers: []http.Header{{"Date": nil}}},
		"one that makes no sense":     {answers: []http.Header{{"Date": {"yesterday"}}}},
		"out of a cache":              {answers: []http.Header{dated("2027-11-20 12:00:00", "300")}},
		"the one before stays": {
			answers: []http.Header{dated("2027-11-20 12:00:00"), dated("2020-11-20 12:00:00", "0"), {"Date": nil}}, want: "2027-11-20 12:03:00",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now, next := start, 0
			server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
				maps.Copy(answer.Header(), test.answers[next])
				if test.status != 0 {
					answer.WriteHeader(test.status)
				}
			}))
			defer server.Close()
			clock := &serverClock{now: func() time.Time { return now }}
			client, err := rest.HTTPClientFor(clock.listenTo(&rest.Config{Host: server.URL}))
			if err != nil {
				t.Fatal(err)
			}
			for ; next < len(test.answers); next++ {
				response, err := client.Get(server.URL)
				if err != nil {
					t.Fatal(err)
				}
				_ = response.Body.Close()
				now = now.Add(time.Minute)
			}
			got := ""
			if read := clock.read(); !read.IsZero() {
				got = read.UTC().Format(time.DateTime)
			}
			if got != test.want {
				t.Errorf("the API server's clock is taken to say %q, want %q", got, test.want)
			}
		})
	}
}

// dated returns the headers of an answer with a date, and with an age if it comes from a cache.
func dated(at string, age ...string) http.Header {
	said, err := time.Parse(time.DateTime, at)
	if err != nil {
		panic(err)
	}
	headers := http.Header{"Date": {said.Format(http.TimeFormat)}}
	if len(age) > 0 {
		headers["Age"] = age
	}
	return headers
}
