package schedule

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

const (
	// clockTolerance is how far in the future a time that is on record may be to be believed; to wait for one that is further ahead would
	// be to make no backups until then.
	clockTolerance = transfer.ClockTolerance
	// maxMissed is how far missed times are counted.
	maxMissed = 100
	// longestWait is how long nobody looks at a schedule whose time has not come. Timers run by another clock than the one that tells the
	// time of day, so they do not notice that it was set. Such a look asks the API server nothing.
	longestWait = time.Hour
)

// look is what a pass sees of a schedule: plain values.
type look struct {
	now time.Time
	// serverNow is the same moment by the API server's clock; zero where it has not told.
	serverNow time.Time
	schedule  v1.MySQLBackupSchedule
	// times is when the schedule's times come; of no use with a problem.
	times   calendar
	problem *problem
	// clusterFound says that the cluster exists and is not about to go.
	clusterFound bool
	// instances are the schedule's own, in no particular order.
	instances []instance
	// restoring are the names of backups that a cluster is being made from, or is about to be.
	restoring map[string]bool
}

// instance is what matters of one of the schedule's instances.
type instance struct {
	name, cluster string
	phase         v1.BackupPhase
	// reason and message are of its Ready condition.
	reason, message string
	// scheduled is the time it was made for, by its name; zero if its name does not tell.
	scheduled time.Time
	// ended is when it was complete or had failed, by the operator's clock, but never before made; made, if it does not say. made is when
	// the API server made it, by its own clock.
	ended, made time.Time
	// began says that it has a place at the destination, where something of it may be.
	began bool
	// deleting says that it is on its way out.
	deleting bool
	// condemned says that it is marked as expired, ready that its data will go with it: a mark by another schedule of that name does not do.
	condemned, ready bool
	// replaced says that it was told to give way to another one.
	replaced bool
}

// isActive says that the backup is under way, or is about to be.
func (i instance) isActive() bool {
	return !i.deleting && i.phase != v1.BackupCompleted && i.phase != v1.BackupFailed
}

// hold is why no backup is made although a time has come.
type hold string

const (
	holdNothing hold = ""
	// holdSuspended: the user wants none.
	holdSuspended hold = "suspended"
	// holdProblem: nobody knows the times.
	holdProblem hold = "problem"
	// holdNoCluster: there is nothing to back up. Instances would only wait, and then fail.
	holdNoCluster hold = "no cluster"
	// holdUnderWay: another backup of the schedule is not over, and the policy is Forbid.
	holdUnderWay hold = "under way"
	// holdTooLate: startingDeadlineSeconds are over.
	holdTooLate hold = "too late"
)

// turn is what a schedule's times ask for.
type turn struct {
	// make is the time to make an instance for; zero for none. It is the latest that has come: earlier ones are never made up for.
	make time.Time
	// replace names the instances to end first.
	replace []string
	// due is the latest time without an instance, and hold why it gets none.
	due  time.Time
	hold hold
	// last is the latest time with an instance, as far as anybody knows; zero for none.
	last time.Time
	// missed is how many times came and went without an instance since last, at most maxMissed. The one made now is not among them.
	missed int
	// next is the next time to come; zero for none.
	next time.Time
}

// decide goes by the rules of Kubernetes' CronJob (Kubernetes documentation, "CronJob"): of the times that passed without an instance the
// latest is made up for, if it is not later than startingDeadlineSeconds, and times pass also while the schedule is suspended. Unlike
// CronJob it takes the same few steps however many times passed.
func decide(seen look) turn {
	spec, status := seen.schedule.Spec, seen.schedule.Status
	found := turn{last: lastMade(seen), missed: int(status.Missed)}
	switch {
	case seen.problem != nil:
		found.hold = holdProblem
		return found
	case spec.Suspend:
		found.hold = holdSuspended
		return found
	}
	after := beginning(seen)
	found.next = seen.times.next(after, seen.now)
	found.missed = seen.times.count(after, seen.now, maxMissed)
	due, passed := seen.times.latest(after, seen.now)
	if !passed {
		return found
	}
	found.due, found.hold = due, whyNot(seen, due)
	if found.hold != holdNothing {
		return found
	}
	found.make, found.missed = due, found.missed-1
	if spec.ConcurrencyPolicy == v1.ReplaceConcurrent {
		found.replace = namesOf(seen.instances, func(one instance) bool { return one.isActive() && !one.replaced })
	}
	return found
}

