package cluster

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// conditionDisk is there while a member's volume has little room.
const conditionDisk = "DiskPressure"

// reasonVolumeFillsUp is its reason while no volume is full; reasonDiskFull is the other.
const reasonVolumeFillsUp = "VolumeFillsUp"

// diskRemedy is what a person can do.
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

// diskFull says whose volume is full; nil where there is room. While nobody takes writes only the primary's volume may be why.
func (r report) diskFull(writing bool) *problem {
	members := r.seen.members
	if !writing {
		members = slices.DeleteFunc(slices.Clone(members), func(member replication.Member) bool { return member.Name != r.decision.Record.Primary })
	}
	full := membersAt(members, replication.DiskFull)
	if full == "" {
		return nil
	}
	return &problem{reasonDiskFull, "the volume is full or nearly full, so commits hang: " + full + "; " + diskRemedy, true}
}

// hangAfter is for how long nothing may be committed while sessions wait, in seconds: as long as one large transaction takes to be written.
const hangAfter = 15

// commitsHang says that nothing is committed although clients try; nil where commits come through, or the condition Durable says why not.
func (r report) commitsHang() *problem {
	primary := r.primaryStatus()
	if _, why, _ := r.durability(); primary == nil || !hangs(*primary) || why == reasonCommitsBlocked {
		return nil
	}
	return &problem{reasonCommitsHang, fmt.Sprintf("nothing has been committed on %s for more than %d seconds while sessions wait to commit: its volume accepts no writes, "+
		"one transaction is very large, or replicas do not acknowledge (see SHOW PROCESSLIST)", r.decision.Record.Primary, hangAfter), false}
}

func hangs(status replication.Status) bool {
	return status.State == replication.StateWriting && status.Transactions.CommitWaitSeconds >= hangAfter
}

// describeDisk sets the condition DiskPressure, or takes it away. What members said that do not answer now still holds, unless it is worse
// than what others say.
func (r report) describeDisk(status *v1.MySQLClusterStatus) {
	members := r.seen.members
	full, filling, before := membersAt(members, replication.DiskFull), membersAt(members, replication.DiskPressure), meta.FindStatusCondition(status.Conditions, conditionDisk)
	said := metav1.Condition{Type: conditionDisk, Status: metav1.ConditionTrue, ObservedGeneration: status.ObservedGeneration}
	switch {
	case full != "":
		said.Reason, said.Message = reasonDiskFull, "the volume is full or nearly full: "+full+"; "+diskRemedy
	case before != nil && (filling == "" || before.Reason == reasonDiskFull) && !r.allTellOfDisk():
		return
	case filling != "":
		said.Reason, said.Message = reasonVolumeFillsUp, "less than 15 % of the volume is free: "+filling+"; "+diskRemedy
	default:
		meta.RemoveStatusCondition(&status.Conditions, conditionDisk)
		return
	}
	reconcile.SetCondition(&status.Conditions, said)
}

// allTellOfDisk says whether all members say how much room they have. One that is being made anew does not.
func (r report) allTellOfDisk() bool {
	return !slices.ContainsFunc(r.seen.members, func(member replication.Member) bool {
		isThere := member.Pod || member.Ordinal < wantedReplicas(r.cluster)
		return isThere && (member.Status == nil || member.Status.Disk.Size == 0)
	})
}

// tellWarnings turns the beginning of conditions that warn into events. Of those that follow from what people ask for, another message is
// told as well.
func tellWarnings(before, after v1.MySQLClusterStatus) []reconcile.Event {
	var events []reconcile.Event
	for _, kind := range []string{conditionOvercommitted, conditionDisk, conditionPrepared, conditionPrimaryFirst, conditionUpgrade} {
		was, is := meta.FindStatusCondition(before.Conditions, kind), meta.FindStatusCondition(after.Conditions, kind)
		isAsked := kind == conditionOvercommitted || kind == conditionPrimaryFirst
		if is == nil || was != nil && was.Reason == is.Reason && (!isAsked || was.Message == is.Message) {
			continue
		}
		events = append(events, reconcile.Event{Type: reconcile.Warning, Reason: is.Reason, Action: "Look", Note: is.Message})
	}
	return events
}
