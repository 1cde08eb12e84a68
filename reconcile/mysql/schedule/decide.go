package schedule

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

const (
	// clockTolerance is how far in the future a recorded time may be and still be used. With a time further ahead, the schedule would make
	// no backups until then.
	clockTolerance = transfer.ClockTolerance
	// maxMissed limits how many missed times are counted.
	maxMissed = 100
	// longestWait is the longest requeue time. Timers do not use the clock of the time of day, so they do not notice when that clock is
	// changed. Such a pass sends no request to the API server.
	longestWait = time.Hour
)

// observed is what a pass observed of a schedule, as plain values.
type observed struct {
	now time.Time
	// serverNow is the same moment by the API server's clock; zero if it is unknown.
	serverNow time.Time
	schedule  v1.MySQLBackupSchedule
	// times are the schedule's times; invalid with a problem.
	times   calendar
	problem *report.Problem
	// clusterFound means that the cluster exists and is not being deleted.
	clusterFound bool
	// instances are the schedule's own instances, in no particular order.
	instances []instance
	// restoring are the names of backups that a cluster is restored from, or will be.
	restoring map[string]bool
}

// instance is what the decisions need of one of the schedule's instances.
type instance struct {
	name, cluster string
	phase         v1.BackupPhase
	// reason and message come from its Ready condition.
	reason, message string
	// scheduled is the time in its name, for which it was created; zero if the name contains none.
	scheduled time.Time
	// ended is when it completed or failed, by the operator's clock, but never before made; made, if it is unknown. made is when the API
	// server created it, by its own clock.
	ended, made time.Time
	// began means that it has a location at the destination, where there may be data.
	began bool
	// deleting means that it is being deleted.
	deleting bool
	// isMarked means that it is marked as expired. ready means that its data will be deleted with it. For that, the mark of another
	// schedule with the same name does not count.
	isMarked, ready bool
	// replaced means that the next backup replaces it.
	replaced bool
}

// isActive reports whether the backup is in progress or will start.
func (i instance) isActive() bool {
	return !i.deleting && i.phase != v1.BackupCompleted && i.phase != v1.BackupFailed
}

// hold is why the schedule makes no backup although a time has come.
type hold string

const (
	holdNothing hold = ""
	// holdSuspended: the user suspended the schedule.
	holdSuspended hold = "suspended"
	// holdProblem: the times are unknown.
	holdProblem hold = "problem"
	// holdNoCluster: the cluster does not exist. Instances would only wait, and then fail.
	holdNoCluster hold = "no cluster"
	// holdUnderWay: another backup of the schedule is not over, and the policy is Forbid.
	holdUnderWay hold = "under way"
	// holdTooLate: startingDeadlineSeconds have passed.
	holdTooLate hold = "too late"
)

// decision is the decision about a schedule's times.
type decision struct {
	// make is the time to create an instance for; zero for none. It is the latest time that has come: the schedule makes no backups for
	// earlier ones.
	make time.Time
	// replace names the instances to end first.
	replace []string
	// due is the latest time without an instance. hold is why it gets none.
	due  time.Time
	hold hold
	// last is the latest known time with an instance; zero for none.
	last time.Time
	// missed is how many times passed without an instance since last, at most maxMissed. The instance that this pass makes does not count.
	missed int
	// next is the next time; zero for none.
	next time.Time
}

// decide follows the rules of Kubernetes' CronJob (Kubernetes documentation, "CronJob"). Of the times that passed without an instance, the
// latest gets one, if it is not later than startingDeadlineSeconds. Times also pass while the schedule is suspended. Unlike CronJob, decide
// takes the same few steps for any number of passed times.
func decide(seen observed) decision {
	spec, status := seen.schedule.Spec, seen.schedule.Status
	found := decision{last: lastMade(seen), missed: int(status.Missed)}
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

// whyNot returns what prevents a backup for a time that has come.
func whyNot(seen observed, due time.Time) hold {
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

// beginning returns the moment after which to look for the first time: the time of the latest instance, but not before the creation of the
// schedule.
func beginning(seen observed) time.Time {
	believed := seen.now.Add(clockTolerance)
	made := seen.schedule.CreationTimestamp.Time
	if last := lastMade(seen); !last.After(believed) && last.After(made) {
		return last
	}
	if !made.After(believed) {
		return made
	}
	// The clock was ahead when the schedule was created. The schedule must keep the time that it has announced since.
	if announced := timeOf(seen.schedule.Status.NextScheduleTime); !announced.IsZero() && !announced.After(seen.now) {
		return seen.times.justBefore(announced)
	}
	return seen.now
}

// lastMade returns the latest time for which an instance was created. The names of the instances count as well, in case the operator
// crashed before it wrote the status, or the status was lost. A time from a clock that was far ahead counts only if there is no other.
func lastMade(seen observed) time.Time {
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

// requeueAfter returns the requeue time until work is due that no change of an object reports; zero for none.
func requeueAfter(now time.Time, moments ...time.Time) time.Duration {
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

// namesOf returns the names of the instances for which is returns true, in order.
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

// instanceName is the name of the instance for a time. It is in UTC: when clocks are set back, most zones show an hour twice, and two
// backups need two names. The same time always gives the same name. So there is exactly one instance for each time, whoever creates it and
// however often.
func instanceName(schedule string, at time.Time) string {
	return schedule + "-" + at.UTC().Format(nameLayout)
}

const nameLayout = "2006-01-02-15-04-05"

// scheduledBy is the inverse of instanceName; zero for a name of another form.
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