// whyNot says what is in the way of a backup for a time that has come.
func whyNot(seen look, due time.Time) hold {
	spec := seen.schedule.Spec
	forbids := spec.ConcurrencyPolicy == v1.ForbidConcurrent || spec.ConcurrencyPolicy == ""
	deadline := spec.StartingDeadlineSeconds
	switch {
	case !seen.clusterFound:
		return holdNoCluster
	case deadline != nil && seen.now.Sub(due) > time.Duration(*deadline)*time.Second:
		return holdTooLate
	case forbids && slices.ContainsFunc(seen.instances, instance.isActive):
		return holdUnderWay
	}
	return holdNothing
}

// beginning returns the time that the first time to look for comes after: that of the latest instance, but not before the schedule was
// made.
func beginning(seen look) time.Time {
	believed := seen.now.Add(clockTolerance)
	made := seen.schedule.CreationTimestamp.Time
	if last := lastMade(seen); !last.After(believed) && last.After(made) {
		return last
	}
	if !made.After(believed) {
		return made
	}
	// The clock was ahead when the schedule was made. What was announced since is to be kept.
	if announced := timeOf(seen.schedule.Status.NextScheduleTime); !announced.IsZero() && !announced.After(seen.now) {
		return seen.times.justBefore(announced)
	}
	return seen.now
}

// lastMade returns the latest time for which an instance was made. The instances themselves say so as well, which counts when the operator
// died before it could write it down, or when the status was lost. What was made while a clock was far ahead counts only if there is
// nothing else.
func lastMade(seen look) time.Time {
	believed := seen.now.Add(clockTolerance)
	noted := timeOf(seen.schedule.Status.LastScheduleTime)
	last := noted
	if noted.After(believed) {
		last = time.Time{}
	}
	for _, one := range seen.instances {
		if !one.scheduled.After(believed) {
			last = later(last, one.scheduled)
		}
	}
	if last.IsZero() {
		return noted
	}
	return last
}

// again returns how long to wait until something is to be done that no change of an object tells; zero for ever.
func again(now time.Time, moments ...time.Time) time.Duration {
	wait := time.Duration(0)
	for _, moment := range moments {
		if moment.IsZero() {
			continue
		}
		until := max(moment.Sub(now), time.Millisecond)
		if wait == 0 || until < wait {
			wait = until
		}
	}
	return min(wait, longestWait)
}

// namesOf returns the names of the instances that are so, in order.
func namesOf(instances []instance, is func(instance) bool) []string {
	names := []string{}
	for _, one := range instances {
		if is(one) {
			names = append(names, one.name)
		}
	}
	slices.Sort(names)
	return names
}

func timeOf(moment *metav1.Time) time.Time {
	if moment == nil {
		return time.Time{}
	}
	return moment.Time
}

// instanceName is the name of the instance for a time. It is in UTC: the clocks of most zones show an hour twice when they are set back,
// and two backups need two names. The same time always gives the same name, which makes it exactly one instance for each, whoever makes
// it and however often.
func instanceName(schedule string, at time.Time) string {
	return schedule + "-" + at.UTC().Format(nameLayout)
}

const nameLayout = "2006-01-02-15-04-05"

// scheduledBy is the other way round; zero for a name of another form.
func scheduledBy(schedule, name string) time.Time {
	if len(name) != len(schedule)+1+len(nameLayout) {
		return time.Time{}
	}
	at, err := time.Parse(nameLayout, name[len(schedule)+1:])
	if err != nil {
		return time.Time{}
	}
	return at
}
