package replication

import "fmt"

// A crashed primary opens again by its replicas if no operator says anything. Another member may have taken over since it crashed, and its
// replicas know that: another one leads only after all of them in sync but RequiredAcks - 1 have accepted that, and stopped acknowledging.
// So when RequiredAcks replicas acknowledge what this member has committed since its start, there is no later primary yet. Its lease then
// rests on the same replicas. So if another member takes over after that, it waits until this one has certainly stopped, as for each
// primary that has a lease (lease.go).
//
// That holds for the record and the assignment that the member had when it crashed. A record of the same primary that was written since
// promises no more, and names no fewer members in sync, than what this primary has reported under its own record (nextrecord.go).

// Opened is what an agent has seen itself of its mysqld when that last took writes: the record that mysqld followed, and what it had
// executed. The zero value is for an agent that has not seen it take writes. It is not stored: the volume may be another one later.
type Opened struct {
	Under    Version
	Executed GTIDSet
}

// MayReopen reports whether this primary may open again by its replicas with this assignment after its mysqld has crashed. It must have led
// with it, and the assignment must demand acknowledgements and a lease.
func (o Opened) MayReopen(order *Assignment) bool {
	if order == nil || order.Role != RolePrimary || order.Record.Version() != o.Under {
		return false
	}
	acks := order.Record.RequiredAcks
	return acks > 0 && order.Acks >= acks && order.Lease >= acks && order.LeaseLasts > 0
}

// Reopens reports whether a primary that is closed opens by its replicas, without an assignment for this start of mysqld. It must have all
// that it had before, and be no member that was replaced or may have forgotten something.
func (l Observed) Reopens() bool {
	isSame := l.Server.Executed.Contains(l.Opened.Executed) && l.Origin == OriginMember && !l.Server.Channel.Configured
	return l.IsReopening && isSame && !l.IsForgetful && l.HadAsPrimary.Empty() && l.Opened.MayReopen(l.Assignment)
}

// openStep lets clients write: at the order of the operator, or else of the replicas.
func openStep(a Assignment, local Observed) Step {
	if a.Boot == local.Boot {
		return Step{Verb: VerbAcceptWrites, State: StatePromoting, Message: "starts to take writes"}
	}
	message := fmt.Sprintf("mysqld restarted; opens again when %d replicas acknowledge everything, or the operator confirms that this member is still the primary", a.Acks)
	return Step{Verb: VerbReopen, State: StatePromoting, Message: message}
}

// Shown is what replicas have shown to a primary since its mysqld started.
type Shown struct {
	// Acknowledged means that as many as commits wait for have acknowledged everything that it has. They still follow it then.
	Acknowledged bool
	// IsHeard means that its lease rests on replicas whose machines have acknowledged packets of this mysqld.
	IsHeard bool
}

// Lacks says what a primary that opens by its replicas waits for; empty if it may open.
func (s Shown) Lacks() string {
	switch {
	case !s.Acknowledged:
		return "waits for acknowledgements of everything that this member has"
	case !s.IsHeard:
		return "waits for a lease that rests on its replicas"
	}
	return ""
}

// Reopens reports whether this primary is closed, and may open by its replicas. It lets them follow without an assignment for its start.
func (s Status) Reopens() bool {
	order := s.Assignment
	return order != nil && order.Role == RolePrimary && order.Boot != s.Boot && s.ObservedUnder == order.Record.Version()
}
