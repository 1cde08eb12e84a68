package schedule

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// story is a schedule "nightly" at 03:00 UTC, created on 1 June 2026 at noon, whose cluster exists. All clocks agree.
func story(t *testing.T, now string, changes ...func(*observed)) observed {
	t.Helper()
	seen := observed{now: moment(t, now), serverNow: moment(t, now), clusterFound: true, times: reads(t, "0 3 * * *", "")}
	seen.schedule.Name, seen.schedule.Namespace = "nightly", "shop"
	seen.schedule.CreationTimestamp = metav1.NewTime(moment(t, "2026-06-01 12:00"))
	seen.schedule.Spec.Cluster, seen.schedule.Spec.Time = "db", "0 3 * * *"
	for _, change := range changes {
		change(&seen)
	}
	return seen
}

// lastAt sets the last time in the status.
func lastAt(t *testing.T, at string) func(*observed) {
	t.Helper()
	return func(seen *observed) { seen.schedule.Status.LastScheduleTime = momentOf(moment(t, at)) }
}

// has adds the instance for a time.
func has(t *testing.T, at string, phase v1.BackupPhase, changes ...func(*instance)) func(*observed) {
	t.Helper()
	made := moment(t, at)
	one := instance{name: instanceName("nightly", made), cluster: "db", phase: phase, scheduled: made, ended: made.Add(time.Hour)}
	for _, change := range changes {
		change(&one)
	}
	return func(seen *observed) { seen.instances = append(seen.instances, one) }
}

func deadline(seconds int64) func(*observed) {
	return func(seen *observed) { seen.schedule.Spec.StartingDeadlineSeconds = &seconds }
}

func policy(which v1.ConcurrencyPolicy) func(*observed) {
	return func(seen *observed) { seen.schedule.Spec.ConcurrencyPolicy = which }
}

