package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// reportKept copies what is kept on the volume into the report; the caller holds the lock or is alone.
func (a *Agent) reportKept() {
	a.status.Origin, a.status.Held, a.status.HeldRole, a.status.Last = a.kept.Data, a.kept.Held, a.kept.HeldRole, a.kept.Last
	a.status.Lacking = nil
	if a.kept.Lacking != nil {
		some := a.kept.Lacking.Tables.First(reportedTables)
		a.status.Lacking = &some
	}
}

// publish turns a look and a decision into the report; it says whether the state or its explanation changed. Of a step that is tried again
// it says on why that failed.
func (a *Agent) publish(observed mysqld.Observed, local replication.Local, step replication.Step, silent []string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	a.looked = now
	if !observed.LockedOut {
		a.answered, a.hung = now, time.Time{}
	}
	status, server := &a.status, observed.Server
	if a.assignment == nil && a.refused != "" {
		// Operators of all releases show this, also one that does not know why it is refused.
		step.Message += "; " + a.refused
	}
	changed := status.State != step.State || a.said != step.Message
	if changed {
		a.said, status.Message = step.Message, step.Message
	}
	status.State, status.NeedsCopy = step.State, step.NeedsCopy
	status.Silent = silent
	status.ServerUUID, status.Version = server.ServerUUID, observed.Version
	status.Executed, status.Received = server.Executed, server.Executed.Union(server.Channel.Retrieved)
	status.Pending, status.Hollow = server.Pending, step.Hollow
	status.Writable = !server.SuperReadOnly
	status.AcksEnforced, status.AckClients = step.CertainAcks(local), observed.AckClients
	status.AcksShortSeconds = a.acksShort(now, observed)
	status.Acknowledging = server.Channel.AckActive || server.ReplicaAcks && server.Channel.IO != "No"
	status.LagSeconds = server.Channel.LagSeconds
	a.reportKept()
	return changed
}

func (a *Agent) acksShort(now time.Time, observed mysqld.Observed) int {
	if observed.EnoughAcknowledge() {
		a.shortSince = time.Time{}
		return 0
	}
	if a.shortSince.IsZero() {
		a.shortSince = now
	}
	return int(now.Sub(a.shortSince).Seconds())
}

// begins takes back what was said of the last try of a step.
func (a *Agent) begins() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status.Message = a.said
}

// ended reports how a step ended. Where it failed the next turn decides anew.
func (a *Agent) ended(step replication.Step, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		a.failure, a.status.Message = "", a.said
		return
	}
	a.status.Message = fmt.Sprintf("%s: %v", step.Message, err)
	was := a.failure
	a.failure = err.Error()
	if errors.Is(err, context.Canceled) || was == a.failure {
		return
	}
	a.log.Info("step failed, will try again", "verb", step.Verb, "error", err.Error())
}
