package agent

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// observe looks at the mysqld of an agent that does not run, as soon as it answers.
func (a *Agent) observe(t *testing.T) mysqld.Observed {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		observed, err := a.local.Observe(ctx)
		if err == nil {
			return observed
		}
		select {
		case <-ctx.Done():
			t.Fatalf("mysqld does not answer: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// TestAPrimaryDelaysCommitsMysqld: it does so while its replicas lag, and no other member does.
func TestAPrimaryDelaysCommitsMysqld(t *testing.T) {
	t.Parallel()
	m := startWithoutLoop(t, newAuthority(t))
	m.agent.observe(t)
	at, applied := time.Now(), int64(0)
	// plays has replicas answer after another second, and returns what mysqld does then.
	plays := func(a *Agent, where replication.State, answers bool, missing int64) time.Duration {
		t.Helper()
		answer := make(chan replication.Progress, 1)
		at, applied = at.Add(time.Second), applied+100
		progress := replication.Progress{At: at, Made: 10 * applied, Answers: map[string]replication.Answer{}}
		if answers {
			progress.Answers["db-1"] = replication.Answer{At: at, Applied: applied, Missing: missing}
		}
		answer <- progress
		a.flow.answer, a.flow.looked = answer, time.Now() // so it does not ask by itself
		a.controlFlow(t.Context(), a.observe(t), where)
		return a.observe(t).CommitDelay
	}
	steps := []struct {
		what    string
		where   replication.State
		answers bool
		missing int64
		want    time.Duration
		delayed bool
	}{
		{"one look knows no rate", replication.StateWriting, true, 100, 0, false},
		{"a replica lags", replication.StateWriting, true, 1000, 5 * time.Millisecond, true},
		{"it lags more", replication.StateWriting, true, 1900, 20 * time.Millisecond, true},
		{"it does not answer", replication.StateWriting, false, 0, 10 * time.Millisecond, true},
		{"the member is no primary any more", replication.StateReplicating, true, 9000, 0, false},
		{"it is one again, and knows nothing", replication.StateWriting, true, 9000, 0, false},
		{"the replica lags still", replication.StateWriting, true, 9000, 5 * time.Millisecond, true},
	}
	for _, step := range steps {
		if got := plays(m.agent, step.where, step.answers, step.missing); got != step.want || m.agent.Status().DelaysCommits != step.delayed {
			t.Errorf("%s: mysqld delays commits by %s, and the report says %t; want %s", step.what, got, m.agent.Status().DelaysCommits, step.want)
		}
	}

	restarted, err := New(m.layout, Identity{Ordinal: 1}, "", logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = restarted.local.Close() })
	if got := plays(restarted, replication.StateWriting, true, 9000); got != 0 {
		t.Errorf("an agent that has restarted leaves a delay of %s", got)
	}

	write(t, m.layout.serverConfig(), read(t, m.layout.serverConfig())+"binlog-group-commit-sync-delay = 5000\n")
	if err := m.agent.local.DelayCommits(t.Context(), 5*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	for _, where := range []replication.State{replication.StateWriting, replication.StateReplicating} {
		for range 3 {
			if got := plays(m.agent, where, true, 9000); got != 5*time.Millisecond {
				t.Errorf("%s: the user's delay becomes %s", where, got)
			}
		}
	}
	m.agent.flow = flow{}
	m.agent.askProgress(t.Context(), time.Now(), replication.Server{})
	if m.agent.flow.answer != nil {
		t.Error("the agent asks replicas although a user chose the delay")
	}
}

// TestABusyPrimaryAsksItsReplicasMysqld: a quiet one does not.
func TestABusyPrimaryAsksItsReplicasMysqld(t *testing.T) {
	t.Parallel()
	m := startWithoutLoop(t, newAuthority(t))
	executed := m.agent.observe(t).Server.Executed
	grown := func(by string) replication.Server {
		more, err := replication.ParseGTIDSet("aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:1-" + by)
		if err != nil {
			t.Fatal(err)
		}
		return replication.Server{Executed: executed.Union(more)}
	}
	now := time.Now()
	m.agent.flow = flow{looked: now.Add(-time.Second), made: executed.Count()}
	m.agent.askProgress(t.Context(), now, grown("49"))
	if m.agent.flow.answer != nil {
		t.Error("a quiet primary asks")
	}
	now = now.Add(time.Second)
	m.agent.askProgress(t.Context(), now, grown("999"))
	if m.agent.flow.answer == nil {
		t.Fatal("a busy primary does not ask")
	}
	if got := <-m.agent.flow.answer; len(got.Answers) > 0 {
		t.Errorf("without replicas it hears %+v", got)
	}

	loopback := netip.MustParseAddrPort("127.0.0.1:1")
	got := m.agent.progressOf(t.Context(), grown("7"), uint16(m.port), map[int]netip.AddrPort{1: loopback, 2: netip.MustParseAddrPort("127.0.0.9:1")})
	name := mysqld.ReplicationUser(1)
	if answer, found := got.Answers[name]; !found || answer.Missing != 7 || answer.Applied != executed.Count() || len(got.Answers) != 1 || !answer.At.After(got.At) {
		t.Errorf("a member that answers, and one that does not, are %+v", got)
	}

	restored := grown("7")
	restored.Purged = executed.Union(grown("5").Executed)
	got = m.agent.progressOf(t.Context(), restored, uint16(m.port), map[int]netip.AddrPort{1: loopback})
	if got.Answers[name].Missing != 2 || got.Made != executed.Count()+7 {
		t.Errorf("a replica that lacks what the primary has purged is %+v", got)
	}
}
