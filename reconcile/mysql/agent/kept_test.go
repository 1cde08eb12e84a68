package agent

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// callers records over which connections a server received requests.
type callers struct {
	mu   sync.Mutex
	seen []string
}

func (c *callers) note(r *http.Request) (connections, requests int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, r.RemoteAddr)
	different := map[string]bool{}
	for _, one := range c.seen {
		different[one] = true
	}
	return len(different), len(c.seen)
}

func answerStatus(w http.ResponseWriter) {
	w.Header().Set("Content-Type", jsonType)
	_, _ = w.Write([]byte(`{"state":"Writing","boot":"b"}`))
}

func TestOneConnectionIsKeptForEachMember(t *testing.T) {
	t.Parallel()
	var from callers
	var connections atomic.Int32
	client, target := impostor(t, func(w http.ResponseWriter, r *http.Request) {
		count, _ := from.note(r)
		connections.Store(int32(count))
		if r.Method == http.MethodPut {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		answerStatus(w)
	})
	for range 3 {
		if _, err := client.Status(t.Context(), target); err != nil {
			t.Fatal(err)
		}
		if err := client.Assign(t.Context(), target, replication.Assignment{}); err != nil {
			t.Fatal(err)
		}
	}
	if connections.Load() != 1 {
		t.Errorf("6 requests took %d connections, want 1", connections.Load())
	}
	for _, next := range []struct {
		in   time.Duration
		over int32
	}{{keptFor - 1, 1}, {keptFor, 2}} {
		client.Rest(next.in)
		if _, err := client.Status(t.Context(), target); err != nil || connections.Load() != next.over {
			t.Errorf("the next request was to come after %s: %v, over connection number %d, want %d", next.in, err, connections.Load(), next.over)
		}
	}
}

// TestAKeptConnectionThatIsForgottenHidesNobody: the network between operator and member may drop a connection that has been idle.
func TestAKeptConnectionThatIsForgottenHidesNobody(t *testing.T) {
	t.Parallel()
	var from callers
	client, target := impostor(t, func(w http.ResponseWriter, r *http.Request) {
		if connections, requests := from.note(r); requests == 2 && connections == 1 {
			<-r.Context().Done() // the first connection no longer returns anything
			return
		}
		answerStatus(w)
	})
	client.timeout = 2 * time.Second
	for question := range 3 {
		if _, err := client.Status(t.Context(), target); err != nil {
			t.Errorf("request %d: %v", question, err)
		}
	}
}

// TestASilentMemberIsFoundInTime: a kept connection does not extend the time that a member has to answer.
func TestASilentMemberIsFoundInTime(t *testing.T) {
	t.Parallel()
	var from callers
	client, target := impostor(t, func(w http.ResponseWriter, r *http.Request) {
		if _, requests := from.note(r); requests > 1 {
			<-r.Context().Done()
			return
		}
		answerStatus(w)
	})
	if _, err := client.Status(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	client.timeout = 200 * time.Millisecond
	began := time.Now()
	if _, err := client.Status(t.Context(), target); err == nil {
		t.Error("the request to a member that does not answer succeeds")
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the operator took %s to find that a member does not answer", took)
	}
}

// TestNothingIsLeftOfQuestionsThatHadNoAnswer: the operator asks a member every second, also one that accepts connections and sends
// nothing, such as a frozen agent.
func TestNothingIsLeftOfQuestionsThatHadNoAnswer(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(address, fmt.Sprint(Port)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	const questions = 20
	var accepted, ended atomic.Int32
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			accepted.Add(1)
			go func() {
				_, _ = io.Copy(io.Discard, connection) // until the operator closes it
				ended.Add(1)
			}()
		}
	}()
	client := NewClient(newAuthority(t).operator(), 20*time.Millisecond)
	for range questions {
		if _, err := client.Status(t.Context(), Target{Address: address, Host: memberHost}); err == nil {
			t.Fatal("the request succeeds")
		}
	}
	// On a busy machine, the time is over before some connections are made.
	late := time.After(time.Minute)
	for accepted.Load() == 0 || ended.Load() < accepted.Load() {
		select {
		case <-late:
			t.Fatalf("only %d of %d connections have ended", ended.Load(), accepted.Load())
		case <-time.After(time.Millisecond):
		}
	}
}

func TestOfAMemberThatMovedNothingIsKept(t *testing.T) {
	t.Parallel()
	here, there := Target{Address: "192.0.2.1", Host: memberHost}, Target{Address: "192.0.2.2", Host: memberHost}
	other := Target{Address: here.Address, Host: "db-9.db-pods.shop.svc"}
	for name, story := range map[string]struct {
		asked             Target
		after             time.Duration
		isKept, isStillUp bool
	}{
		"the same":                   {here, 0, true, true},
		"the member moved":           {there, 0, false, false},
		"another member":             {other, 0, false, true},
		"no request for long":        {here, keptFor, false, false},
		"another member, after long": {other, keptFor, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				defer far.Close()
				kept := tls.Client(near, &tls.Config{ServerName: memberHost, MinVersion: tls.VersionTLS12})
				l := &agentConnections{}
				l.keep(here, kept)
				<-time.After(story.after)
				if got := l.take(story.asked) == kept; got != story.isKept {
					t.Errorf("the connection is used: %t, want %t", got, story.isKept)
				}
				if isStillUp := near.SetDeadline(time.Time{}) == nil; isStillUp != story.isStillUp {
					t.Errorf("the connection is open: %t, want %t", isStillUp, story.isStillUp)
				}
				near.Close()
			})
		})
	}
}
