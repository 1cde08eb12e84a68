package agent

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/replication"
)

// callers notes over which connections a server was asked.
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
		t.Errorf("6 questions took %d connections, want 1", connections.Load())
	}
	client.Close()
	if _, err := client.Status(t.Context(), target); err != nil || connections.Load() != 2 {
		t.Errorf("after all were closed: %v, over connection number %d", err, connections.Load())
	}
}

// TestAKeptConnectionThatIsForgottenHidesNobody: something between operator and member may drop what it does not know any more.
func TestAKeptConnectionThatIsForgottenHidesNobody(t *testing.T) {
	t.Parallel()
	var from callers
	client, target := impostor(t, func(w http.ResponseWriter, r *http.Request) {
		if connections, requests := from.note(r); requests == 2 && connections == 1 {
			<-r.Context().Done() // nothing comes back over the first connection any more
			return
		}
		answerStatus(w)
	})
	client.timeout = 2 * time.Second
	for question := range 3 {
		if _, err := client.Status(t.Context(), target); err != nil {
			t.Errorf("question %d: %v", question, err)
		}
	}
}

// TestASilentMemberIsFoundInTime: a kept connection does not make the time longer that a member has to answer.
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
		t.Error("a member that does not answer was heard")
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s to find that a member does not answer", took)
	}
}

func TestOfAMemberThatMovedNothingIsKept(t *testing.T) {
	t.Parallel()
	l := &lines{security: newAuthority(t).client(OperatorName)}
	here, there := Target{Address: "192.0.2.1", Host: memberHost}, Target{Address: "192.0.2.2", Host: memberHost}
	first := l.to(here)
	if l.to(here) != first {
		t.Error("a member that has not moved is called anew")
	}
	if l.to(there) == first || l.to(Target{Address: here.Address, Host: "db-9.db-pods.shop.svc"}) == first {
		t.Error("another member, or the same at another address, is taken for the first")
	}
}
