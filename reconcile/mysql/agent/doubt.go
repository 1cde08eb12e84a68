package agent

import (
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// watchAcks records which transactions may have returned without the copies that the record promises, before another member can take over.
// order is the last assignment that the agent had accepted before it observed mysqld. What cannot be stored counts as long as this agent
// runs, and the next look tries again.
func (a *Agent) watchAcks(observed mysqld.Observed, order *replication.Assignment) {
	server := observed.Server
	next, inDoubt := a.acks.Look(replication.AcksLook{
		Start: a.start, IsOpen: !server.SuperReadOnly, Enforced: server.SourceAcks, SwitchedOff: observed.AcksSwitchedOff,
		Made: server.Executed.OfServer(server.ServerUUID), Pending: server.Pending.OfServer(server.ServerUUID),
	}, order)
	if !inDoubt.Empty() {
		if err := a.keepInDoubt(inDoubt); err != nil {
			a.log.Info("cannot record which commits may have returned without acknowledgements, will try again", "error", err.Error())
			return
		}
	}
	a.acks = next
}

// longestInDoubt is how many bytes the agent keeps of transactions in doubt. A range of them has about fifty.
const longestInDoubt = maxState / 4

// inDoubtWith adds transactions to those in doubt. If both are too long, the new ones count, and the latest of them.
func inDoubtWith(kept, next replication.GTIDSet) replication.GTIDSet {
	if all := kept.Union(next); len(all.String()) <= longestInDoubt {
		return all
	}
	return next.Latest(replication.MostUnacknowledged)
}

// keepInDoubt stores transactions that are in doubt.
func (a *Agent) keepInDoubt(inDoubt replication.GTIDSet) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	kept := a.kept
	kept.InDoubt = inDoubtWith(kept.InDoubt, inDoubt)
	if err := a.storeState(kept); err != nil {
		a.kept = kept
		return err
	}
	a.log.Info("commits may have returned without acknowledgements, because MySQL had stopped waiting for them; this member keeps them if another one takes over without them",
		"gtids", inDoubt.String())
	return nil
}
