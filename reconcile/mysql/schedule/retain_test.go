package schedule

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

func keepLast(count int32) func(*observed) {
	return func(seen *observed) { seen.schedule.Spec.Retention.KeepLast = &count }
}

func keepFor(span string) func(*observed) {
	return func(seen *observed) { seen.schedule.Spec.Retention.KeepFor = span }
}

func failedHistory(limit int32) func(*observed) {
	return func(seen *observed) { seen.schedule.Spec.FailedHistoryLimit = &limit }
}

// serverAt sets the API server's time; unknown if it is empty.
func serverAt(t *testing.T, now string) func(*observed) {
	t.Helper()
	return func(seen *observed) {
		seen.serverNow = time.Time{}
		if now != "" {
			seen.serverNow = moment(t, now)
		}
	}
}

// nights adds completed backups of these days of June 2026.
func nights(t *testing.T, days ...int) func(*observed) {
	t.Helper()
	return func(seen *observed) {
		for _, day := range days {
			has(t, fmt.Sprintf("2026-06-%02d 03:00", day), v1.BackupCompleted)(seen)
		}
	}
}

// failures adds failed ones.
func failures(t *testing.T, days ...int) func(*observed) {
	t.Helper()
	return func(seen *observed) {
		for _, day := range days {
			has(t, fmt.Sprintf("2026-06-%02d 03:00", day), v1.BackupFailed)(seen)
		}
	}
}

// but changes the instance of a day.
func but(day int, change func(*instance)) func(*observed) {
	return func(seen *observed) {
		for i := range seen.instances {
			if seen.instances[i].scheduled.Day() == day {
				change(&seen.instances[i])
			}
		}
	}
}

func marked(one *instance)         { one.isMarked, one.ready = true, true }
func markedByHalf(one *instance)   { one.isMarked = true }
func deleted(one *instance)        { one.deleting = true }
func endedIn2040(one *instance)    { one.ended = one.ended.AddDate(14, 0, 0) }
func began(one *instance)          { one.began = true }
func ofOtherCluster(one *instance) { one.cluster = "other" }

