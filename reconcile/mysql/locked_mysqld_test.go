package mysql

import (
	"context"
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
	<-server.ended
	again := bootstrap("root's")
	again.NewData = false
	server.start(t, sqlOf(t, again), Account{User: "root", Password: "another"}, withSemiSync()...)
}
