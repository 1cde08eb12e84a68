package replication

import (
	"slices"
	"testing"
)

// In some simulated clusters, a user makes a member the primary although others that do not answer may have acknowledged commits. The
// promise ends for these commits. But no member that has one may lose it without a user.

// surrender is what a user has given up.
type surrender struct {
	isLikely bool
	// to is the member that the user wants as the primary, request the annotation; empty for none.
	to, request string
	// forgotten are acknowledged transactions that a forced primary lacked.
	forgotten transactions
}

func TestSimulatedClustersKeepWhatAForcedPrimaryLacks(t *testing.T) {
	t.Parallel()
	simulateAll(t, *simulatorSeeds/4, func(seed uint64) *world {
		w := newWorld(seed)
		w.surrender.isLikely = true
		return w
	})
}

// giveUpOthers makes a user ask for a member that is left, or change his mind. Members that were deaf may answer again after that.
func (w *world) giveUpOthers() {
	if !w.surrender.isLikely {
		return
	}
	switch m := w.anyMember(); {
	case w.surrender.to != "":
		switch w.random.IntN(400) {
		case 0:
			w.say("a user does not ask for %s any more", w.surrender.to)
			w.surrender.to, w.surrender.request = "", ""
		case 1, 2, 3:
			w.surrender.request = w.record.names(w.surrender.to)
		}
	case w.random.IntN(100) == 0:
		m.deaf = false
	case w.random.IntN(300) == 0 && w.record.lastPrimary() != "":
		w.say("a user asks for %s", m.name)
		for _, other := range w.members {
			other.deaf = other != m && w.random.IntN(4) > 0
		}
		w.surrender.to, w.surrender.request = m.name, w.record.names(m.name)
	}
}

// surrenders notes what the primary of the record lacked, as far as the operator had seen, when a user has made it the primary. It may have
// received more since then, if it does not acknowledge: all that may be lost. Members that have not heard of it may run on.
func (w *world) surrenders(seen []Member) {
	primary, lost := w.named(w.record.Primary), w.acked
	for _, member := range seen {
		if member.Name == primary.name && member.Status != nil {
			lost = transactions{}
			w.acked.each(func(n int) {
				if !member.Status.Received.Contains(w.one(n)) {
					lost.add(n)
				}
			})
		}
	}
	w.say("a user has made %s the primary, without %s", primary.name, w.set(lost))
	w.acked, w.surrender.forgotten = w.acked.without(lost), w.surrender.forgotten.union(lost)
	w.ranOn, w.surrender.to = true, "" // the annotation stays
	for _, m := range w.members {
		m.ghost, m.isLost, m.runsOn = transactions{}, false, m != primary
	}
}

// isForgotten reports whether the server that made a transaction runs on although a user has made another one the primary.
func (w *world) isForgotten(n int) bool {
	return slices.ContainsFunc(w.running(), func(m *simulated) bool {
		return m.uuid == w.ledger[n].uuid && (m.runsOn || m.vol.held.Epoch < w.record.ForcedEpoch)
	})
}

// drops checks that a member loses nothing that a client was told had succeeded.
func (w *world) drops(m *simulated, dropped transactions, how string) {
	if lost := dropped.both(w.acked.union(w.surrender.forgotten)); !lost.empty() {
		w.violated("%s loses acknowledged transactions %s: %s", m.name, w.set(lost), how)
	}
}