func TestRetain(t *testing.T) {
	t.Parallel()
	restoring := func(day int) func(*observed) {
		return func(seen *observed) {
			seen.restoring = map[string]bool{fmt.Sprintf("nightly-2026-06-%02d-03-00-00", day): true}
		}
	}
	const now, yearAhead = "2026-06-10 12:00", "2027-06-10 12:00"
	tests := map[string]struct {
		seen observed
		// The days of the instances.
		condemn, spare, remove, forget []int
		next                           string
	}{
		"no retention keeps all":                     {seen: story(t, now, nights(t, 1, 2, 3, 4, 5))},
		"the last three":                             {seen: story(t, now, nights(t, 1, 2, 3, 4, 5), keepLast(3)), condemn: []int{2, 1}},
		"one that is marked is deleted":              {seen: story(t, now, nights(t, 1, 2, 3, 4, 5), keepLast(3), but(1, marked)), condemn: []int{2}, remove: []int{1}},
		"marked without the finalizer is not":        {seen: story(t, now, nights(t, 1, 2), keepLast(1), but(1, markedByHalf)), condemn: []int{1}},
		"one that is being deleted no longer counts": {seen: story(t, now, nights(t, 1, 2, 3, 4, 5), keepLast(3), but(5, deleted)), condemn: []int{1}},
		"nor is it deleted again":                    {seen: story(t, now, nights(t, 1, 2), keepLast(1), but(1, marked), but(1, deleted))},
		"the limit grew: the mark is removed":        {seen: story(t, now, nights(t, 1, 2, 3), keepLast(3), but(1, marked)), spare: []int{1}},
		"the limit was removed: the mark is removed": {seen: story(t, now, nights(t, 1, 2, 3), but(1, marked)), spare: []int{1}},
		"a failed or running instance is no backup":  {seen: story(t, now, nights(t, 1, 2), failures(t, 3, 4), has(t, "2026-06-05 03:00", v1.BackupStarted), keepLast(2))},
		"three days": {
			seen: story(t, now, nights(t, 6, 7, 8, 9), keepFor("72h")), condemn: []int{7, 6}, next: "2026-06-11 04:10:01",
		},
		"the latest stays, however old": {seen: story(t, now, nights(t, 1, 2), keepFor("1h")), condemn: []int{1}},
		"by count and by age: it must be beyond both": {
			seen: story(t, now, nights(t, 5, 6, 7, 8, 9), keepFor("96h"), keepLast(2)), condemn: []int{6, 5}, next: "2026-06-11 04:10:01",
		},
		"few, but old":    {seen: story(t, now, nights(t, 1, 2), keepFor("1h"), keepLast(2))},
		"many, but young": {seen: story(t, now, nights(t, 7, 8, 9), keepFor("240h"), keepLast(1)), next: "2026-06-17 04:10:01"},
		"keepFor is invalid: all stay, failed ones are deleted": {seen: story(t, now, nights(t, 1, 2), failures(t, 3), keepFor("soon"), failedHistory(0)), forget: []int{3}},
		"keepFor backwards": {seen: story(t, now, nights(t, 1, 2), keepFor("-1h"))},
		"a limit of zero":   {seen: story(t, now, nights(t, 1, 2), keepLast(0)), condemn: []int{1}},
		"a cluster is being restored from one": {
			seen: story(t, now, nights(t, 1, 2, 3), keepLast(1), restoring(1)), condemn: []int{2},
		},
		"which was marked before: the mark is removed": {
			seen: story(t, now, nights(t, 1, 2, 3), keepLast(1), restoring(1), but(1, marked)), condemn: []int{2}, spare: []int{1},
		},
		"the schedule had another cluster: its last backup stays": {
			seen: story(t, now, nights(t, 1, 2, 3, 4), keepLast(1), but(1, ofOtherCluster), but(2, ofOtherCluster)), condemn: []int{3, 1},
		},
		"the clock is five days behind: a backup that ended later stays": {
			seen: story(t, "2026-06-05 12:00", nights(t, 1, 2, 3, 4, 5, 6, 7, 8, 9), keepLast(2)), condemn: []int{3, 2, 1},
		},
		"a backup that ended while the clock was years ahead does not count as the latest": {
			seen: story(t, now, nights(t, 7, 8, 9), keepLast(1), but(7, endedIn2040)), condemn: []int{8},
		},
		"nor does it count if it is the latest": {
			seen: story(t, now, nights(t, 7, 8, 9), keepFor("1h"), but(7, endedIn2040)), condemn: []int{8},
		},
		"the only one with a plausible end stays, however old": {
			seen: story(t, now, nights(t, 1, 2), keepFor("1h"), but(2, endedIn2040)),
		},
		"the clock is a year ahead of the API server's: no age counts": {
			seen: story(t, yearAhead, serverAt(t, now), nights(t, 6, 7, 8, 9), keepFor("72h")), next: "2027-06-10 12:10:00",
		},
		"nor if the API server's time is unknown": {
			seen: story(t, now, serverAt(t, ""), nights(t, 6, 7, 8, 9), keepFor("72h")), next: "2026-06-10 12:10:00",
		},
		"nor with a limit by number in addition": {
			seen: story(t, yearAhead, serverAt(t, now), nights(t, 6, 7, 8, 9), keepFor("72h"), keepLast(1)), next: "2027-06-10 12:10:00",
		},
		"they are deleted by number anyway": {
			seen: story(t, yearAhead, serverAt(t, now), nights(t, 6, 7, 8, 9), keepLast(3)), condemn: []int{6},
		},
		"a mark by one clock is removed": {
			seen: story(t, yearAhead, serverAt(t, now), nights(t, 8, 9), keepFor("72h"), but(8, marked)), spare: []int{8}, next: "2027-06-10 12:10:00",
		},
		"ten minutes ahead is acceptable": {
			seen: story(t, now, serverAt(t, "2026-06-10 11:50"), nights(t, 6, 7, 8, 9), keepFor("72h")), condemn: []int{7, 6}, next: "2026-06-11 04:10:01",
		},
		"three failed ones are kept":  {seen: story(t, now, failures(t, 1, 2, 3, 4, 5), nights(t, 6)), forget: []int{2, 1}},
		"or as many as the user sets": {seen: story(t, now, failures(t, 1, 2, 3, 4, 5), failedHistory(1)), forget: []int{4, 3, 2, 1}},
		"or none":                     {seen: story(t, now, failures(t, 1, 2), failedHistory(0)), forget: []int{2, 1}},
		"one that began is marked first: its data is deleted with it": {seen: story(t, now, failures(t, 1, 2, 3), failedHistory(1), but(1, began)), condemn: []int{1}, forget: []int{2}},
		"and then deleted":                                   {seen: story(t, now, failures(t, 1, 2), failedHistory(1), but(1, began), but(1, marked)), forget: []int{1}},
		"but not with half a mark":                           {seen: story(t, now, failures(t, 1, 2), failedHistory(1), but(1, began), but(1, markedByHalf)), condemn: []int{1}},
		"the limit of failed ones grew: the mark is removed": {seen: story(t, now, failures(t, 1, 2), failedHistory(2), but(1, began), but(1, marked)), spare: []int{1}},
		"a suspended schedule still applies its retention": {
			seen: story(t, now, nights(t, 1, 2), keepLast(1), func(seen *observed) { seen.schedule.Spec.Suspend = true }), condemn: []int{1},
		},
		"so does one with an invalid time": {
			seen: story(t, now, nights(t, 1, 2), keepLast(1), func(seen *observed) { seen.problem = &report.Problem{} }), condemn: []int{1},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := retain(test.seen)
			same(t, days(found.toMark), days(named(test.condemn)))
			same(t, days(found.toUnmark), days(named(test.spare)))
			same(t, days(found.remove), days(named(test.remove)))
			same(t, days(found.toDeleteFailed), days(named(test.forget)))
			next := ""
			if !found.next.IsZero() {
				next = found.next.UTC().Format("2006-01-02 15:04:05")
			}
			same(t, next, test.next)
			if !found.next.IsZero() && len(found.toMark) == 0 {
				test.seen.now, test.seen.serverNow = found.next, found.next
				same(t, retain(test.seen).isEmpty(), false)
			}
		})
	}
}

