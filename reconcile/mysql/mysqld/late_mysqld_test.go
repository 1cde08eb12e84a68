package mysqld

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/test/hang"
)

// TestLateStatementsHaveNoEffectMysqld stops mysqld. The agent sends statements that let clients write without acknowledgements, and gives
// up. mysqld reads them when it runs again.
func TestLateStatementsHaveNoEffectMysqld(t *testing.T) {
	t.Parallel()
	server, b := newMysqld(t, writeCertificates(t)), bootstrap("root's")
	root := server.start(t, sqlOf(t, b), Account{User: "root", Password: "root's"}, withSemiSync()...)
	agent := server.connect(t, b.Agent)
	permit := func(context.Context) error { return nil }
	if err := root.exec(t.Context(), "close", "SET GLOBAL super_read_only = ON"); err != nil {
		t.Fatal(err)
	}
	if err := agent.EnforceAcks(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	state := func() (closed bool, acks int) {
		t.Helper()
		seen, err := agent.Observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return seen.Server.SuperReadOnly, seen.Server.SourceAcks
	}
	attempts := map[string]func(context.Context, *Server) error{
		"stop enforcing": func(ctx context.Context, by *Server) error { return by.StopEnforcingAcks(ctx) },
		"open": func(ctx context.Context, by *Server) error {
			return by.exec(ctx, "open", "SET GLOBAL read_only = IF("+inTime(time.Now())+", 0, 1)")
		},
		"enforce fewer": func(ctx context.Context, by *Server) error {
			return by.exec(ctx, "enforce", enforceCount(time.Now(), 1))
		},
	}
	clients := map[string]*Server{}
	for name := range attempts {
		clients[name] = server.connect(t, b.Agent)
	}
	hang.Process(t, server.process.Process.Pid)
	for name, attempt := range attempts {
		brief, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if err := attempt(brief, clients[name]); err == nil {
			t.Errorf("%s: a mysqld that is stopped has answered", name)
		}
		cancel()
	}
	<-time.After(LateAfter + 100*time.Millisecond)
	hang.Continue(t, server.process.Process.Pid)
	eventually(t, "mysqld answers again", func() error { return agent.Ping(t.Context()) }, server.messages)
	<-time.After(200 * time.Millisecond)
	if closed, acks := state(); !closed || acks != 2 {
		t.Errorf("late: closed %t, %d acknowledgements", closed, acks)
	}
	refused := errors.New("mysqld stops")
	if err := agent.AcceptWrites(t.Context(), Opening{Acks: 2, Permit: func(context.Context) error { return refused }}); !errors.Is(err, refused) {
		t.Errorf("without permission: %v", err)
	}
	if closed, _ := state(); !closed {
		t.Error("mysqld takes writes without permission")
	}
	if err := agent.AcceptWrites(t.Context(), Opening{Acks: 2, Permit: permit, Allowed: func() {}}); err != nil {
		t.Fatal(err)
	}
	if err := agent.EnforceAcks(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if closed, acks := state(); closed || acks != 1 {
		t.Errorf("in time: closed %t, %d acknowledgements", closed, acks)
	}
	if err := agent.StopEnforcingAcks(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, acks := state(); acks != 0 {
		t.Errorf("in time: %d acknowledgements", acks)
	}
}
