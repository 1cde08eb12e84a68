package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// defaultFailedHistory is how many failed instances the schedule keeps.
const defaultFailedHistory = 3

// cleanup is what to mark and to delete: instances by name, in order.
type cleanup struct {
	// toMark are instances to mark as expired, so that their data is deleted with them: backups, and failed instances with data of their
	// attempts.
	toMark []string
	// toUnmark are marked backups that must be kept.
	toUnmark []string
	// remove are marked backups to delete. forget are failed instances to delete, marked ones or those that never began.
	remove, toDeleteFailed []string
	// next is when the next backup expires by its age alone; zero for never.
	next time.Time
}

func (s cleanup) isEmpty() bool {
	return len(s.toMark)+len(s.toUnmark)+len(s.remove)+len(s.toDeleteFailed) == 0
}

// retentionRules is a schedule's retention. Zero values set no limit.
type retentionRules struct {
	last int
	age  time.Duration
}

// readRetention reads spec.retention. With a problem, no backup is deleted.
func readRetention(retention v1.BackupRetention) (retentionRules, *report.Problem) {
	read := retentionRules{}
	if retention.KeepLast != nil {
		read.last = max(int(*retention.KeepLast), 1)
	}
	if retention.KeepFor == "" {
		return read, nil
	}
	age, err := time.ParseDuration(retention.KeepFor)
	if err != nil || age <= 0 {
		return retentionRules{}, &report.Problem{Reason: reasonInvalidRetention, Message: fmt.Sprintf("spec.retention.keepFor: %q is not a valid duration; write hours and minutes, such as 720h or 36h30m; until then no backup is deleted", retention.KeepFor), Stalled: true}
	}
	read.age = age
	return read, nil
}

// clocksAgree reports whether the operator's clock and the API server's agree within clockTolerance.
func clocksAgree(seen observed) bool {
	return !seen.serverNow.IsZero() && seen.now.Sub(seen.serverNow).Abs() <= clockTolerance
}

// retentionProblem returns why backups stay that spec.retention would have deleted; nil if none does.
func retentionProblem(seen observed) *report.Problem {
	const kept = "spec.retention.keepFor: no backup is deleted because of its age"
	rules, wrong := readRetention(seen.schedule.Spec.Retention)
	switch {
	case wrong != nil:
		return wrong
	case rules.age == 0 || clocksAgree(seen):
		return nil
	case seen.serverNow.IsZero():
		return &report.Problem{Reason: reasonClocksDiffer, Message: kept + "; the API server's responses do not contain the time; if there is a proxy, let it pass their Date header", Stalled: true}
	}
	differ := fmt.Sprintf("; the operator's clock and the API server's differ by more than %s; fix the clock that is wrong", clockTolerance)
	return &report.Problem{Reason: reasonClocksDiffer, Message: kept + differ, Stalled: true}
}

// condemns reports whether a completed backup expires, given how many are newer. It also returns when the backup expires by its age alone,
// or when to check again. The clocks for its end and for the present may differ a little: no backup expires too early because of that. One
// clock alone is never enough for an age: if the API server's time differs or is unknown, no backup expires by its age.
func (k retentionRules) condemns(one instance, newer int, seen observed) (bool, time.Time) {
	beyond, until := k.last == 0 || newer >= k.last, one.ended.Add(k.age+clockTolerance)
	isOld := seen.now.After(until)
	switch {
	case k.last == 0 && k.age == 0, !beyond:
		return false, time.Time{}
	case k.age == 0 || isOld && clocksAgree(seen):
		return true, time.Time{}
	case isOld:
		return false, seen.now.Add(clockTolerance)
	}
	return false, until.Add(time.Second)
}

// retain decides what to mark and to delete. The latest completed backup of each cluster always stays: a schedule whose cluster was changed
// must not delete the last backup of the previous cluster. A backup that a cluster is restored from stays, too. So does one that ended in
// the future. Either the clock was ahead then, and newer backups must not be compared with it. Or the clock is behind now, and the backup
// is newer than it seems.
func retain(seen observed) cleanup {
	found := cleanup{}
	spec := seen.schedule.Spec
	if rules, wrong := readRetention(spec.Retention); wrong == nil {
		found = expiry(seen, rules)
	}
	limit := defaultFailedHistory
	if spec.FailedHistoryLimit != nil {
		limit = max(int(*spec.FailedHistoryLimit), 0)
	}
	failed := newestFirst(seen.instances, v1.BackupFailed)
	for i, one := range failed {
		switch {
		case i < limit && one.isMarked:
			found.toUnmark = append(found.toUnmark, one.name)
		case i < limit:
		case one.ready || !one.began:
			found.toDeleteFailed = append(found.toDeleteFailed, one.name)
		default:
			found.toMark = append(found.toMark, one.name)
		}
	}
	return found
}

// expires reports whether a completed backup would expire if no cluster were restored from any.
func expires(seen observed) bool {
	seen.restoring = nil
	rules, wrong := readRetention(seen.schedule.Spec.Retention)
	if wrong != nil {
		return false
	}
	found := expiry(seen, rules)
	return len(found.toMark)+len(found.remove) > 0
}

func expiry(seen observed, rules retentionRules) cleanup {
	found, newer := cleanup{}, 0
	latest := map[string]bool{}
	for _, one := range newestFirst(seen.instances, v1.BackupCompleted) {
		goes, later := rules.condemns(one, newer, seen)
		inFuture := one.ended.After(seen.now.Add(clockTolerance))
		if !latest[one.cluster] || seen.restoring[one.name] || inFuture {
			goes, later = false, time.Time{}
		}
		if !inFuture {
			latest[one.cluster] = true
			newer++
		}
		switch {
		case goes && one.ready:
			found.remove = append(found.remove, one.name)
		case goes:
			found.toMark = append(found.toMark, one.name)
		case one.isMarked:
			found.toUnmark = append(found.toUnmark, one.name)
		}
		found.next = earlier(found.next, later)
	}
	return found
}

// earlier returns the earlier of two times; zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// newestFirst returns the instances of a phase that are not being deleted, newest first by the API server's creation time. Their end times
// come from the clocks of several operators, and any of these may have been wrong.
func newestFirst(instances []instance, phase v1.BackupPhase) []instance {
	found := []instance{}
	for _, one := range instances {
		if one.phase == phase && !one.deleting {
			found = append(found, one)
		}
	}
	slices.SortFunc(found, func(a, b instance) int {
		return cmp.Or(b.made.Compare(a.made), b.ended.Compare(a.ended), cmp.Compare(b.name, a.name))
	})
	return found
}
