package agent

import (
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// memory is what the loop remembers of its looks at this mysqld: the space of the relay log, what the receiver gets, how far the member is
// behind, and whether an error has stopped its applier.
type memory struct {
	room    replication.RelayLogMonitor
	ear     replication.Ear
	lag     replication.LagMemory
	applier replication.ApplierMemory
}

// with returns the memory after another look.
func (m memory) with(now time.Time, server replication.Server) memory {
	return memory{
		room: m.room.Observe(now, server), ear: m.ear.Observe(now, server.Channel),
		lag: m.lag.Observe(now, server.Channel.LagSeconds), applier: m.applier.Observe(now, server),
	}
}

// takes notes that the loop takes a step. An applier that an error has stopped is started again only by these steps.
func (m *memory) takes(now time.Time, step replication.Step) {
	if step.State == replication.StateBroken && step.Verb != replication.VerbNone {
		m.applier = m.applier.Tried(now)
	}
}
