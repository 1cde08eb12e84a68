package mysqld

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"
)

// waitingForAnAcknowledgement is a mysqld on which a new password for root waits, and the connection of its agent.
func waitingForAnAcknowledgement(t *testing.T) (*mysqld, *Server) {
	t.Helper()
	server, b := newMysqld(t, writeCertificates(t)), bootstrap("root's")
	agent := server.start(t, sqlOf(t, b), b.Agent, withSemiSync()...)
	if err := agent.EnforceAcks(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if observed := briefly(t, agent); observed.LockedOut || observed.EnoughAcknowledge() {
		t.Errorf("no replica is there, and nothing keeps anybody out: %+v", observed)
	}
	brief, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := agent.SetPassword(brief, "root", "%", "another"); err == nil {
		t.Fatal("the statement was acknowledged, so that this test shows nothing")
	}
	if !briefly(t, agent).LockedOut {
		t.Error("it does not see that nobody can log in")
	}
	return server, agent
}

func withSemiSync() []string {
	return []string{"--plugin-load-add=semisync_source.so", "--plugin-load-add=semisync_replica.so", "--rpl-semi-sync-source-timeout=4233600000"}
}

// briefly looks as long as an agent does.
func briefly(t *testing.T, agent *Server) Observed {
	t.Helper()
	bounded, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	observed, err := agent.Observe(bounded)
	if err != nil {
		t.Fatalf("the agent cannot look any more: %v", err)
	}
	return observed
}

// TestAnAgentEndsWhatKeepsEverybodyOutMysqld: whoever is logged in as the agent can look and stop the waiting.
func TestAnAgentEndsWhatKeepsEverybodyOutMysqld(t *testing.T) {
	t.Parallel()
	server, agent := waitingForAnAcknowledgement(t)
	if err := agent.StopEnforcingAcks(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.connect(t, Account{User: "root", Password: "another"})
	if briefly(t, agent).LockedOut {
		t.Error("everybody can log in")
	}
}

// TestARestartEndsWhatKeepsEverybodyOutMysqld: what waited is in force then.
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

// TestADemotionLeavesTheAgentItsEyesMysqld: to become read-only waits for commits under way, longer than anybody waits.
func TestADemotionLeavesTheAgentItsEyesMysqld(t *testing.T) {
	t.Parallel()
	_, agent := waitingForAnAcknowledgement(t)
	brief, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := agent.SetReadOnly(brief); err == nil {
		t.Fatal("nothing was under way, so that this test shows nothing")
	}
	if !briefly(t, agent).LockedOut {
		t.Error("it does not see that nobody can log in")
	}
	if err := agent.StopEnforcingAcks(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestAReplicaThatHangsAcknowledgesNothingMysqld: it counts as one that acknowledges all the same.
func TestAReplicaThatHangsAcknowledgesNothingMysqld(t *testing.T) {
	t.Parallel()
	certificates, b := writeCertificates(t), bootstrap("root's")
	primary, replica := newMysqld(t, certificates), newMysqld(t, certificates)
	agent := primary.start(t, sqlOf(t, b), b.Agent, withSemiSync()...)
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
	if err := replica.process.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = replica.process.Process.Signal(syscall.SIGCONT) })
	brief, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := agent.SetPassword(brief, "root", "%", "another"); err == nil {
		t.Fatal("the replica acknowledged, so that this test shows nothing")
	}
	if observed := briefly(t, agent); !observed.EnoughAcknowledge() || !observed.LockedOut {
		t.Errorf("nobody can log in, and it sees %+v", observed)
	}
}
