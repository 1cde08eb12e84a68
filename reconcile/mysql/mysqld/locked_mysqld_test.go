package mysqld

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/test/hang"
)

// waitingForAnAcknowledgement returns a mysqld on which a statement with a new password for root waits, and its agent's connection.
func waitingForAnAcknowledgement(t *testing.T) (*mysqld, *Server) {
	t.Helper()
	server, b := newMysqld(t, writeCertificates(t)), bootstrap("root's")
	agent := server.start(t, sqlOf(t, b), b.Agent, withSemiSync()...)
	if err := agent.EnforceAcks(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if observed := briefly(t, agent); observed.LoginsHang || observed.EnoughAcknowledge() {
		t.Errorf("there is no replica, and no statement waits: %+v", observed)
	}
	brief, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := agent.SetPassword(brief, "root", "%", "another"); err == nil {
		t.Fatal("the statement was acknowledged, so this test proves nothing")
	}
	if !briefly(t, agent).LoginsHang {
		t.Error("the agent does not see that no client can log in")
	}
	return server, agent
}

func withSemiSync() []string {
	return []string{"--plugin-load-add=semisync_source.so", "--plugin-load-add=semisync_replica.so", "--rpl-semi-sync-source-timeout=" + SemiSyncTimeout}
}

// briefly observes with the time limit of an agent.
func briefly(t *testing.T, agent *Server) Observed {
	t.Helper()
	bounded, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	observed, err := agent.Observe(bounded)
	if err != nil {
		t.Fatalf("the agent cannot observe mysqld any more: %v", err)
	}
	return observed
}

// TestAnAgentEndsWhatKeepsEverybodyOutMysqld: an agent that is logged in can observe and end the wait.
func TestAnAgentEndsWhatKeepsEverybodyOutMysqld(t *testing.T) {
	t.Parallel()
	server, agent := waitingForAnAcknowledgement(t)
	if err := agent.StopEnforcingAcks(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.connect(t, Account{User: "root", Password: "another"})
	if briefly(t, agent).LoginsHang {
		t.Error("the agent reports that no client can log in, but root can")
	}
}

// TestARestartEndsWhatKeepsEverybodyOutMysqld: the statement that waited takes effect with the restart.
func TestARestartEndsWhatKeepsEverybodyOutMysqld(t *testing.T) {
	t.Parallel()
	server, _ := waitingForAnAcknowledgement(t)
	if err := server.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-server.ended; err == nil {
		t.Error("mysqld ended by itself")
	}
	again := bootstrap("root's")
	again.NewData = false
	server.start(t, sqlOf(t, again), Account{User: "root", Password: "another"}, withSemiSync()...)
}

// TestADemotionLeavesTheAgentItsEyesMysqld: a switch to read-only waits for commits in progress, longer than the agent's time limit. The
// agent can still observe mysqld.
func TestADemotionLeavesTheAgentItsEyesMysqld(t *testing.T) {
	t.Parallel()
	_, agent := waitingForAnAcknowledgement(t)
	brief, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := agent.SetReadOnly(brief, ReadOnlyWait); err == nil {
		t.Fatal("no commit was in progress, so this test proves nothing")
	}
	if !briefly(t, agent).LoginsHang {
		t.Error("the agent does not see that no client can log in")
	}
	if err := agent.StopEnforcingAcks(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestAReplicaThatHangsAcknowledgesNothingMysqld: mysqld still counts it as an acknowledging replica.
func TestAReplicaThatHangsAcknowledgesNothingMysqld(t *testing.T) {
	t.Parallel()
	certificates, b := writeCertificates(t), bootstrap("root's")
	primary, replica := newMysqld(t, certificates), newMysqld(t, certificates)
	agent := primary.start(t, sqlOf(t, b), b.Agent, withSemiSync()...)
	allowReceiver(t, agent)
	follower := replica.start(t, sqlOf(t, b), b.Agent, append(withSemiSync(), "--rpl-semi-sync-replica-enabled=ON")...)
	if err := follower.PointToSource(t.Context(), sourceAt(primary, certificates, b.Replication)); err != nil {
		t.Fatal(err)
	}
	if err := follower.StartReplica(t.Context(), b.Replication); err != nil {
		t.Fatal(err)
	}
	awaitReplication(t, follower, replica)
	if err := agent.EnforceAcks(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the replica acknowledges", func() error {
		if observed := briefly(t, agent); !observed.EnoughAcknowledge() {
			return fmt.Errorf("%d replicas acknowledge", observed.AckClients)
		}
		return nil
	}, primary.messages)
	hang.Process(t, replica.process.Process.Pid)
	brief, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := agent.SetPassword(brief, "root", "%", "another"); err == nil {
		t.Fatal("the replica acknowledged, so this test proves nothing")
	}
	if observed := briefly(t, agent); !observed.EnoughAcknowledge() || !observed.LoginsHang {
		t.Errorf("no client can log in, but the agent sees %+v", observed)
	}
}
