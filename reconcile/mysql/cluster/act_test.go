package cluster

import (
	"crypto/tls"
	"errors"
	"net"
	"runtime"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// TestAMemberIsAllowedMoreOnlyByTheLiveRecord: the record that a pass has read may be older than another operator's. The member does not
// answer, so only a record that has moved is an error.
func TestAMemberIsAllowedMoreOnlyByTheLiveRecord(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	for story, test := range map[string]struct {
		live    func(*v1.MySQLCluster)
		relaxes bool
		want    error
	}{
		"the record is as it was read":             {func(*v1.MySQLCluster) {}, true, nil},
		"another operator has appointed a primary": {func(c *v1.MySQLCluster) { c.Status.Epoch, c.Status.Primary = 2, "db0-1" }, true, errRecordMoved},
		"another operator counts on the member":    {func(c *v1.MySQLCluster) { c.Status.Revision = 4 }, true, errRecordMoved},
		"the cluster is being deleted":             {func(c *v1.MySQLCluster) { c.DeletionTimestamp = &now }, true, errRecordMoved},
		"another cluster has its name":             {func(c *v1.MySQLCluster) { c.UID = "other" }, true, errRecordMoved},
		"it allows no more than before":            {func(c *v1.MySQLCluster) { c.Status.Revision = 4 }, false, nil},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, 1)
			s.live.Store("mysqlclusters/db0", aCluster(3, func(c *v1.MySQLCluster) {
				c.APIVersion, c.Kind, c.UID = "cr.mysqloperator.grtl.github.com/v1", "MySQLCluster", "uid0"
				c.Status.Primary, c.Status.Epoch, c.Status.Revision = "db0-0", 1, 3
			}, test.live))
			agents := agent.NewClient((&tls.Config{MinVersion: tls.VersionTLS12}).Clone, time.Second)
			told, err := s.assign(t.Context(), s.client(t, "db0"), agents, action{
				verb: verbAssign, name: "db0-2", relaxes: test.relaxes, to: agent.Target{Address: "127.0.77.4", Host: "db0-2"},
				assignment: replication.Assignment{Record: replication.Record{Primary: "db0-0", Epoch: 1, Revision: 3}, Role: replication.RoleReplica},
			})
			if told || !errors.Is(err, test.want) {
				t.Errorf("told %t, and the error is %v, want %v", told, err, test.want)
			}
		})
	}
}

// TestChildrenThatWereNotComparedAreComparedLater: a pass that only writes the record of a takeover knows nothing of the children.
func TestChildrenThatWereNotComparedAreComparedLater(t *testing.T) {
	t.Parallel()
	s := newShop(t, 1)
	cluster := aCluster(1)
	result := passResult{cluster: cluster, inputs: childInputs{cluster.UID, 1}}
	if _, err := s.act(t.Context(), s.client(t, "db0"), nil, []action{{verb: verbRecord}}, &result); err != nil {
		t.Fatal(err)
	}
	if s.memory.isMade(keyOf(cluster), result.inputs) {
		t.Error("children that were not compared count as they should be")
	}
}

// TestASlowMemberDelaysNoChild: clients must reach the new primary although another member takes long to accept its assignment. This one
// answers once a child has been applied.
func TestASlowMemberDelaysNoChild(t *testing.T) {
	t.Parallel()
	s := newShop(t, 1)
	member, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort("127.0.77.5", strconv.Itoa(agent.Port)))
	if err != nil {
		t.Fatal(err)
	}
	defer member.Close()
	isApplied := func() (found bool) {
		s.applied.Range(func(_, _ any) bool { found = true; return false })
		return found
	}
	waited := make(chan bool, 1)
	go func() {
		asked, err := member.Accept()
		if err != nil {
			return
		}
		defer asked.Close()
		for deadline := time.Now().Add(10 * time.Second); !isApplied() && time.Now().Before(deadline); {
			runtime.Gosched()
		}
		waited <- isApplied()
	}()
	agents := agent.NewClient((&tls.Config{MinVersion: tls.VersionTLS12}).Clone, time.Minute)
	cluster := aCluster(1)
	cluster.Name = "db0"
	told, err := s.act(t.Context(), s.client(t, "db0"), agents, []action{
		{verb: verbAssign, name: "db0-0", to: agent.Target{Address: "127.0.77.5", Host: "db0-0"}},
		{verb: verbApply, child: children.ServiceAccount(children.NamesOf(cluster))},
	}, &passResult{cluster: cluster})
	if told || err != nil {
		t.Errorf("told %t, and the error is %v", told, err)
	}
	if !<-waited {
		t.Error("the child waited for the member")
	}
}