func named(days []int) []string {
	names := []string{}
	for _, day := range days {
		names = append(names, fmt.Sprintf("nightly-2026-06-%02d-03-00-00", day))
	}
	return names
}

func days(names []string) string {
	return strings.Join(names, ", ")
}

// TestRetentionKeepsTheLastGoodBackup tries random states and rules of retention. The latest completed backup of each cluster is neither
// marked nor deleted, nor is a backup that a cluster is restored from. No backup is deleted without a mark.
func TestRetentionKeepsTheLastGoodBackup(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	phases := []v1.BackupPhase{"", v1.BackupScheduled, v1.BackupStarted, v1.BackupFailed, v1.BackupCompleted, v1.BackupCompleted, v1.BackupCompleted}
	for range 20000 {
		seen := story(t, "2026-06-10 12:00")
		if random.IntN(3) > 0 {
			keepLast(int32(random.IntN(4)))(&seen)
		}
		if random.IntN(3) > 0 {
			keepFor([]string{"1s", "24h", "72h", "1000h", "nonsense"}[random.IntN(5)])(&seen)
		}
		seen.restoring = map[string]bool{}
		latest := map[string]instance{}
		for number := range random.IntN(8) {
			one := instance{
				name: fmt.Sprint(number), cluster: []string{"a", "b"}[random.IntN(2)], phase: phases[random.IntN(len(phases))],
				ended: seen.now.Add(-time.Duration(random.IntN(100)) * time.Hour), deleting: random.IntN(5) == 0, isMarked: random.IntN(3) == 0,
				began: random.IntN(2) == 0,
			}
			one.ready = one.isMarked && random.IntN(2) == 0
			if random.IntN(6) == 0 {
				seen.restoring[one.name] = true
			}
			before, known := latest[one.cluster]
			if one.phase == v1.BackupCompleted && !one.deleting && (!known || one.ended.After(before.ended) || one.ended.Equal(before.ended) && one.name > before.name) {
				latest[one.cluster] = one
			}
			seen.instances = append(seen.instances, one)
		}
		found := retain(seen)
		gone := slices.Concat(found.toMark, found.remove)
		for _, one := range latest {
			if slices.Contains(gone, one.name) || slices.Contains(found.toDeleteFailed, one.name) {
				t.Fatalf("the latest backup of a cluster would be deleted: %+v of %+v", one, seen.instances)
			}
		}
		for _, one := range seen.instances {
			isGood := one.phase == v1.BackupCompleted && !one.deleting
			isLeft := one.phase == v1.BackupFailed && !one.deleting && one.began && !slices.Contains(found.remove, one.name)
			if slices.Contains(gone, one.name) && !isLeft && (!isGood || seen.restoring[one.name]) {
				t.Fatalf("it must stay: %+v", one)
			}
			if slices.Contains(found.remove, one.name) && !one.ready {
				t.Fatalf("deleted without a mark: %+v", one)
			}
			if slices.Contains(found.toDeleteFailed, one.name) && one.phase != v1.BackupFailed {
				t.Fatalf("not failed: %+v", one)
			}
		}
	}
}
