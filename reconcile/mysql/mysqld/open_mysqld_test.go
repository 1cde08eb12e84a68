package mysqld

import (
	"context"
	"errors"
	"testing"
)

// TestMysqldOpensInTwoStepsMysqld: half open, it takes writes of administrators only. An agent that starts then can open it. A backup tool
// that locks MySQL's accounts does not keep it closed, as long as no member can follow, and clients need not wait for one.
func TestMysqldOpensInTwoStepsMysqld(t *testing.T) {
	t.Parallel()
	server, b := newMysqld(t, writeCertificates(t)), bootstrap("root's")
	agent := server.start(t, sqlOf(t, b), b.Agent, append(withSemiSync(), "--super-read-only=ON")...)
	state := func() (all, clients bool) {
		t.Helper()
		seen, err := agent.Observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return seen.Server.SuperReadOnly, seen.Server.ReadOnly
	}
	refused, calls := errors.New("another role"), 0
	open := Opening{Receivers: []int{1}, Allowed: func() {}, Permit: func(context.Context) error {
		calls++
		if calls == 2 {
			return refused
		}
		return nil
	}}
	if err := agent.AcceptWrites(t.Context(), open); !errors.Is(err, refused) {
		t.Errorf("the second step is not permitted: %v", err)
	}
	if all, clients := state(); all || !clients {
		t.Errorf("it refuses all writes: %t, those of clients: %t; want it half open", all, clients)
	}

	t.Log("a backup tool locks accounts")
	tool, err := newSession(t.Context(), server.connect(t, Account{User: "root", Password: "root's"}).db)
	if err != nil {
		t.Fatal(err)
	}
	defer tool.Close()
	if err := tool.exec(t.Context(), "lock", "LOCK INSTANCE FOR BACKUP"); err != nil {
		t.Fatal(err)
	}
	if err := agent.AcceptWrites(t.Context(), open); err == nil {
		t.Error("it opens although a member that may no longer follow can do so")
	}
	if err := tool.exec(t.Context(), "unlock", "UNLOCK INSTANCE"); err != nil {
		t.Fatal(err)
	}
	allow(t, agent)
	if err := tool.exec(t.Context(), "lock", "LOCK INSTANCE FOR BACKUP"); err != nil {
		t.Fatal(err)
	}
	var unallowed error
	open.NotAllowed = func(err error) { unallowed = err }
	if err := agent.AcceptWrites(t.Context(), open); err != nil || unallowed == nil {
		t.Errorf("a tool that locks the accounts keeps it closed: %v, reported: %v", err, unallowed)
	}
	if all, clients := state(); all || clients {
		t.Errorf("it refuses all writes: %t, those of clients: %t; want it open", all, clients)
	}
	if err := tool.exec(t.Context(), "unlock", "UNLOCK INSTANCE"); err != nil {
		t.Fatal(err)
	}
	allow(t, agent, 1)
}