func TestDecide(t *testing.T) {
	t.Parallel()
	const first, second = "nightly-2026-06-02-03-00-00", "nightly-2026-06-03-03-00-00"
	suspended := func(seen *observed) { seen.schedule.Spec.Suspend = true }
	noCluster := func(seen *observed) { seen.clusterFound = false }
	tests := map[string]struct {
		seen observed
		// makes is the created instance, next is the next time.
		makes, next string
		replaces    []string
		hold        hold
		missed      int
	}{
		"just created: nothing before its first time": {
			seen: story(t, "2026-06-01 12:00"), next: "2026-06-02 03:00",
		},
		"a second before the time": {
			seen: story(t, "2026-06-02 02:59:59"), next: "2026-06-02 03:00",
		},
		"the time has come": {
			seen: story(t, "2026-06-02 03:00"), makes: first, next: "2026-06-03 03:00",
		},
		"and the instance was created": {
			seen: story(t, "2026-06-02 03:00:01", lastAt(t, "2026-06-02 03:00")), next: "2026-06-03 03:00",
		},
		"the operator crashed after it created the instance and before it wrote the status": {
			seen: story(t, "2026-06-02 03:00:20", has(t, "2026-06-02 03:00", v1.BackupStarted)), next: "2026-06-03 03:00",
		},
		"it is in the status, and a user deleted it: it is not created again": {
			seen: story(t, "2026-06-02 20:00", lastAt(t, "2026-06-02 03:00")), next: "2026-06-03 03:00",
		},
		"the operator was away for a week: only the latest gets a backup": {
			seen:  story(t, "2026-06-09 14:00", lastAt(t, "2026-06-02 03:00")),
			makes: "nightly-2026-06-09-03-00-00", next: "2026-06-10 03:00", missed: 6,
		},
		"it was away for four years": {
			seen:  story(t, "2030-06-09 14:00", lastAt(t, "2026-06-02 03:00")),
			makes: "nightly-2030-06-09-03-00-00", next: "2030-06-10 03:00", missed: maxMissed - 1,
		},
		"but not beyond the deadline": {
			seen: story(t, "2026-06-09 14:00", lastAt(t, "2026-06-08 03:00"), deadline(3600)), next: "2026-06-10 03:00", hold: holdTooLate, missed: 1,
		},
		"the last second of the deadline": {
			seen:  story(t, "2026-06-09 04:00", lastAt(t, "2026-06-08 03:00"), deadline(3600)),
			makes: "nightly-2026-06-09-03-00-00", next: "2026-06-10 03:00",
		},
		"suspended": {
			seen: story(t, "2026-06-09 14:00", lastAt(t, "2026-06-02 03:00"), suspended), hold: holdSuspended,
		},
		"the last backup is in progress, and the default policy is Forbid": {
			seen: story(t, "2026-06-03 03:00", has(t, "2026-06-02 03:00", v1.BackupStarted)), next: "2026-06-04 03:00", hold: holdUnderWay, missed: 1,
		},
		"it is over an hour later: now the time gets its backup": {
			seen:  story(t, "2026-06-03 04:00", has(t, "2026-06-02 03:00", v1.BackupCompleted), policy(v1.ForbidConcurrent)),
			makes: second, next: "2026-06-04 03:00",
		},
		"one without a status is in progress": {
			seen: story(t, "2026-06-03 03:00", has(t, "2026-06-02 03:00", "")), next: "2026-06-04 03:00", hold: holdUnderWay, missed: 1,
		},
		"one that is being deleted is not": {
			seen:  story(t, "2026-06-03 03:00", has(t, "2026-06-02 03:00", v1.BackupStarted, func(one *instance) { one.deleting = true })),
			makes: second, next: "2026-06-04 03:00",
		},
		"Allow creates both": {
			seen:  story(t, "2026-06-03 03:00", has(t, "2026-06-02 03:00", v1.BackupStarted), policy(v1.AllowConcurrent)),
			makes: second, next: "2026-06-04 03:00",
		},
		"Replace ends the one in progress": {
			seen:  story(t, "2026-06-03 03:00", has(t, "2026-06-02 03:00", v1.BackupStarted), policy(v1.ReplaceConcurrent)),
			makes: second, next: "2026-06-04 03:00", replaces: []string{first},
		},
		"which is marked only once": {
			seen:  story(t, "2026-06-03 03:00", has(t, "2026-06-02 03:00", v1.BackupStarted, func(one *instance) { one.replaced = true }), policy(v1.ReplaceConcurrent)),
			makes: second, next: "2026-06-04 03:00",
		},
		"there is no cluster: times pass": {
			seen: story(t, "2026-06-04 03:00", noCluster), next: "2026-06-05 03:00", hold: holdNoCluster, missed: 3,
		},
		"when there is one, the latest time gets its backup": {
			seen: story(t, "2026-06-03 09:00"), makes: second, next: "2026-06-04 03:00", missed: 1,
		},
		"the clock was set back by seconds: a time with a backup does not come again": {
			seen: story(t, "2026-06-02 02:59:57", lastAt(t, "2026-06-02 03:00")), next: "2026-06-03 03:00",
		},
		"the operator's clock is behind that of the API server, which set the creation time": {
			seen: story(t, "2026-06-01 11:58"), next: "2026-06-02 03:00",
		},
		"the clock was years ahead when the last was created: the schedule does not wait for years": {
			seen: story(t, "2026-06-05 02:00", has(t, "2031-01-01 03:00", v1.BackupCompleted), has(t, "2026-06-04 03:00", v1.BackupCompleted), lastAt(t, "2031-01-01 03:00")),
			next: "2026-06-05 03:00",
		},
		"and continues at the next time": {
			seen:  story(t, "2026-06-05 03:00", has(t, "2031-01-01 03:00", v1.BackupCompleted), has(t, "2026-06-04 03:00", v1.BackupCompleted), lastAt(t, "2031-01-01 03:00")),
			makes: "nightly-2026-06-05-03-00-00", next: "2026-06-06 03:00",
		},
		"the clock was years ahead when the schedule was created": {
			seen: story(t, "2020-01-05 02:00"), next: "2020-01-05 03:00",
		},
		"the announced time comes": {
			seen:  story(t, "2020-01-05 03:00", func(seen *observed) { seen.schedule.Status.NextScheduleTime = momentOf(moment(t, "2020-01-05 03:00")) }),
			makes: "nightly-2020-01-05-03-00-00", next: "2020-01-06 03:00",
		},
		"a schedule that was created again, after backups of its predecessor": {
			seen: story(t, "2026-06-01 14:00", has(t, "2026-05-20 03:00", v1.BackupCompleted), lastAt(t, "2026-05-20 03:00")), next: "2026-06-02 03:00",
		},
		"the times are invalid": {
			seen: story(t, "2026-06-05 02:00", func(seen *observed) { seen.problem = &report.Problem{Reason: reasonInvalidTime} }), hold: holdProblem,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := decide(test.seen)
			made := ""
			if !found.make.IsZero() {
				made = instanceName("nightly", found.make)
			}
			same(t, made, test.makes)
			same(t, found.hold, test.hold)
			same(t, found.missed, test.missed)
			same(t, len(found.replace), len(test.replaces))
			if len(found.replace) == len(test.replaces) && len(test.replaces) > 0 {
				same(t, found.replace, test.replaces)
			}
			next := ""
			if !found.next.IsZero() {
				next = found.next.UTC().Format("2006-01-02 15:04")
			}
			same(t, next, test.next)
		})
	}
}

