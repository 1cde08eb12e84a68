package integration

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/reconcile"
	mysqlbackupschedule "github.com/mysql-operator/mysql-operator/reconcile/mysql/schedule"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/schema"
	mysqlv1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

func backupSchedules() schema.Kind { return mysqlKind("MySQLBackupSchedule", "mysqlbackupschedules") }

// scheduleRules are what the manifests grant an operator in a namespace.
func scheduleRules() []rbacv1.PolicyRule {
	return rulesOf(mysqlbackupschedule.Controller(backupSchedules()))
}

// diary is a namespace with the schedule "nightly", for every day at 03:00 UTC. The tests set its operator's clock, and do the work of
// those who make the backups.
type diary struct {
	*depot
	clock *handClock
	// server is the API server's clock, as its answers tell it to operators. It goes with theirs.
	server *handClock
	// first is the schedule's first time: the first 03:00 after it was made.
	first time.Time

	mu        sync.Mutex
	operators []*operating
}

// newDiary makes the schedule, with these lines in its spec besides cluster and time, and its cluster "db".
func newDiary(t *testing.T, spec string) *diary {
	t.Helper()
	d := newBareDiary(t, "cluster: db, time: 0 3 * * *, "+spec)
	d.serves(t, "db", "")
	return d
}

func newBareDiary(t *testing.T, spec string) *diary {
	t.Helper()
	d := &diary{depot: newDepot(t), clock: &handClock{now: time.Now()}, server: &handClock{now: time.Now()}}
	d.grant(t, scheduleRules())
	made := d.make(t, "mysqlbackupschedules", fmt.Sprintf("{apiVersion: %s/v1, kind: MySQLBackupSchedule, metadata: {name: nightly}, spec: {%s}}", schema.MySQLGroup, spec))
	created := made.GetCreationTimestamp().UTC()
	d.first = time.Date(created.Year(), created.Month(), created.Day(), 3, 0, 0, 0, time.UTC)
	if !d.first.After(created) {
		d.first = d.first.AddDate(0, 0, 1)
	}
	return d
}

// serves makes a cluster, with these lines in its spec.
func (d *diary) serves(t *testing.T, name, spec string) {
	t.Helper()
	d.make(t, "mysqlclusters", fmt.Sprintf("{apiVersion: %s/v1, kind: MySQLCluster, metadata: {name: %s}, spec: {secret: root, %s}}", schema.MySQLGroup, name, spec))
}

// handClock is a clock that goes only when it is set, unless it runs.
type handClock struct {
	mu    sync.Mutex
	now   time.Time
	looks int
	// ahead is how far it is ahead of the real one, if it runs.
	runs  bool
	ahead time.Duration
}

func (c *handClock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looks++
	if c.runs {
		return time.Now().Add(c.ahead)
	}
	return c.now
}

func (c *handClock) set(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now, c.looks = at, 0
}

// start lets the clock run from where it stands.
func (c *handClock) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs, c.ahead = true, time.Until(c.now)
}

func (c *handClock) looked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.looks
}

// operate starts an operator by the diary's clock.
func (d *diary) operate(t *testing.T, configure func(*reconcile.Config)) *operating {
	t.Helper()
	return d.operateBy(t, d.clock, configure)
}

func (d *diary) operateBy(t *testing.T, clock *handClock, configure func(*reconcile.Config)) *operating {
	t.Helper()
	dated := func(config *reconcile.Config) {
		config.Rest.Wrap(d.date)
		if configure != nil {
			configure(config)
		}
	}
	o := d.place.operate(t, dated, mysqlbackupschedule.ControllerAt(backupSchedules(), clock.read))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.operators = append(d.operators, o)
	return o
}

// date has answers say the time of the diary's API server.
func (d *diary) date(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err == nil {
			response.Header.Set("Date", d.server.read().UTC().Format(http.TimeFormat))
		}
		return response, err
	})
}

// turn sets all clocks. An operator hears of the API server's with the next answer, which here comes first.
func (d *diary) turn(t *testing.T, at time.Time) {
	t.Helper()
	d.server.set(at)
	d.mu.Lock()
	operators := slices.Clone(d.operators)
	d.mu.Unlock()
	for _, o := range operators {
		o.hears(t)
	}
	d.clock.set(at)
}

// strikes sets all clocks, and returns when a whole pass was made by them.
func (d *diary) strikes(t *testing.T, at time.Time) {
	t.Helper()
	d.turn(t, at)
	d.considers(t)
}

// considers returns when a pass that began after this was called has ended: passes over one schedule follow each other.
func (d *diary) considers(t *testing.T) {
	t.Helper()
	for range 2 {
		before := d.clock.looked()
		d.patch(t, "mysqlbackupschedules", "nightly", fmt.Sprintf(`{"metadata":{"annotations":{"touched":%q}}}`, time.Now().Format(time.RFC3339Nano)))
		soon(t, func(context.Context) string {
			if d.clock.looked() == before {
				return "the operator does not look at the clock"
			}
			return ""
		})
	}
}

// night is the schedule's time so many days after the first.
func (d *diary) night(number int) time.Time { return d.first.AddDate(0, 0, number) }

// named is the name of the instance of a night.
func (d *diary) named(number int) string {
	return "nightly-" + d.night(number).Format("2006-01-02-15-04-05")
}

// read reads the schedule; strictly, so that a status that the definition does not know is a failure.
func (d *diary) read(ctx context.Context) (mysqlv1.MySQLBackupSchedule, error) {
	var schedule mysqlv1.MySQLBackupSchedule
	found, err := d.of("mysqlbackupschedules").Get(ctx, "nightly", metav1.GetOptions{})
	if err != nil {
		return schedule, err
	}
	err = schema.DecodeStrict(found, &schedule)
	return schedule, err
}

