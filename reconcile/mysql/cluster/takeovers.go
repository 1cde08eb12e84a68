package cluster

import (
	"fmt"
	"slices"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// mostTakeovers is how many takeovers a status lists. The schema allows no more.
const mostTakeovers = 8

// describeTakeovers adds a takeover that begins to the status, and what has happened since to one that is in progress.
func (r passResult) describeTakeovers(status *v1.MySQLClusterStatus) {
	record, all := r.decision.Record, slices.Clone(status.Takeovers)
	isListed := len(all) > 0 && all[len(all)-1].Epoch == record.Epoch
	if record.FormerPrimary != "" && !isListed {
		begun := v1.Takeover{Epoch: record.Epoch, From: record.FormerPrimary, StartTime: v1.NewMicroTime(r.seen.now), FailureTime: r.failureTime()}
		if note := r.decision.Note; note != nil {
			begun.Message = report.Brief(note.Message, report.LongestMessage)
		}
		all = append(all, begun)
		isListed = true
	}
	if record.Primary != "" && isListed {
		last := &all[len(all)-1]
		last.To = record.Primary
		if last.CompletionTime == nil && r.leads(record) {
			now := v1.NewMicroTime(r.seen.now)
			last.CompletionTime = &now
		}
	}
	status.Takeovers = all[max(0, len(all)-mostTakeovers):]
}

// failureTime is when the failed primary was last heard by a member; nil if that is not known.
func (r passResult) failureTime() *v1.MicroTime {
	failedFor := view(r.cluster, r.seen).FailedFor()
	if failedFor == 0 {
		return nil
	}
	at := v1.NewMicroTime(r.seen.now.Add(-failedFor))
	return &at
}

// continuesFor is for how long the operator does not replace a primary again whose replicas are cut off from it, if no other member could
// take over the last time.
const continuesFor = 10 * time.Minute

// hasContinued reports whether the primary was to be replaced a short while ago, and continues.
func hasContinued(status v1.MySQLClusterStatus, now time.Time) bool {
	if len(status.Takeovers) == 0 {
		return false
	}
	last := status.Takeovers[len(status.Takeovers)-1]
	return last.Epoch == status.Epoch && last.To == last.From && now.Sub(last.StartTime.Time) < continuesFor
}

// hurriesFor is for how long passes hurry while a primary is replaced.
const hurriesFor = time.Minute

// hurries reports whether a primary is being replaced, the next one does not take writes yet, and that began a short while ago.
func hurries(status v1.MySQLClusterStatus, now time.Time) bool {
	count := len(status.Takeovers)
	return count > 0 && status.Takeovers[count-1].CompletionTime == nil && now.Sub(status.Takeovers[count-1].StartTime.Time) < hurriesFor
}

// leads reports whether the primary takes writes under this record's epoch.
func (r passResult) leads(record replication.Record) bool {
	primary := r.primaryStatus()
	return primary != nil && primary.State == replication.StateWriting && primary.Held.Epoch == record.Epoch
}

// takeoverEvents reports a takeover that is complete.
func takeoverEvents(before, after v1.MySQLClusterStatus) []reconcile.Event {
	count := len(after.Takeovers)
	if count == 0 {
		return nil
	}
	last := after.Takeovers[count-1]
	wasComplete := slices.ContainsFunc(before.Takeovers, func(one v1.Takeover) bool { return one.Epoch == last.Epoch && one.CompletionTime != nil })
	if last.CompletionTime == nil || wasComplete {
		return nil
	}
	note := fmt.Sprintf("%s took over from %s%s: %s", last.To, last.From, last.Durations(), last.Message)
	if last.To == last.From {
		note = last.To + " continues as the primary, because no other member could take over"
	}
	return []reconcile.Event{{Type: reconcile.Normal, Reason: "TakeoverCompleted", Action: "ChangeRecord", Note: note}}
}