func TestNamesAreOfTimesInUTC(t *testing.T) {
	t.Parallel()
	first, second := moment(t, "2026-10-25 02:30:00 +0200"), moment(t, "2026-10-25 02:30:00 +0100")
	same(t, instanceName("n", first), "n-2026-10-25-00-30-00")
	same(t, instanceName("n", second), "n-2026-10-25-01-30-00")
	same(t, scheduledBy("n", instanceName("n", second)).Equal(second), true)
	for _, foreign := range []string{"n", "n-", "n-by-hand", "other-2026-10-25-01-30-00", "n-2026-13-25-01-30-00", "n-2026-10-25-01-30-00-2"} {
		same(t, scheduledBy("n", foreign).IsZero(), true)
	}
}

func TestAgain(t *testing.T) {
	t.Parallel()
	now := moment(t, "2026-06-01 12:00")
	same(t, requeueAfter(now, time.Time{}, time.Time{}), time.Duration(0))
	same(t, requeueAfter(now, now.Add(time.Minute), time.Time{}), time.Minute)
	same(t, requeueAfter(now, now.Add(3*time.Minute), now.Add(2*time.Minute)), 2*time.Minute)
	same(t, requeueAfter(now, now.AddDate(0, 0, 1)), longestWait)
	same(t, requeueAfter(now, now.Add(-time.Hour)), time.Millisecond)
}

// server simulates Kubernetes: the instances by name, and the schedule. Instances older than three days were deleted.
type server struct {
	t         *testing.T
	seen      observed
	instances map[string]time.Time
	refused   int
}

// pass is one pass of an operator by its clock. The operator may crash before it writes the status.
func (s *server) pass(now time.Time, dies bool) decision {
	s.t.Helper()
	s.seen.now = now
	s.seen.instances = nil
	for name, at := range s.instances {
		if now.Sub(at) > 3*24*time.Hour {
			continue
		}
		s.seen.instances = append(s.seen.instances, instance{name: name, cluster: "db", phase: v1.BackupCompleted, scheduled: at, ended: at})
	}
	found, did := decide(s.seen), passResult{}
	if !found.make.IsZero() {
		did.at = found.make
		name := instanceName("nightly", found.make)
		if _, exists := s.instances[name]; exists {
			s.refused++
		}
		s.instances[name] = found.make
	}
	if !dies {
		s.seen.schedule.Status = statusOf(s.seen, found, did, nil)
	}
	return found
}

