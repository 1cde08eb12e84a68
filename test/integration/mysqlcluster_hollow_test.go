package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// match commits empty transactions at once.
func (m *simulatedMember) match(w http.ResponseWriter, r *http.Request) {
	var asked replication.Matching
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if replication.AcceptMatching(m.status(), asked) != nil {
		http.Error(w, "refused", http.StatusConflict)
		return
	}
	m.network.mu.Lock()
	defer m.network.mu.Unlock()
	m.volume.executed = m.volume.executed.Union(asked.GTIDs)
	w.WriteHeader(http.StatusNoContent)
}

// flush makes a transaction of the member's own that holds nothing.
func (n *network) flush(t *testing.T, host string, number int) replication.GTIDSet {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	volume := n.running[host].volume
	made, err := replication.ParseGTIDSet(fmt.Sprintf("%s:%d", volume.uuid, number))
	if err != nil {
		t.Fatal(err)
	}
	volume.executed, volume.hollow = volume.executed.Union(made), volume.hollow.Union(made)
	return made
}

// has reports whether a member has transactions.
func (n *network) has(host string, set replication.GTIDSet) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.running[host].volume.executed.Contains(set)
}

// TestMySQLClusterMatchesHollowTransactions flushes on a replica, again and again: the primary gets the same GTIDs each time, and nothing
// is written to the API server but one event.
func TestMySQLClusterMatchesHollowTransactions(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	operator := s.operate(t, nil)
	s.apply(t, "db", "secret: root, replicas: 3")
	s.settled(t, "db")
	s.restful(t, operator)
	before, written := s.settled(t, "db"), len(operator.wire.written())
	host := func(name string) string { return name + ".db-pods." + s.namespace + ".svc" }
	for number := 1; number <= 3; number++ {
		for _, name := range []string{"db-1", "db-2"} {
			made := s.node.network.flush(t, host(name), number)
			soon(t, func(context.Context) string {
				if !s.node.network.has(host("db-0"), made) {
					return "the primary lacks " + made.String()
				}
				return ""
			})
		}
	}
	if after := s.settled(t, "db"); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the resource was written: %+v, before %+v", after.Status, before.Status)
	}
	events, err := s.of("events").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, event := range events.Items {
		if event.Object["reason"] == "HollowTransactionsMatched" {
			told++
		}
	}
	if all := operator.wire.written(); told != 1 || len(all) != written+1 {
		t.Errorf("it was told %d times; written was %v", told, all[written:])
	}
}
