package replication

import (
	"testing"
	"time"
)

// TestWhenARelayLogIsFull: it is full once the receiver has completed nothing for some seconds. It is no longer full once half of it is
// applied, or once the receiver has not had to wait for a minute.
func TestWhenARelayLogIsFull(t *testing.T) {
	t.Parallel()
	type moment struct {
		after    time.Duration
		waits    bool
		received string
		space    int64
		want     bool
	}
	const limit = 100 // each story begins with room, and with A:1-5 received
	for name, story := range map[string][]moment{
		"there is room": {{0, false, "A:1-5", 10, false}, {time.Hour, false, "A:1-5", 10, false}},
		"the applier is slow, and the receiver still completes transactions": {
			{0, true, "A:1-5", 100, false}, {4 * time.Second, true, "A:1-6", 100, false}, {4 * time.Second, true, "A:1-7", 100, false}},
		"the receiver waits now and then": {
			{0, true, "A:1-5", 100, false}, {4 * time.Second, false, "A:1-5", 100, false}, {4 * time.Second, true, "A:1-5", 100, false}, {4 * time.Second, true, "A:1-5", 100, false}},
		"the receiver completes nothing any more": {
			{0, false, "A:1-5", 90, false}, {time.Second, true, "A:1-5", 100, false}, {4 * time.Second, true, "A:1-5", 100, false}, {time.Second, true, "A:1-5", 100, true}},
		"a little is applied, which is not enough": {
			{0, true, "A:1-5", 100, false}, {5 * time.Second, true, "A:1-5", 100, true}, {time.Second, false, "A:1-9", 80, true}, {30 * time.Second, true, "A:1-9", 100, true},
			{time.Second, false, "A:1-10", 80, true}, {50 * time.Second, false, "A:1-10", 80, true}},
		"half is applied": {
			{0, true, "A:1-5", 100, false}, {5 * time.Second, true, "A:1-5", 100, true}, {time.Minute, false, "A:1-9", 51, true}, {time.Second, false, "A:1-9", 49, false}},
		"it fills up again": {
			{0, true, "A:1-5", 100, false}, {5 * time.Second, true, "A:1-5", 100, true}, {time.Second, false, "A:1-9", 49, false}, {time.Second, true, "A:1-9", 100, false},
			{5 * time.Second, true, "A:1-9", 100, true}},
		"the receiver does not wait for a minute": {
			{0, true, "A:1-5", 100, false}, {5 * time.Second, true, "A:1-5", 100, true}, {time.Second, false, "A:1-9", 70, true}, {time.Minute, false, "A:1-9", 70, false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Unix(1_800_000_000, 0)
			room := RelayLogMonitor{}.Observe(now, Server{RelayLogLimit: limit, Channel: Channel{IO: "Yes", Retrieved: gtids(t, "A:1-5")}})
			for i, at := range story {
				now = now.Add(at.after)
				room = room.Observe(now, Server{RelayLogLimit: limit, Channel: Channel{IO: "Yes", WaitsForRoom: at.waits, Retrieved: gtids(t, at.received), RelayLogSpace: at.space}})
				if room.Full() != at.want {
					t.Errorf("moment %d: the relay log is full: %t", i, room.Full())
				}
			}
		})
	}
}

// TestAReceiverThatDoesNotRunIsNoSign: a minute without waiting does not count if the receiver does not run, because nothing was received.
func TestAReceiverThatDoesNotRunIsNoSign(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	look := func(room RelayLogMonitor, after time.Duration, channel Channel) RelayLogMonitor {
		channel.RelayLogSpace = 100
		return room.Observe(now.Add(after), Server{RelayLogLimit: 100, Channel: channel})
	}
	room := look(look(RelayLogMonitor{}, 0, Channel{IO: "Yes", WaitsForRoom: true}), time.Minute, Channel{IO: "Yes", WaitsForRoom: true})
	if room = look(look(room, 2*time.Minute, Channel{IO: "No"}), 9*time.Minute, Channel{IO: "No"}); !room.Full() {
		t.Error("the member acknowledges again although it cannot receive")
	}
}

func TestAMemberWithAFullRelayLog(t *testing.T) {
	t.Parallel()
	full := func() *scene {
		return member(t).asReplica().acknowledging().following().with(func(l *Observed) {
			l.RelayLogFull, l.Server.ReplicaAcks, l.Server.Channel.AckActive = true, true, true
		})
	}
	silent := func() *scene {
		return full().with(func(l *Observed) { l.Server.ReplicaAcks, l.Server.Channel.AckActive = false, false })
	}
	lagging := func(l *Observed) { lag := int64(900); l.Server.Channel.LagSeconds = &lag }
	failed := func(l *Observed) {
		l.Server.Channel.SQL, l.Server.Channel.SQLErrno, l.Server.Channel.SQLError = "No", 1062, "Duplicate entry"
	}
	tellSteps(t, map[string]stepStory{
		"it stops acknowledging, so that the primary knows": {
			scene: full(), verb: VerbStopAcknowledging, state: StateCatchingUp, says: "the applier does not keep up"},
		"also if its applier failed": {
			scene: full().with(failed), verb: VerbStopAcknowledging, state: StateCatchingUp, says: "the applier does not run"},
		"it continues to receive, without acknowledging": {
			scene: silent().with(func(l *Observed) { l.Server.Channel.IO = "No" }), verb: VerbStartReplica, state: StateCatchingUp, says: "relay log is full"},
		"its assignment lets it acknowledge, and it does not yet": {
			scene: silent().with(lagging), verb: VerbNone, state: StateCatchingUp, says: "acknowledges no commits while its relay log is full"},
		"the applier that failed is reported": {
			scene: silent().with(failed), verb: VerbNone, state: StateBroken, says: "Duplicate entry; acknowledges no commits"},
		"a member that has room again acknowledges": {
			scene: silent().with(func(l *Observed) { l.RelayLogFull = false }), verb: VerbStartAcknowledging, state: StateReplicating},
	})
}

// TestContinueDoesNotWaitForAFullRelayLog: once the member has stopped acknowledging, the primary has too few acknowledging replicas.
func TestContinueDoesNotWaitForAFullRelayLog(t *testing.T) {
	t.Parallel()
	record := Record{Primary: "db-0", Epoch: 1, Revision: 5, InSync: []string{"db-0", "db-1"}, RequiredAcks: 1}
	primary := &Status{State: StateWriting, Boot: "p", Protocol: Protocol, Writable: true, AcksEnforced: 1, AcksShortSeconds: 10, Held: record, ObservedUnder: record.Version(), Origin: OriginMember}
	replica := &Status{State: StateCatchingUp, Boot: "r", Protocol: Protocol, Held: record, Origin: OriginMember}
	c := Cluster{
		Record: record, Replicas: 2, Scale: 2, Port: 3306, Durability: Durability{Continue: true, Grace: 10 * time.Second},
		Members: []Member{{Name: "db-0", Host: "h0", Pod: true, Status: primary}, {Name: "db-1", Ordinal: 1, Host: "h1", Pod: true, Status: replica}},
	}
	if got := Decide(c).Record.RequiredAcks; got != 0 {
		t.Errorf("commits wait for %d acknowledgements", got)
	}
	primary.AckClients, primary.AcksShortSeconds, replica.Acknowledging = 1, 0, true
	if got := Decide(c).Record.RequiredAcks; got != 1 {
		t.Errorf("while it acknowledges, commits wait for %d", got)
	}
}