// TestOneInstanceForEachTime simulates a year in which operators make passes at random times, crash before they write the status, and take
// turns with clocks that differ. Each time has one instance. None is created too early, or for a moment that is no time.
func TestOneInstanceForEachTime(t *testing.T) {
	t.Parallel()
	for seed, zone := range []string{"UTC", "Europe/Berlin", "Africa/Cairo", "Australia/Lord_Howe", "America/New_York"} {
		for _, expression := range []string{"30 2 * * *", "0 */6 * * *", "0 4 * * 5", "@every 7h"} {
			t.Run(zone+" "+expression, func(t *testing.T) {
				t.Parallel()
				random := rand.New(rand.NewPCG(uint64(seed), 7))
				s := &server{t: t, seen: story(t, "2026-01-01 00:00"), instances: map[string]time.Time{}}
				began := moment(t, "2026-01-01 00:00")
				s.seen.schedule.CreationTimestamp = metav1.NewTime(began)
				s.seen.times = reads(t, expression, zone)
				wanted := []time.Time{}
				for at := s.seen.times.next(began, began); at.Before(began.AddDate(1, 0, 0)); at = s.seen.times.next(at, at) {
					wanted = append(wanted, at)
				}
				lives(t, s, wanted, random)
			})
		}
	}
}

func lives(t *testing.T, s *server, wanted []time.Time, random *rand.Rand) {
	t.Helper()
	for _, at := range wanted {
		// Some passes before the time, one second before, at it, a second after, and some later; none so late that the next time has
		// passed.
		for _, offset := range []time.Duration{-time.Duration(random.IntN(300)) * time.Minute, -time.Second, 0, time.Second, time.Duration(random.IntN(5)) * time.Minute} {
			skew := time.Duration(random.IntN(3)-1) * time.Duration(random.IntN(30)) * time.Second
			now := at.Add(offset + skew)
			found := s.pass(now, random.IntN(3) == 0)
			if found.make.After(now) {
				t.Fatalf("at %s an instance was created for %s", now, found.make)
			}
			if found.next.IsZero() || !found.next.After(now) {
				t.Fatalf("at %s the next time is %s", now, found.next)
			}
		}
		s.pass(at.Add(30*time.Minute), false)
		if _, exists := s.instances[instanceName("nightly", at)]; !exists {
			t.Fatalf("there is no instance for %s", at)
		}
	}
	if len(s.instances) != len(wanted) || s.refused > 0 {
		t.Errorf("%d instances for %d times; %d were created twice", len(s.instances), len(wanted), s.refused)
	}
}

// TestAClockGoneWild makes clocks jump by years, both ways. A day after they are right again, there must be a backup of that day.
func TestAClockGoneWild(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for round := range 200 {
		s := &server{t: t, seen: story(t, "2026-06-01 12:00"), instances: map[string]time.Time{}}
		for range 1 + random.IntN(8) {
			wild := moment(t, "2026-06-01 12:00").Add(time.Duration(random.Int64N(int64(20*365*24*time.Hour))) - 10*365*24*time.Hour)
			for found, looks := s.pass(wild, random.IntN(2) == 0), random.IntN(4); looks > 0; looks-- {
				found = s.pass(found.next, random.IntN(2) == 0)
			}
		}
		right := moment(t, "2026-07-01 12:00")
		for range 3 {
			if found := s.pass(right, false); !found.make.IsZero() {
				continue
			} else if right = found.next; right.After(moment(t, "2026-07-02 03:00")) {
				break
			}
		}
		if _, exists := s.instances["nightly-2026-07-02-03-00-00"]; !exists {
			t.Fatalf("round %d: there is no backup of the next night: %s", round, fmt.Sprint(s.instances))
		}
	}
}
