package cluster

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// conditionDisk is present while a member's volume has little room.
const conditionDisk = "DiskPressure"

// reasonVolumeFillsUp is its reason while no volume is full; reasonDiskFull is the other.
const reasonVolumeFillsUp = "VolumeFillsUp"

// diskRemedy is what a user can do.
const diskRemedy = "raise spec.storage (its StorageClass must allow that), or delete what is not needed (docs/sizing.md#a-full-disk)"

// membersAt names the members whose volumes are at a level.
func membersAt(members []replication.Member, level replication.DiskLevel) string {
	var names []string
	for _, member := range members {
		if member.Status != nil && member.Status.Disk.Level == level {
			names = append(names, member.Name)
		}
	}
	return strings.Join(names, ", ")
}

// diskFull names the members whose volume is full; nil if there is room. While no member takes writes, only the primary's volume may be the
// cause.
func (r passResult) diskFull(writing bool) *report.Problem {
	members := r.seen.members
	if !writing {
		members = slices.DeleteFunc(slices.Clone(members), func(member replication.Member) bool { return member.Name != r.decision.Record.Primary })
	}
	full := membersAt(members, replication.DiskFull)
	if full == "" {
		return nil
	}
	message := "the volume is full or nearly full, so commits hang: " + full + "; " + diskRemedy
	if note := r.decision.Note; note != nil && note.Reason == replication.ReasonPrimaryDown {
		message += "; " + note.Message
	}
	return &report.Problem{Reason: reasonDiskFull, Message: report.Brief(message, report.LongestMessage), Stalled: true}
}

// commitsHang reports that nothing is committed although clients try; nil if commits complete, or if the condition Durable reports why not.
func (r passResult) commitsHang() *report.Problem {
	primary := r.primaryStatus()
	if _, why, _ := r.durability(); primary == nil || !primary.CommitsHang() || why == reasonCommitsBlocked {
		return nil
	}
	return &report.Problem{Reason: reasonCommitsHang, Message: fmt.Sprintf("nothing has been committed on %s for more than %d seconds while sessions wait to commit: its volume accepts no writes, "+
		"one transaction is very large, or replicas do not acknowledge (see SHOW PROCESSLIST)", r.decision.Record.Primary, int(replication.LongWait.Seconds()))}
}

// lacksVolume reports whether the primary's volume stands still or returns errors: another member may take over after some time.
func (r passResult) lacksVolume() bool {
	primary := r.primaryStatus()
	return primary != nil && !primary.Probe.IsSound()
}

// describeDisk sets or removes the condition DiskPressure. While a member does not report, the condition stays, unless others now report
// something as bad or worse.
func (r passResult) describeDisk(status *v1.MySQLClusterStatus) {
	members := r.seen.members
	full, filling, before := membersAt(members, replication.DiskFull), membersAt(members, replication.DiskPressure), meta.FindStatusCondition(status.Conditions, conditionDisk)
	conditions := conditionsOf(status)
	switch {
	case full != "":
		conditions.Set(conditionDisk, metav1.ConditionTrue, reasonDiskFull, "the volume is full or nearly full: "+full+"; "+diskRemedy)
	case before != nil && (filling == "" || before.Reason == reasonDiskFull) && !r.allTellOfDisk():
	case filling != "":
		conditions.Set(conditionDisk, metav1.ConditionTrue, reasonVolumeFillsUp, "less than 15 % of the volume is free: "+filling+"; "+diskRemedy)
	default:
		conditions.Remove(conditionDisk)
	}
}

// allTellOfDisk reports whether all members report how much room they have. One that is being created again does not.
func (r passResult) allTellOfDisk() bool {
	return !slices.ContainsFunc(r.seen.members, func(member replication.Member) bool {
		isThere := member.Pod || member.Ordinal < children.WantedReplicas(r.cluster)
		return isThere && (member.Status == nil || member.Status.Disk.Size == 0)
	})
}

// warningEvents sends an event when a condition that warns begins. For conditions that follow from what the user asked for, it also sends
// one when the message changes.
func warningEvents(before, after v1.MySQLClusterStatus) []reconcile.Event {
	var events []reconcile.Event
	for _, kind := range []string{conditionOvercommitted, conditionDisk, conditionPrepared, conditionEvents, conditionPrimaryFirst, conditionUpgrade} {
		was, is := meta.FindStatusCondition(before.Conditions, kind), meta.FindStatusCondition(after.Conditions, kind)
		isAsked := kind == conditionOvercommitted || kind == conditionPrimaryFirst
		if is == nil || was != nil && was.Reason == is.Reason && (!isAsked || was.Message == is.Message) {
			continue
		}
		events = append(events, reconcile.Event{Type: reconcile.Warning, Reason: is.Reason, Action: "Look", Note: is.Message})
	}
	return events
}
