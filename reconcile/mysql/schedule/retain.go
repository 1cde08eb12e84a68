package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// defaultFailedHistory is how many failed instances are kept.
const defaultFailedHistory = 3

// sweep is what is to be cleared away: instances by name, in order.
type sweep struct {
	// condemn are instances to be marked as expired, so that their data goes with them: backups and, of failed ones, what their attempts have
	// left.
	condemn []string
	// spare are backups that are marked although they are to be kept.
	spare []string
	// remove are marked backups to be deleted, and forget failed instances, marked ones or such as never began.
	remove, forget []string
	// next is when age alone will condemn the next one; zero for never.
	next time.Time
}

func (s sweep) isEmpty() bool {
	return len(s.condemn)+len(s.spare)+len(s.remove)+len(s.forget) == 0
}

// keeping is a schedule's retention. The zero values set no limit.
type keeping struct {
	last int
	age  time.Duration
}

// readKeeping reads spec.retention; with a problem nothing is ever deleted.
func readKeeping(retention v1.BackupRetention) (keeping, *problem) {
	read := keeping{}
	if retention.KeepLast != nil {
		read.last = max(int(*retention.KeepLast), 1)
	}
	if retention.KeepFor == "" {
		return read, nil
	}
	age, err := time.ParseDuration(retention.KeepFor)
	if err != nil || age <= 0 {
		return keeping{}, &problem{reasonInvalidRetention, fmt.Sprintf("spec.retention.keepFor: %q is no time span; no backup is deleted until it is: write hours and minutes, such as 720h or 36h30m", retention.KeepFor)}
	}
	read.age = age
	return read, nil
}

// clocksAgree says whether the operator's clock and the API server's tell the same time, as far as clocks may differ.
func clocksAgree(seen look) bool {
	return !seen.serverNow.IsZero() && seen.now.Sub(seen.serverNow).Abs() <= clockTolerance
}

// unkept says why backups stay that spec.retention would have deleted; nil if none does.
func unkept(seen look) *problem {
	const kept = "spec.retention.keepFor: no backup is deleted for its age"
	rules, wrong := readKeeping(seen.schedule.Spec.Retention)
	switch {
	case wrong != nil:
		return wrong
	case rules.age == 0 || clocksAgree(seen):
		return nil
	case seen.serverNow.IsZero():
		return &problem{reasonClocksDiffer, kept + "; the API server's answers do not say what time it is: let their header Date pass where a proxy is between"}
	}
	differ := fmt.Sprintf("; the operator's clock and the API server's differ by more than %s: set right the one that is wrong", clockTolerance)
	return &problem{reasonClocksDiffer, kept + differ}
}

// condemns says whether a completed backup is to go, of which so many are newer, and when its age alone will say so, or is to be looked at
// again. Its end and the present are told by clocks that may differ by a little: no backup goes early for that. No age is believed on the
// word of one clock: where the API server's tells another time, or none, no backup goes for its age.
func (k keeping) condemns(one instance, newer int, seen look) (bool, time.Time) {
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

// retain decides what to clear away. Of each cluster the latest completed backup always stays: a schedule that was given another cluster
// must not delete the last backup of the one before. So does a backup that a cluster is being made from, and one that ended in the future:
// either the clock was ahead then, and newer ones must not be measured by it, or it is behind now, and it is newer than it seems.
func retain(seen look) sweep {
	found := sweep{}
	spec := seen.schedule.Spec
	if rules, wrong := readKeeping(spec.Retention); wrong == nil {
		found = expiry(seen, rules)
	}
	limit := defaultFailedHistory
	if spec.FailedHistoryLimit != nil {
		limit = max(int(*spec.FailedHistoryLimit), 0)
	}
	failed := newestFirst(seen.instances, v1.BackupFailed)
	for i, one := range failed {
		switch {
		case i < limit && one.condemned:
			found.spare = append(found.spare, one.name)
		case i < limit:
		case one.ready || !one.began:
			found.forget = append(found.forget, one.name)
		default:
			found.condemn = append(found.condemn, one.name)
		}
	}
	return found
}

// expires says whether a completed backup would go if no cluster were being made from any.
func expires(seen look) bool {
	seen.restoring = nil
	rules, wrong := readKeeping(seen.schedule.Spec.Retention)
	if wrong != nil {
		return false
	}
	found := expiry(seen, rules)
	return len(found.condemn)+len(found.remove) > 0
}

func expiry(seen look, rules keeping) sweep {
	found, newer := sweep{}, 0
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
			found.condemn = append(found.condemn, one.name)
		case one.condemned:
			found.spare = append(found.spare, one.name)
		}
		found.next = earlier(found.next, later)
	}
	return found
}

// earlier returns the earlier of two times, of which zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// newestFirst returns the instances of a phase that are not on their way out, those that were made last first. The API server's clock says
// when that was: the ends come from the clocks of several operators, any of which may have been wrong.
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
