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
		if isChosen := r.cluster.Status.FormerPrimary != ""; isChosen && record.ForcedEpoch == record.Epoch {
			last.Kept, last.Lost = r.keptAndLost(record)
		}
		if last.CompletionTime == nil && r.leads(record) {
			now := v1.NewMicroTime(r.seen.now)
			last.CompletionTime = &now
		}
	}
	status.Takeovers = all[max(0, len(all)-mostTakeovers):]
	for _, member := range r.seen.members {
		describeSetAside(status.Takeovers, member)
	}
}

// longestForced limits the GTIDs of a takeover that a user has forced, in bytes.
const longestForced = 4096

// keptAndLost returns what the primary of a record has, and what is missing there, when a user has made it the primary.
func (r passResult) keptAndLost(record replication.Record) (kept, lost string) {
	now := view(r.cluster, r.seen)
	for _, member := range now.Members {
		if member.Name == record.Primary && member.HasReported() {
			kept = report.Brief(member.Status.Received.String(), longestForced)
		}
	}
	return kept, report.Brief(now.Lost(record).String(), longestForced)
}

// longestGTIDs limits the GTIDs that a status shows, in bytes.
const longestGTIDs = 512

// describeSetAside adds to the takeover from a member what the member set aside after that.
func describeSetAside(takeovers []v1.Takeover, from replication.Member) {
	if from.Status == nil || from.Status.SetAside == nil {
		return
	}
	for i, one := range slices.Backward(takeovers) {
		if one.From == from.Name && one.Epoch <= from.Status.SetAside.Epoch {
			takeovers[i].Unacknowledged = report.Brief(from.Status.SetAside.GTIDs.String(), longestGTIDs)
			return
		}
	}
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
	return last.Epoch == status.Epoch && last.To == last.From && last.Epoch != status.ForcedEpoch && now.Sub(last.StartTime.Time) < continuesFor
}

// mostAhead is how far the clocks of two operators may differ. A takeover that begins later in the future says nothing.
const mostAhead = time.Minute

// sinceTakeover is how long ago the last takeover began; 0 if that is not known.
func sinceTakeover(status v1.MySQLClusterStatus, now time.Time) time.Duration {
	if len(status.Takeovers) == 0 {
		return 0
	}
	since := now.Sub(status.Takeovers[len(status.Takeovers)-1].StartTime.Time)
	if since < -mostAhead {
		return 0
	}
	return max(1, since)
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

// takeoverEvents reports a takeover that is complete, and what former primaries have set aside.
func takeoverEvents(before, after v1.MySQLClusterStatus) []reconcile.Event {
	count := len(after.Takeovers)
	if count == 0 {
		return nil
	}
	return append(completionEvents(before, after), setAsideEvents(before, after)...)
}

func setAsideEvents(before, after v1.MySQLClusterStatus) []reconcile.Event {
	var events []reconcile.Event
	for _, one := range after.Takeovers {
		isKnown := func(known v1.Takeover) bool {
			return known.Epoch == one.Epoch && known.Unacknowledged == one.Unacknowledged
		}
		if one.Unacknowledged == "" || slices.ContainsFunc(before.Takeovers, isKnown) {
			continue
		}
		note := fmt.Sprintf("%s had transactions that no other member has, and that no client was told had succeeded. It keeps a copy of them in its volume, in the folder unacknowledged: %s",
			one.From, one.Unacknowledged)
		events = append(events, reconcile.Event{Type: reconcile.Normal, Reason: "TransactionsSetAside", Action: actionRecord, Note: note})
	}
	return events
}

func completionEvents(before, after v1.MySQLClusterStatus) []reconcile.Event {
	last := after.Takeovers[len(after.Takeovers)-1]
	wasComplete := slices.ContainsFunc(before.Takeovers, func(one v1.Takeover) bool { return one.Epoch == last.Epoch && one.CompletionTime != nil })
	if last.CompletionTime == nil || wasComplete {
		return nil
	}
	took := fmt.Sprintf("%s took over from %s%s", last.To, last.From, last.Durations())
	switch {
	case last.Epoch == after.ForcedEpoch:
		const longest = 300
		note := fmt.Sprintf("%s, because a user asked for it. It has %s; all other commits may be lost", took, report.Brief(last.Kept, longest))
		if last.Lost != "" {
			note += ", among them " + report.Brief(last.Lost, longest)
		}
		return []reconcile.Event{{Type: reconcile.Warning, Reason: "TakeoverForced", Action: actionRecord, Note: note}}
	case last.To == last.From:
		took = last.To + " continues as the primary, because no other member could take over"
	default:
		took += ": " + last.Message
	}
	return []reconcile.Event{{Type: reconcile.Normal, Reason: "TakeoverCompleted", Action: actionRecord, Note: took}}
}
