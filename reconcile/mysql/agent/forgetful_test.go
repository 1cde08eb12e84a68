package agent

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
)

// TestAMachineThatFailsMakesAReplicaForgetful: its relay log was not on the disk.
func TestAMachineThatFailsMakesAReplicaForgetful(t *testing.T) {
	t.Parallel()
	replica, primary := replication.RoleReplica, replication.RolePrimary
	t.Run("another boot, of a primary that was replaced: it has received nothing of another yet", func(t *testing.T) {
		t.Parallel()
		led := state{Life: "former/pod", HeldRole: primary, Held: replication.Record{Epoch: 1, Primary: "db-0"}}
		fenced := led.accepting(replication.Assignment{Role: replica, Record: replication.Record{Epoch: 2, FormerPrimary: "db-0"}})
		follows := fenced.accepting(replication.Assignment{Role: replica, Record: replication.Record{Epoch: 2, Primary: "db-1", Joining: []string{"db-0"}}})
		if got := fenced.livingIn("boot/pod"); got.IsForgetful {
			t.Errorf("it is forgetful: %+v", got)
		}
		// Another record may count what it has received, before it accepts an assignment that lets it acknowledge.
		again := follows.accepting(replication.Assignment{Role: replica, Record: replication.Record{Epoch: 3, FormerPrimary: "db-1", InSync: []string{"db-0", "db-1"}}})
		for _, now := range []state{follows, again} {
			if got := now.livingIn("boot/pod"); !got.IsForgetful {
				t.Errorf("it may have lost what it received: %+v", got)
			}
		}
	})
	for name, test := range map[string]struct {
		former  string
		role    replication.Role
		before  bool
		forgets bool
	}{
		"the same life": {"boot/pod", replica, false, false},
		"another boot":  {"former/pod", replica, false, true},
		"another Pod, whose volume may have failed": {"boot/former", replica, false, true},
		"another boot, of a primary":                {"former/pod", primary, false, false},
		"another boot, of a member without a role":  {"former/pod", "", false, false},
		"all was flushed before":                    {"", replica, false, false},
		"it was forgetful before":                   {"boot/pod", replica, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			layout := newLayout(t)
			held := replication.Record{Epoch: 2, Revision: 7}
			kept := state{Life: test.former, HeldRole: test.role, IsForgetful: test.before, Held: held}
			if err := saveState(layout.stateFile(), kept); err != nil {
				t.Fatal(err)
			}
			got, err := recordLife(layout, kept, "boot/pod", logr.Discard())
			if stored := stateOf(t, layout); err != nil || got.IsForgetful != test.forgets || got.Life != "boot/pod" || stored.IsForgetful != test.forgets || stored.Life != "boot/pod" {
				t.Errorf("the state is %+v, stored is %+v: %v", got, stored, err)
			}
			if forgets := test.forgets && !test.before; (got.ForgotUnder == held.Version()) != forgets {
				t.Errorf("it says that it has forgotten under %+v", got.ForgotUnder)
			}
		})
	}
}

func TestLifeIsThatOfThePodAndTheBoot(t *testing.T) {
	t.Setenv(EnvPodUID, "0815")
	if life, err := Life(); err != nil || len(life) != 36+len("/0815") || !strings.HasSuffix(life, "/0815") {
		t.Errorf("the life is %q: %v", life, err)
	}
}

// TestAMemberThatStopsCleanlyForgetsNothing: the agent outlives mysqld, and flushes the volume. An agent that stops alone knows that it has
// not outlived mysqld.
func TestAMemberThatStopsCleanlyForgetsNothing(t *testing.T) {
	t.Parallel()
	short, err := os.MkdirTemp("", "f") //nolint:usetesting // the path of a socket has 107 characters at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	layout := newLayout(t)
	layout.Run = short
	if err := saveState(layout.stateFile(), state{Data: replication.OriginMember, HeldRole: replication.RoleReplica}); err != nil {
		t.Fatal(err)
	}
	signals, exited := make(chan os.Signal, 1), make(chan error, 1)
	stands := supervisor.Supervisor{
		Command: []string{"/bin/sleep", "60"}, RunDir: short, Log: t.Output(), Wait: waitFor, Attributes: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	}
	go func() {
		_, err := stands.Run(context.WithoutCancel(t.Context()), signals)
		exited <- err
	}()
	// stops runs an agent until it knows that mysqld runs, or has ended, and returns the life on record after that.
	stops := func(runs bool) string {
		t.Helper()
		if err := layout.keepPasswords(nil); err != nil {
			t.Fatal(err)
		}
		a, err := New(layout, Identity{}, "boot/pod", logr.Discard())
		if err != nil {
			t.Fatal(err)
		}
		if life := stateOf(t, layout).Life; life != "boot/pod" {
			t.Errorf("an agent that starts records the life %q", life)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		ended := make(chan error, 1)
		go func() { ended <- a.Run(ctx) }()
		for runs && a.currentStart() == "" && ctx.Err() == nil {
			<-time.After(time.Millisecond)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		return stateOf(t, layout).Life
	}
	if life := stops(true); life != "boot/pod" {
		t.Errorf("while mysqld runs, an agent that stops leaves the life %q on record", life)
	}
	signals <- syscall.SIGTERM
	if err := <-exited; err != nil {
		t.Fatal(err)
	}
	if life := stops(false); life != "" {
		t.Errorf("after mysqld has ended, an agent that stops leaves the life %q on record", life)
	}
}

// TestAForgetfulMemberRemembers when it has everything that the primary had at its first look, also while clients write on the primary.
func TestAForgetfulMemberRemembers(t *testing.T) {
	t.Parallel()
	layout := newLayout(t)
	a := newAgent(t, layout, state{Data: replication.OriginMember, HeldRole: replication.RoleReplica, Life: "boot/pod", IsForgetful: true})
	observed := someObservation()
	a.publish(observed, a.localView(observed), replication.Step{State: replication.StateReplicating, Message: "follows db-0"}, followed{})
	if is := a.Status(); !is.IsForgetful || !strings.Contains(is.Message, "may lack transactions") {
		t.Fatalf("the agent reports %+v", is)
	}
	order := assignment(a, 1, "db-0")
	if err := a.Assign(order); err != nil {
		t.Fatal(err)
	}
	has := func(text string) replication.GTIDSet {
		set, err := replication.ParseGTIDSet("3e11fa47-71ca-11e1-9e33-c80aa9429562:" + text)
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	look := func(when, own string, source *replication.Source, mustLook, forgetful bool) {
		t.Helper()
		a.remember(replication.Observed{Server: replication.Server{Channel: replication.Channel{Retrieved: has(own)}}, Source: source})
		if is := a.localView(someObservation()).IsForgetful; is != mustLook {
			t.Errorf("%s it must look at its primary: %t", when, is)
		}
		if is := a.Status().IsForgetful; is != forgetful || stateOf(t, layout).IsForgetful != forgetful {
			t.Errorf("%s it is forgetful: %t", when, is)
		}
	}
	look("before it has looked at the primary", "1-9", nil, true, true)
	look("after a look that failed", "1-9", &replication.Source{Err: "no route"}, true, true)
	look("at its first look", "1-7", &replication.Source{Executed: has("1-8"), Pending: has("9")}, false, true)
	look("without a commit that was in progress", "1-8", nil, false, true)
	look("with everything", "1-9", &replication.Source{Executed: has("1-99")}, false, false)
}
