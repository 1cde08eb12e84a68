package agent

import (
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
)

// TestAMachineThatFailsMakesAReplicaForgetful: its relay log was not on the disk.
func TestAMachineThatFailsMakesAReplicaForgetful(t *testing.T) {
	t.Parallel()
	replica, primary := replication.RoleReplica, replication.RolePrimary
	for name, test := range map[string]struct {
		ranOn   string
		role    replication.Role
		before  bool
		forgets bool
	}{
		"the same boot":                            {"now", replica, false, false},
		"another boot":                             {"former", replica, false, true},
		"another boot, of a primary":               {"former", primary, false, false},
		"all was flushed before":                   {"", replica, false, false},
		"another boot, of a member without a role": {"former", "", false, false},
		"it was forgetful before":                  {"now", replica, true, true},
	} {
		got := state{Machine: test.ranOn, HeldRole: test.role, IsForgetful: test.before}.startingOn("now")
		if got.IsForgetful != test.forgets || got.Machine != "now" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestPrepareRecordsTheMachine(t *testing.T) {
	t.Parallel()
	layout := newLayout(t)
	if err := saveState(layout.stateFile(), state{Data: replication.OriginMember, HeldRole: replication.RoleReplica, Machine: "former"}); err != nil {
		t.Fatal(err)
	}
	if err := recordMachine(layout, "now"); err != nil {
		t.Fatal(err)
	}
	if kept := stateOf(t, layout); !kept.IsForgetful || kept.Machine != "now" {
		t.Errorf("the state is %+v", kept)
	}
	if real, err := Machine(); err != nil || len(real) != 36 {
		t.Errorf("the machine is %q: %v", real, err)
	}
}

// TestAMemberThatStopsCleanlyForgetsNothing: the agent outlives mysqld, and flushes the volume.
func TestAMemberThatStopsCleanlyForgetsNothing(t *testing.T) {
	t.Parallel()
	kept := state{Data: replication.OriginMember, HeldRole: replication.RoleReplica, Machine: "now"}
	for name, test := range map[string]struct {
		told []supervisor.State
		want string
	}{
		"it ended":                            {[]supervisor.State{{Start: "a", Running: true}, {Start: "a"}}, ""},
		"its container ended":                 {[]supervisor.State{{Start: "a", Running: true}, {}}, ""},
		"it runs, and its agent stops":        {[]supervisor.State{{Start: "a", Running: true}}, "now"},
		"its supervisor has not answered yet": {nil, "now"},
		"the next one runs":                   {[]supervisor.State{{Start: "a"}, {Start: "b", Running: true}}, "now"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			layout := newLayout(t)
			a := newAgent(t, layout, kept)
			for _, now := range test.told {
				a.supervised(now)
			}
			if err := a.recordFlush(); err != nil {
				t.Fatal(err)
			}
			if got := stateOf(t, layout).Machine; got != test.want {
				t.Errorf("the machine on record is %q, want %q", got, test.want)
			}
		})
	}
}

// TestAForgetfulMemberRemembers when it has everything that the primary had at one look.
func TestAForgetfulMemberRemembers(t *testing.T) {
	t.Parallel()
	layout := newLayout(t)
	a := newAgent(t, layout, state{Data: replication.OriginMember, HeldRole: replication.RoleReplica, Machine: "now", IsForgetful: true})
	if !a.Status().IsForgetful {
		t.Fatal("the agent does not report it")
	}
	all, err := replication.ParseGTIDSet("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-9")
	if err != nil {
		t.Fatal(err)
	}
	has := replication.Server{Channel: replication.Channel{Retrieved: all}}
	for name, test := range map[string]struct {
		local replication.Observed
		want  bool
	}{
		"the primary was not looked at": {replication.Observed{Server: has}, true},
		"the look failed":               {replication.Observed{Server: has, Source: &replication.Source{Err: "no route"}}, true},
		"it lacks transactions":         {replication.Observed{Source: &replication.Source{Executed: all}}, true},
	} {
		a.remember(t.Context(), test.local)
		if got := a.Status().IsForgetful; got != test.want {
			t.Errorf("%s: forgetful %t, want %t", name, got, test.want)
		}
	}
	a.remember(t.Context(), replication.Observed{Server: has, Source: &replication.Source{Executed: all}})
	if a.Status().IsForgetful || stateOf(t, layout).IsForgetful {
		t.Error("a member that has everything is still forgetful")
	}
}
