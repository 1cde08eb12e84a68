package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
)

// reportKept copies the state on the volume into the report. The caller must hold the lock or be the only user of the agent.
func (a *Agent) reportKept() {
	a.status.Origin, a.status.Held, a.status.HeldRole, a.status.Last = a.kept.Data, a.kept.Held, a.kept.HeldRole, a.kept.Last
	a.status.IsForgetful, a.status.ForgotUnder, a.status.SetAside = a.kept.IsForgetful, a.kept.ForgotUnder, a.kept.SetAside
	a.status.CopiedFrom, a.status.TablesWithoutRows = a.kept.CopiedFrom, nil
	if a.kept.TablesWithoutRows != nil {
		some := a.kept.TablesWithoutRows.Tables.First(reportedTables)
		a.status.TablesWithoutRows = &some
	}
}

// publish updates the report from a look and a decision. It reports whether the state or its message changed. While a failed step is tried
// again, the report keeps the error in its message.
func (a *Agent) publish(observed mysqld.Observed, local replication.Observed, step replication.Step, under followed) bool {
	defer a.mayHaveNews()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.start != "" && (a.start != a.mysqld.Start || !a.mysqld.Running) {
		return false // it has ended since
	}
	now := time.Now()
	a.looked = now
	if !observed.LoginsHang {
		a.answered, a.hung = now, time.Time{}
	}
	status, server := &a.status, observed.Server
	if a.assignment == nil && a.refused != "" {
		// Operators of all releases show this message, also an operator that does not know why the agent refuses it.
		step.Message += "; " + a.refused
	}
	if a.kept.IsForgetful {
		step.Message += "; it may lack transactions that it acknowledged before its machine or its volume failed, or before it changed its source"
	}
	changed := status.State != step.State || a.lastMessage != step.Message
	if changed {
		a.lastMessage, status.Message = step.Message, step.Message
	}
	status.State, status.NeedsCopy, status.IsRestarting = step.State, step.NeedsCopy, a.mysqld.Stopping
	status.ObservedUnder, status.Silent = under.version, under.silent
	status.ServerUUID, status.Version = server.ServerUUID, observed.Version
	status.Executed, status.Received = server.Executed, server.Executed.Union(server.Channel.Retrieved)
	status.Pending, status.Hollow, status.Shared, status.HasNoOthers = server.Pending, step.Hollow, local.Shared(), local.HasNoOthers()
	status.Writable, status.Closed = !server.SuperReadOnly, a.closedUnder(observed, under)
	status.AcksEnforced, status.AckClients = step.CertainAcks(local), observed.AckClients
	status.ConnectedReplicas, status.SyncsRelayLog = observed.Connected, observed.SyncsRelayLog
	status.AcksShortSeconds = a.acksShort(now, observed)
	status.Acknowledging = a.acknowledges(server)
	status.LagSeconds, status.BehindLately, status.SourceSilentFor = server.Channel.LagSeconds, a.looks.lag.Lately(now), a.looks.ear.SilentFor(now)
	a.deafSince = a.deaf.since(a.start, server.Channel)
	a.reportKept()
	return changed
}

// closedUnder returns the record that the member followed before its mysqld was seen to refuse all writes; nil if it may take some.
func (a *Agent) closedUnder(observed mysqld.Observed, under followed) *replication.Version {
	if !observed.Server.SuperReadOnly || a.mayOpen() {
		return nil
	}
	return &under.version
}

// acknowledges reports whether the member may acknowledge commits before the agent looks again. If its assignment forbids that, a receiver
// that does not run counts too, until acknowledgements are off: a statement that is late may start it. The caller must hold the lock.
func (a *Agent) acknowledges(server replication.Server) bool {
	isForbidden := a.assignment != nil && !a.assignment.Acknowledge
	return server.Channel.AckActive || server.ReplicaAcks && (server.Channel.IO != "No" || isForbidden)
}

// acksShort is for how many seconds fewer replicas than necessary have been connected, or heard. mysqld counts a connection for longer that
// is half open. Before mysqld opens, replicas cannot connect, and that does not count. The caller must hold the lock.
func (a *Agent) acksShort(now time.Time, observed mysqld.Observed) int {
	if observed.Server.SuperReadOnly || observed.EnoughAcknowledge() && !a.hearsTooFew() {
		a.shortSince = time.Time{}
		return 0
	}
	if a.shortSince.IsZero() {
		a.shortSince = now
	}
	return int(now.Sub(a.shortSince).Seconds())
}

// begins removes the error of the last attempt of a step from the message.
func (a *Agent) begins() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status.Message = a.lastMessage
}

// ended reports how a step ended. After a failure the next turn decides again.
func (a *Agent) ended(step replication.Step, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		a.failure, a.status.Message = "", a.lastMessage
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

// Status returns the latest report.
func (a *Agent) Status() replication.Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	status, now := a.status, time.Now()
	status.Disk, status.Probe = a.disk(now), a.volume.report()
	if clock, err := supervisor.Clock(); err == nil {
		status.Clock, status.Lease = clock, a.reportedLease(clock)
		if a.deafSince > 0 {
			status.DeafFor = clock - a.deafSince
		}
	}
	switch {
	case status.State == replication.StateStarting && status.Closed == nil:
		status.UnansweredFor = min(now.Sub(a.startingSince), now.Sub(a.closedUntil))
	case status.State == replication.StateStarting:
		status.UnansweredFor = now.Sub(a.startingSince)
	case !a.mysqld.Stopping: // as long as its container stops, it is not late
		status.UnansweredFor = a.asked.unansweredFor(now)
	}
	return status
}
