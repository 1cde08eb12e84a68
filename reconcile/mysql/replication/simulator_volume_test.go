package replication

import (
	"testing"
	"time"
)

// A volume that stands still completes no write. So nothing is committed or received there, the agent stores nothing, and a process that is
// killed does not end before the volume continues. On a full one, nothing is committed or received.

// volumeFault is how a volume fails, since when, and what the agent has not stored.
type volumeFault struct {
	stands, full bool
	since        int
	// isKilled means that mysqld was killed, and has not ended.
	isKilled bool
	// stored is what the volume has; nil for what the agent follows.
	stored *keptOnVolume
}

// keptOnVolume is the part of a member's state that an assignment changes.
type keptOnVolume struct {
	held     Record
	last     *Assignment
	role     Role
	hasLed   bool
	replaced *formerPrimary
}

// isBlocked reports whether nothing is committed or received.
func (f volumeFault) isBlocked() bool { return f.stands || f.full }

// failVolume makes the volume of a member, mostly of the primary, fail, or work again.
func (w *world) failVolume() {
	m := w.named(w.record.lastPrimary())
	if m == nil || w.random.IntN(3) == 0 {
		m = w.anyMember()
	}
	if m.fault.isBlocked() {
		w.say("%s: its volume works again", m.name)
		m.heal()
		return
	}
	if m.vol.made {
		w.fails(m, w.random.IntN(3) > 0)
	}
}

// fails makes a volume stand still, or fills it.
func (w *world) fails(m *simulated, stands bool) {
	w.say("%s: its volume fails, and stands still: %t", m.name, stands)
	m.heal()
	m.fault = volumeFault{stands: stands, full: !stands, since: w.clock}
}

// heal makes a volume work again. A mysqld that was killed ends then.
func (m *simulated) heal() {
	was := m.fault
	m.fault = volumeFault{stored: was.stored}
	if was.isKilled {
		m.crash()
	}
}

// forgetUnstored gives the member what its volume has, when its agent ends.
func (m *simulated) forgetUnstored() {
	if had := m.fault.stored; had != nil {
		m.vol.held, m.vol.last, m.vol.role, m.vol.hasLed, m.vol.replaced = had.held, had.last, had.role, had.hasLed, had.replaced
	}
	m.fault.stored = nil
}

// mayStore reports whether the agent follows an assignment, and notes what the volume has if that is not stored (agent.acceptUnstored).
func (m *simulated) mayStore(next Assignment) bool {
	if !m.fault.stands {
		m.fault.stored = nil
		return true
	}
	next.ConfirmedAt = 0
	if m.vol.last != nil && next.Followed(Status{Assignment: m.vol.last, Boot: m.agent.status.Boot}) {
		return true
	}
	if m.vol.role != RolePrimary || next.Record.FormerPrimary != m.vol.held.Primary {
		return false
	}
	if m.fault.stored == nil {
		m.fault.stored = &keptOnVolume{m.vol.held, m.vol.last, m.vol.role, m.vol.hasLed, m.vol.replaced}
	}
	return true
}

// onVolume adds to a report how the volume is.
func (w *world) onVolume(m *simulated, status *Status) {
	status.Probe, status.Disk = VolumeProbe{IsKnown: true}, Disk{Size: 100, Free: 50}
	long := w.clock - m.fault.since
	switch {
	case m.fault.stands && long > 0:
		status.Probe.StuckFor = StuckAfter * time.Duration(long) / time.Duration(w.patience)
	case m.fault.full:
		status.Disk = Disk{Size: 100, Level: DiskFull}
		if status.State == StateWriting {
			status.Transactions.CommitWaitSeconds = int64(HangAfter.Seconds()) * int64(long) / int64(w.patience)
		}
	}
}

// sinceTakeover is how long ago the last takeover began, as the operator measures it.
func (w *world) sinceTakeover() time.Duration {
	if w.tookOverAt < 0 {
		return 0
	}
	return max(1, PauseAfterTakeover*time.Duration(w.clock-w.tookOverAt)/time.Duration(w.patience))
}

// TestAClusterWhosePrimaryHasNoVolumeIsLedByAnother, although the volume never works again and no user helps. It acknowledges commits.
func TestAClusterWhosePrimaryHasNoVolumeIsLedByAnother(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		members int
		policy  Durability
		stands  bool
	}{
		"three members, the volume stands still": {3, Durability{Least: 9}, true},
		"three members, it is full":              {3, Durability{Least: 9}, false},
		"five, it stands still":                  {5, Durability{Least: 9}, true},
		"a pair, it stands still":                {2, Durability{Continue: true, Grace: 10 * time.Second}, true},
		"a pair, it is full":                     {2, Durability{Continue: true, Grace: 10 * time.Second}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(20) {
				w := explored{test.members, test.policy, seed}.healthy(t)
				w.isUnaided, w.mayWrite = true, maxTransactions
				former := w.named(w.record.Primary)
				w.fails(former, test.stands)
				isLed := false
				for n := range 300 {
					w.roll(events + n)
					w.round()
					if isLed = w.record.Primary != "" && w.record.Primary != former.name && w.acknowledgesAWrite(); isLed || w.violation != "" {
						break
					}
				}
				if !isLed || w.violation != "" {
					t.Fatalf("seed %d: another member leads: %t; %s; the note is %+v\n%s", seed, isLed, w.violation, w.note, w.history())
				}
			}
		})
	}
}

// TestAllVolumesStandStill, as on storage that fails for all: the primary stays, and continues when the storage does.
func TestAllVolumesStandStill(t *testing.T) {
	t.Parallel()
	w := explored{3, Durability{Least: 9}, 1}.healthy(t)
	former := w.record.Primary
	w.mayWrite = maxTransactions
	for _, m := range w.members {
		w.fails(m, true)
	}
	for n := range 40 {
		w.roll(events + n)
		w.round()
		if w.record.Primary != former {
			t.Fatalf("the record becomes %+v\n%s", w.record, w.history())
		}
	}
	if w.note == nil || w.note.Reason != ReasonPrimaryDown {
		t.Errorf("the operator says %+v", w.note)
	}
	w.repair()
	w.operator = pass{} // it has not asked the primary before and the others after that
	if isLed := w.acknowledgesAWrite(); !isLed || w.record.Primary != former || w.violation != "" {
		t.Errorf("%s leads and acknowledges: %t; %s\n%s", w.record.Primary, isLed, w.violation, w.history())
	}
}

// TestNoTakeoverBeginsThatCannotEnd: the volume of a replica that must store that it acknowledges no more stands still as well. The primary
// stays, and continues when its own volume does.
func TestNoTakeoverBeginsThatCannotEnd(t *testing.T) {
	t.Parallel()
	w := explored{3, Durability{Least: 9}, 1}.healthy(t)
	former := w.named("db-0")
	w.isUnaided, w.mayWrite = true, maxTransactions
	w.fails(former, true)
	w.fails(w.named("db-1"), true)
	for n := range 40 {
		w.roll(events + n)
		w.round()
		if w.record.Primary != former.name {
			t.Fatalf("the record becomes %+v\n%s", w.record, w.history())
		}
	}
	former.heal()
	w.operator = pass{}
	if isLed := w.acknowledgesAWrite(); !isLed || w.record.Primary != former.name || w.violation != "" {
		t.Errorf("%s leads and acknowledges: %t; %s\n%s", w.record.Primary, isLed, w.violation, w.history())
	}
}
