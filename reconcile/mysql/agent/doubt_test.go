package agent

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/binlog"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// TestTransactionsInDoubtAreStored until the member follows another one. If its volume takes no writes, they count, and the agent tries
// again.
func TestTransactionsInDoubtAreStored(t *testing.T) {
	t.Parallel()
	const uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	set := func(numbers string) replication.GTIDSet {
		found, err := replication.ParseGTIDSet(uuid + ":" + numbers)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	order := &replication.Assignment{Role: replication.RolePrimary, Record: replication.Record{RequiredAcks: 1}}
	layout := newLayout(t)
	a := newAgent(t, layout, memberState())
	a.start = "first"
	look := func(switchedOff int64, made string) {
		server := replication.Server{ServerUUID: uuid, SourceAcks: 1, Executed: set(made)}
		a.watchAcks(mysqld.Observed{Server: server, AcksSwitchedOff: switchedOff}, order)
	}
	look(0, "1-2")
	look(0, "1-4")
	if kept := stateOf(t, layout); !kept.InDoubt.Empty() {
		t.Errorf("commits waited, and %s are in doubt", kept.InDoubt)
	}
	look(1, "1-5")
	look(1, "1-7")
	if kept := stateOf(t, layout); !kept.InDoubt.Equal(set("3-5")) {
		t.Errorf("in doubt are %s", kept.InDoubt)
	}
	a.layout.Volume = filepath.Join(layout.Volume, "away")
	look(2, "1-8")
	view := replication.Observed{}
	a.viewReplaced(&view)
	if !view.InDoubt.Equal(set("3-8")) {
		t.Errorf("while the volume takes no writes, %s are in doubt", view.InDoubt)
	}
	a.layout.Volume = layout.Volume
	look(2, "1-9")
	if kept := stateOf(t, layout); !kept.InDoubt.Equal(set("3-9")) {
		t.Errorf("when the volume takes writes again, %s are in doubt", kept.InDoubt)
	}

	if err := a.keepTail("binlog.000001", binlog.Tail{GTIDs: set("9-10")}, set("1-10")); err == nil {
		t.Error("a transaction in doubt is cut off")
	}
	a.kept.Replaced = &replaced{IsKnown: true}
	follows := mysqld.Observed{Server: replication.Server{Channel: replication.Channel{IO: "Yes", SQL: "Yes"}}}
	a.recordReplaced(follows, followed{})
	if kept := stateOf(t, layout); !kept.InDoubt.Empty() || kept.Replaced != nil {
		t.Errorf("the member follows, and %s are in doubt", kept.InDoubt)
	}
}

// TestWhatIsKeptOfTransactionsInDoubt: old ones crowd out no new ones, also if these have tags.
func TestWhatIsKeptOfTransactionsInDoubt(t *testing.T) {
	t.Parallel()
	const uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	set := func(text string) replication.GTIDSet {
		found, err := replication.ParseGTIDSet(text)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	old, next := set(uuid+":1-1000000"), set(uuid+":batch:1")
	if got := inDoubtWith(old, next); !got.Equal(old.Union(next)) {
		t.Errorf("of one range and a transaction with a tag, %s are kept", got)
	}
	scattered := strings.Builder{}
	for number := 1; scattered.Len() < longestInDoubt; number += 2 {
		fmt.Fprintf(&scattered, ":%d", number)
	}
	if got := inDoubtWith(set(uuid+scattered.String()), next); !got.Equal(next) {
		t.Errorf("after %d bytes of others, the new one is not kept alone, but %d", scattered.Len(), got.Count())
	}
}

// TestAMemberThatFollowsHasNothingInDoubt: also if it was never marked as replaced, because its commits waited for no replica in the end.
func TestAMemberThatFollowsHasNothingInDoubt(t *testing.T) {
	t.Parallel()
	kept := memberState()
	kept.InDoubt, _ = replication.ParseGTIDSet("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5")
	a := newAgent(t, newLayout(t), kept)
	channel := replication.Channel{Configured: true, IO: "Connecting", SQL: "Yes"}
	a.recordReplaced(mysqld.Observed{Server: replication.Server{Channel: channel}}, followed{})
	if a.kept.InDoubt.Empty() {
		t.Error("it has forgotten what is in doubt, and does not follow yet")
	}
	channel.IO = "Yes"
	a.recordReplaced(mysqld.Observed{Server: replication.Server{Channel: channel}}, followed{})
	if !a.kept.InDoubt.Empty() {
		t.Errorf("it follows, and %s are in doubt", a.kept.InDoubt)
	}
}
