package agent

import (
	"errors"
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// TestClientsOfAPrimaryThatWaitsForReplicas lose their sessions if they could read what is lost if it fails.
func TestClientsOfAPrimaryThatWaitsForReplicas(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	close(ended)
	primary := func(acks int) *replication.Assignment {
		return &replication.Assignment{Role: replication.RolePrimary, Acks: 1, Record: replication.Record{Epoch: 2, RequiredAcks: acks}}
	}
	halfOpen := replication.Server{ReadOnly: true}
	for story, test := range map[string]struct {
		last    *replication.Assignment
		server  replication.Server
		barrier *barrier
		replica string
		want    bool
	}{
		"it has just started":                          {last: primary(1), server: halfOpen, want: true},
		"a replica must still acknowledge":             {last: primary(1), server: halfOpen, barrier: &barrier{start: "two", epoch: 2, acks: 1, ended: make(chan struct{})}, want: true},
		"that has failed":                              {last: primary(1), server: halfOpen, barrier: &barrier{start: "two", epoch: 2, acks: 1, ended: ended, err: errors.New("ended")}, want: true},
		"fewer have acknowledged than are promised":    {last: primary(2), server: halfOpen, barrier: &barrier{start: "two", epoch: 2, acks: 1, ended: ended}, want: true},
		"that was before mysqld crashed":               {last: primary(1), server: halfOpen, barrier: &barrier{start: "one", epoch: 2, acks: 1, ended: ended}, want: true},
		"enough replicas have acknowledged everything": {last: primary(1), server: halfOpen, barrier: &barrier{start: "two", epoch: 2, acks: 1, ended: ended}},
		"it takes over from another member":            {last: primary(1), server: halfOpen, replica: "two"},
		"it was a replica before mysqld crashed":       {last: primary(1), server: halfOpen, replica: "one", want: true},
		"the record promises no copy":                  {last: primary(0), server: halfOpen},
		"it is open":                                   {last: primary(1)},
		"it is closed":                                 {last: primary(1), server: replication.Server{ReadOnly: true, SuperReadOnly: true}},
		"it is a replica":                              {last: &replication.Assignment{Role: replication.RoleReplica, Record: replication.Record{Epoch: 2, RequiredAcks: 1}}, server: halfOpen},
		"it never had a role":                          {server: halfOpen},
	} {
		member := newAgent(t, newLayout(t), state{Data: replication.OriginMember, Last: test.last})
		member.start, member.barrier, member.replicaStart = "two", test.barrier, test.replica
		if got := member.servesTail(test.server); got != test.want {
			t.Errorf("%s: %t, want %t", story, got, test.want)
		}
	}
}

// TestAPrimaryThatKeepsItsFormerSourceWasNoReplica: mysqld has crashed after its first writes, before it had forgotten its source. Clients
// could read writes that no replica has.
func TestAPrimaryThatKeepsItsFormerSourceWasNoReplica(t *testing.T) {
	t.Parallel()
	runs, stopped := replication.Channel{Configured: true, IO: "Yes", SQL: "Yes"}, replication.Channel{Configured: true, IO: "No", SQL: "No"}
	for story, test := range map[string]struct {
		role    replication.Role
		channel replication.Channel
		want    bool
	}{
		"a replica":                              {replication.RoleReplica, runs, true},
		"a primary with a channel":               {replication.RolePrimary, stopped, false},
		"a former primary with the same channel": {replication.RoleReplica, stopped, false},
		"a primary":                              {replication.RolePrimary, replication.Channel{IO: "No", SQL: "No"}, false},
	} {
		member := newAgent(t, newLayout(t), state{Data: replication.OriginMember, HeldRole: test.role})
		member.start = "two"
		var observed mysqld.Observed
		observed.Server.Channel = test.channel
		member.localView(observed)
		if (member.replicaStart == "two") != test.want {
			t.Errorf("%s was a replica since it started: %t", story, !test.want)
		}
	}
}