// is waits until the schedule's Ready condition gives this reason for the spec as it is now, and the status is as holds wants it.
func (d *diary) is(t *testing.T, reason string, holds func(mysqlv1.MySQLBackupScheduleStatus) bool) mysqlv1.MySQLBackupSchedule {
	t.Helper()
	var schedule mysqlv1.MySQLBackupSchedule
	soon(t, func(ctx context.Context) string {
		var err error
		if schedule, err = d.read(ctx); err != nil {
			return err.Error()
		}
		ready := readyWord(schedule)
		if ready.Reason != reason || schedule.Status.ObservedGeneration != schedule.Generation || holds != nil && !holds(schedule.Status) {
			return fmt.Sprintf("the schedule is %s and not %s, or not as wanted: %+v", ready.Reason, reason, schedule.Status)
		}
		return ""
	})
	return schedule
}

func readyWord(schedule mysqlv1.MySQLBackupSchedule) metav1.Condition {
	return readyIn(schedule.Status.Conditions)
}

// has waits until there are the instances of these nights and of no others.
func (d *diary) has(t *testing.T, nights ...int) {
	t.Helper()
	want := []string{}
	for _, night := range nights {
		want = append(want, d.named(night))
	}
	slices.Sort(want)
	soon(t, func(ctx context.Context) string {
		if got := d.names(ctx); !slices.Equal(got, want) {
			return fmt.Sprintf("there are the instances %v, want %v", got, want)
		}
		return ""
	})
}

// names are the names of the instances that are called as those of the schedule are.
func (d *diary) names(ctx context.Context) []string {
	found, err := d.of("mysqlbackupinstances").List(ctx, metav1.ListOptions{})
	if err != nil {
		return []string{err.Error()}
	}
	names := []string{}
	for _, item := range found.Items {
		if strings.HasPrefix(item.GetName(), "nightly-") {
			names = append(names, item.GetName())
		}
	}
	return names
}

// backupTakes is how long a backup takes: clocks may differ that much, so that it does not matter that the diary's stands still.
const backupTakes = 5 * time.Minute

// completes ends a night's backup well; fails ends it badly.
func (d *diary) completes(t *testing.T, nights ...int) {
	t.Helper()
	for _, night := range nights {
		d.over(t, d.named(night), mysqlv1.BackupCompleted, d.night(night).Add(backupTakes))
	}
}

func (d *diary) fails(t *testing.T, nights ...int) {
	t.Helper()
	for _, night := range nights {
		d.over(t, d.named(night), mysqlv1.BackupFailed, d.night(night).Add(backupTakes))
	}
}

// over ends a backup, once there is one: a pass that still saw the one before it at work leaves it to the next.
func (d *diary) over(t *testing.T, instance string, phase mysqlv1.BackupPhase, at time.Time) {
	t.Helper()
	soon(t, func(ctx context.Context) string {
		if _, err := d.instance(ctx, instance); err != nil {
			return err.Error()
		}
		return ""
	})
	moment := at.UTC().Format(time.RFC3339)
	condition := fmt.Sprintf(`{"type":"Ready","status":"False","reason":"DonorUnavailable","message":"no member answers","lastTransitionTime":%q}`, moment)
	d.patch(t, "mysqlbackupinstances", instance, fmt.Sprintf(`{"status":{"phase":%q,"completionTime":%q,"conditions":[%s]}}`, phase, moment, condition), "status")
}

// buries does the work of those who delete a backup's data: it takes their finalizer off instances that are on their way out, and notes
// which those were, until the test ends.
func (d *diary) buries(t *testing.T) *burials {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	b := &burials{}
	var working sync.WaitGroup
	working.Go(func() {
		for ctx.Err() == nil {
			b.round(ctx, d)
			timer := time.NewTimer(100 * time.Millisecond)
			select {
			case <-ctx.Done():
			case <-timer.C:
			}
			timer.Stop()
		}
	})
	t.Cleanup(func() {
		stop()
		working.Wait()
	})
	return b
}

type burials struct {
	mu      sync.Mutex
	expired []string
}

func (b *burials) round(ctx context.Context, d *diary) {
	found, err := d.of("mysqlbackupinstances").List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for _, item := range found.Items {
		finalizers := item.GetFinalizers()
		if item.GetDeletionTimestamp() == nil || !slices.Contains(finalizers, transfer.FinalizerData) {
			continue
		}
		item.SetFinalizers(slices.DeleteFunc(finalizers, func(one string) bool { return one == transfer.FinalizerData }))
		b.bury(ctx, d, &item)
	}
}

// bury takes the finalizer off and notes it in one: whoever sees that an instance is gone finds it noted.
func (b *burials) bury(ctx context.Context, d *diary, item *unstructured.Unstructured) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, err := d.of("mysqlbackupinstances").Update(ctx, item, metav1.UpdateOptions{}); err != nil {
		return
	}
	if _, expired := item.GetAnnotations()[transfer.AnnotationExpired]; expired {
		b.expired = append(b.expired, item.GetName())
	}
}

func (b *burials) all() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	sorted := slices.Clone(b.expired)
	slices.Sort(sorted)
	return sorted
}

// stays fails the test if an instance is gone, or on its way out.
func (d *diary) stays(t *testing.T, instance string) {
	t.Helper()
	found, err := d.of("mysqlbackupinstances").Get(t.Context(), instance, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && found.GetDeletionTimestamp() != nil {
		t.Errorf("instance %s was deleted", instance)
	} else if err != nil {
		t.Error(err)
	}
}
