package backup

import (
	"errors"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// story is one pass over a backup that is not over.
type story struct {
	instance v1.MySQLBackupInstance
	seen     observed
	want     step
	// reason and says belong to a wait or a failure. stalled means that a user must act.
	reason  string
	stalled bool
	says    []string
}

func (s story) check(t *testing.T) {
	t.Helper()
	got := decide(s.instance, s.seen)
	if got.step != s.want || got.why.Reason != s.reason || got.why.Stalled != s.stalled {
		t.Fatalf("decided to %s because of %+v, want to %s because of %s (stalled %t)", got.step, got.why, s.want, s.reason, s.stalled)
	}
	for _, words := range s.says {
		if !strings.Contains(got.why.Message, words) {
			t.Errorf("the message %q does not say %q", got.why.Message, words)
		}
	}
}

func runStories(t *testing.T, stories map[string]story) {
	t.Helper()
	for name, one := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one.check(t)
		})
	}
}

func TestABackupBeginsWhenNothingIsMissing(t *testing.T) {
	t.Parallel()
	ours := transfer.ClaimLabels()
	runStories(t, map[string]story{
		"the location is recorded first": {instance: fresh(), seen: calm(), want: stepBegin},
		"then the Job is made":           {instance: fresh(begins), seen: calm(), want: stepStart},
		"into a volume that was created for another cluster's backups": {
			instance: fresh(), seen: calm(func(s *observed) { s.claim = claimNamed("db-backups", ours, corev1.ClaimBound) }), want: stepBegin,
		},
		"a claim without a volume is no obstacle: a Pod may have to come first": {
			instance: fresh(), seen: calm(func(s *observed) { s.claim = claimNamed("db-backups", ours, corev1.ClaimPending) }), want: stepBegin,
		},
		"a claim that the user names may have any owner": {instance: fresh(), seen: calm(func(s *observed) {
			s.settings.Destination = &v1.BackupDestination{Claim: "nas"}
			s.location.Claim, s.claim = "nas", claimNamed("nas", nil, corev1.ClaimBound)
		}), want: stepBegin},
		"one replica is ready and the primary is not": {instance: fresh(), seen: calm(func(s *observed) {
			s.cluster.Status = v1.MySQLClusterStatus{Phase: v1.PhaseFailed, Primary: "db-0", ReadyReplicas: 1}
		}), want: stepBegin},
		"a schedule that is missing is no obstacle if the instance names the cluster": {
			instance: fresh(func(i *v1.MySQLBackupInstance) { i.Spec.Schedule = "nightly" }), seen: calm(func(s *observed) { s.scheduleMissing = true }), want: stepBegin,
		},
	})
}

func TestABackupWaitsForWhatIsMissing(t *testing.T) {
	t.Parallel()
	s3 := func(data map[string][]byte, found bool) observed {
		return calm(func(s *observed) {
			s.location = v1.BackupLocation{URL: "s3://bucket/shop/db/nightly-1", Secret: "s3"}
			s.credentials = secret{found: found, data: data}
		})
	}
	elsewhere := func(endpoint string) observed {
		return calm(func(s *observed) {
			s.location = v1.BackupLocation{URL: "s3://bucket/shop?endpoint=https://store.example", Secret: "s3"}
			keys := map[string][]byte{"AWS_ACCESS_KEY_ID": []byte("a"), "AWS_SECRET_ACCESS_KEY": []byte("b"), keyEndpoint: []byte(endpoint)}
			s.credentials = secret{found: true, data: keys}
		})
	}
	encrypted := func(data map[string][]byte, found bool) observed {
		return calm(func(s *observed) { s.location.EncryptionSecret, s.key = "age", secret{found: found, data: data} })
	}
	runStories(t, map[string]story{
		"a schedule that does not exist, and no cluster named": {
			instance: fresh(func(i *v1.MySQLBackupInstance) { i.Spec = v1.MySQLBackupInstanceSpec{Schedule: "nightly"} }),
			seen:     calm(func(s *observed) { s.name, s.cluster, s.scheduleMissing = "", nil, true }),
			want:     stepWait, reason: reasonScheduleNotFound, says: []string{`"nightly" does not exist in namespace "shop"`, "spec.cluster"},
		},
		"a cluster that does not exist, was renamed, or is in another namespace": {
			instance: fresh(), seen: calm(func(s *observed) { s.cluster = nil }),
			want: stepWait, reason: protocol.ReasonClusterNotFound, says: []string{`"db" does not exist in namespace "shop"`, "create the cluster, or create another instance"},
		},
		"a cluster that is being deleted": {
			instance: fresh(), seen: calm(func(s *observed) { s.cluster.DeletionTimestamp = &metav1.Time{Time: born()} }),
			want: stepWait, reason: protocol.ReasonClusterNotReady, says: []string{"is being deleted"},
		},
		"a cluster without members yet": {
			instance: fresh(), seen: calm(func(s *observed) { s.cluster.Status = v1.MySQLClusterStatus{} }),
			want: stepWait, reason: protocol.ReasonWaitingForCluster, says: []string{"has no members yet"},
		},
		"a cluster without a ready member": {
			instance: fresh(), seen: calm(func(s *observed) { s.cluster.Status.ReadyReplicas = 0 }),
			want: stepWait, reason: protocol.ReasonClusterNotReady, says: []string{"no member", "kubectl get mysqlcluster db"},
		},
		"a URL that is invalid": {
			instance: fresh(), seen: calm(func(s *observed) { s.urlFault = errors.New("read destination.url: odd") }),
			want: stepWait, reason: reasonURLInvalid, stalled: true, says: []string{"destination.url: odd"},
		},
		"a Secret that does not exist": {
			instance: fresh(), seen: s3(nil, false), want: stepWait, reason: protocol.ReasonCredentialsNotFound, stalled: true,
			says: []string{`Secret "s3" does not exist in namespace "shop"`, "s3://bucket/"},
		},
		"a Secret with half of the credentials": {
			instance: fresh(), seen: s3(map[string][]byte{"AWS_ACCESS_KEY_ID": []byte("a"), "ca.crt": []byte("c")}, true),
			want: stepWait, reason: protocol.ReasonCredentialsNotFound, stalled: true, says: []string{`"s3" is missing keys`, "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"},
		},
		"a Secret that does not name the endpoint": {
			instance: fresh(), seen: elsewhere(""), want: stepWait, reason: protocol.ReasonDestinationRefused, stalled: true,
			says: []string{"destination.url", "endpoint=https://store.example", `add the key "endpoint" with its URL to the destination's Secret`},
		},
		"the identity of a Pod, and an endpoint": {
			instance: fresh(), want: stepWait, reason: protocol.ReasonDestinationRefused, stalled: true,
			seen: calm(func(s *observed) {
				s.location = v1.BackupLocation{URL: "gs://bucket/shop?endpoint=https://store.example", ServiceAccountName: "cloudy"}
			}),
			says: []string{"endpoint=https://store.example"},
		},
		"a Secret that names the endpoint": {instance: fresh(), seen: elsewhere("https://store.example"), want: stepBegin},
		"a key that does not exist": {
			instance: fresh(), seen: encrypted(nil, false), want: stepWait, reason: protocol.ReasonEncryptionKeyNotFound, stalled: true,
			says: []string{`Secret "age" does not exist`, "recipient"},
		},
		"a Secret without a key": {
			instance: fresh(), seen: encrypted(map[string][]byte{"key": []byte("x")}, true), want: stepWait, reason: protocol.ReasonEncryptionKeyNotFound, stalled: true,
			says: []string{`neither "recipient"`, `nor "identity"`},
		},
		"a key that is invalid": {
			instance: fresh(), seen: encrypted(map[string][]byte{"recipient": []byte("x")}, true), want: stepWait, reason: protocol.ReasonEncryptionKeyInvalid, stalled: true,
			says: []string{`Secret "age"`},
		},
		"a claim that the user names and that is not there": {instance: fresh(), seen: calm(func(s *observed) {
			s.settings.Destination, s.location.Claim = &v1.BackupDestination{Claim: "nas"}, "nas"
		}), want: stepWait, reason: protocol.ReasonClaimNotFound, stalled: true, says: []string{`"nas" does not exist in namespace "shop"`}},
		"a claim of that name that the operator did not create": {
			instance: fresh(), seen: calm(func(s *observed) { s.claim = claimNamed("db-backups", nil, corev1.ClaimBound) }),
			want: stepWait, reason: report.ReasonForeignObject, stalled: true, says: []string{"was not made by this operator", "destination.claim"},
		},
		"a claim that is being deleted": {instance: fresh(), seen: calm(func(s *observed) {
			s.claim = claimNamed("db-backups", transfer.ClaimLabels(), corev1.ClaimBound)
			s.claim.DeletionTimestamp = &metav1.Time{Time: born()}
		}), want: stepWait, reason: protocol.ReasonClaimNotFound, stalled: true, says: []string{"is being deleted"}},
		"also when only the Job is missing": {
			instance: fresh(begins), seen: calm(func(s *observed) { s.cluster = nil }), want: stepWait, reason: protocol.ReasonClusterNotFound,
		},
	})
}

func TestABackupHasItsTime(t *testing.T) {
	t.Parallel()
	late := waited(24 * time.Hour)
	runStories(t, map[string]story{
		"a moment before the deadline it still waits": {
			instance: fresh(), seen: calm(waited(24*time.Hour-time.Second), func(s *observed) { s.cluster = nil }), want: stepWait, reason: protocol.ReasonClusterNotFound,
		},
		"at the deadline it fails, and reports what it waited for": {
			instance: fresh(), seen: calm(late, func(s *observed) { s.cluster = nil }), want: stepFail, reason: protocol.ReasonDeadlineExceeded, stalled: true,
			says: []string{"activeDeadlineSeconds (24h0m0s)", `"db" does not exist`},
		},
		"also if nothing is missing: the user set the deadline": {instance: fresh(), seen: calm(late), want: stepFail, reason: protocol.ReasonDeadlineExceeded, stalled: true},
		"Kubernetes ends an existing Job":                       {instance: fresh(begins), seen: calm(late, working(transfer.State{Phase: transfer.Running})), want: stepFollow},
		"but its Pods may never end: the node is gone": {
			instance: fresh(begins), seen: calm(working(transfer.State{Phase: transfer.Running, Message: "Pod x is being deleted"}), due(3600, time.Hour+patience+time.Second)),
			want: stepFail, reason: protocol.ReasonDeadlineExceeded, stalled: true, says: []string{"1h0m0s", "nightly-1-backup", "Pod x is being deleted"},
		},
		"the Pods have time to end": {
			instance: fresh(begins), seen: calm(working(transfer.State{Phase: transfer.Running}), due(3600, time.Hour+patience)), want: stepFollow,
		},
		"nor a deleted Job with the finalizer of another client": {
			instance: fresh(begins, isReplaced), seen: calm(working(transfer.State{Phase: transfer.Pending}), due(3600, time.Hour+patience+time.Second)),
			want: stepFail, reason: protocol.ReasonDeadlineExceeded, stalled: true,
		},
		"a failed Job has its own reason": {
			instance: fresh(begins), seen: calm(working(transfer.State{Phase: transfer.Failed, Reason: protocol.ReasonCopyFailed}), due(3600, 24*time.Hour)),
			want: stepFail, reason: protocol.ReasonCopyFailed, stalled: true,
		},
		"the clock may be far ahead of the API server's": {
			instance: fresh(begins), seen: calm(late, working(transfer.State{Phase: transfer.Running}), due(3600, time.Second)), want: stepFollow,
		},
		"Kubernetes ends it, and its Pods have not ended yet": {
			instance: fresh(begins), seen: calm(working(transfer.State{Phase: transfer.Running}), due(3600, time.Second), func(s *observed) { s.doomed = patience }), want: stepFollow,
		},
		"Kubernetes ends it, and its Pods do not end": {
			instance: fresh(begins), seen: calm(working(transfer.State{Phase: transfer.Running}), due(3600, time.Second), func(s *observed) { s.doomed = patience + time.Second }),
			want: stepFail, reason: protocol.ReasonDeadlineExceeded, stalled: true, says: []string{"whether the node of its Pod still exists"},
		},
		"a Job that succeeded completes":    {instance: fresh(begins), seen: calm(working(succeeded(nil)), due(3600, 24*time.Hour)), want: stepComplete},
		"a completed backup stays complete": {instance: fresh(begins), seen: calm(late, working(succeeded(nil))), want: stepComplete},
	})
}

func TestABackupIsFollowed(t *testing.T) {
	t.Parallel()
	runStories(t, map[string]story{
		"its Pod is running": {instance: fresh(begins), seen: calm(working(transfer.State{Phase: transfer.Running})), want: stepFollow},
		"no node fits": {
			instance: fresh(begins), seen: calm(working(transfer.State{Phase: transfer.Pending, Reason: protocol.ReasonUnschedulable, Message: "Pod x waits for a node: none"})),
			want: stepWait, reason: protocol.ReasonUnschedulable, says: []string{"none"},
		},
		"its volume has no class": {
			instance: fresh(begins), want: stepWait, reason: protocol.ReasonNoStorageClass, stalled: true, says: []string{"no default StorageClass"},
			seen: calm(working(transfer.State{Phase: transfer.Pending, Reason: protocol.ReasonVolumePending}), func(s *observed) {
				s.claim = claimNamed("db-backups", transfer.ClaimLabels(), corev1.ClaimPending)
			}),
		},
		"its image cannot be pulled, in a message that does not alternate": {
			instance: fresh(begins), seen: calm(working(transfer.State{Phase: transfer.Pending, Pod: "x", Reason: protocol.ReasonImagePullFailed, Message: "ImagePullBackOff: now"})),
			want: stepWait, reason: protocol.ReasonImagePullFailed, stalled: true, says: []string{"kubectl describe pod x"},
		},
		"Kubernetes refuses its Pod": {
			instance: fresh(begins), seen: calm(working(transfer.State{Phase: transfer.Pending}), func(s *observed) { s.refused = "exceeded quota" }),
			want: stepWait, reason: protocol.ReasonPodsNotCreated, stalled: true, says: []string{"exceeded quota"},
		},
		"an attempt failed and is retried": {
			instance: fresh(begins), seen: calm(working(transfer.State{Phase: transfer.Pending, Attempts: 1, Reason: protocol.ReasonDonorBusy, Message: "db-1 gives a copy"})),
			want: stepWait, reason: protocol.ReasonDonorBusy, says: []string{"retries it", "db-1 gives a copy"},
		},
		"its cluster is deleted before its Pod starts": {
			instance: fresh(begins), seen: calm(working(transfer.State{Phase: transfer.Pending, Message: "is starting"}), func(s *observed) { s.cluster = nil }),
			want: stepWait, reason: protocol.ReasonClusterNotFound,
		},
		"a user deletes its Job": {
			instance: fresh(begins), seen: calm(working(transfer.State{Phase: transfer.Pending}), func(s *observed) { s.job.DeletionTimestamp = &metav1.Time{Time: born()} }),
			want: stepWait, reason: protocol.ReasonScheduled, says: []string{"creates another one"},
		},
		"but not while a Pod of it may still write": {
			instance: fresh(begins), seen: calm(func(s *observed) { s.pods = 1 }), want: stepWait, reason: protocol.ReasonScheduled, says: []string{"waiting for a Pod of its previous Job to end"},
		},
		"and the operator creates another Job": {instance: fresh(begins), seen: calm(), want: stepStart},
		"it was refused": {
			instance: fresh(begins), seen: calm(working(transfer.State{Phase: transfer.Failed, Attempts: 1, Reason: protocol.ReasonDestinationOccupied, Message: "holds another backup"})),
			want: stepFail, reason: protocol.ReasonDestinationOccupied, stalled: true, says: []string{"holds another backup"},
		},
		"its Pods failed and did not report why": {
			instance: fresh(begins), seen: calm(working(transfer.State{Phase: transfer.Failed, Attempts: 7})), want: stepFail, reason: protocol.ReasonPodsFailed, stalled: true,
		},
	})
}

// TestABackupsTimeIsMeasuredByOneClock: the operator's clock differs from the API server's, which sets the instance's creation time.
func TestABackupsTimeIsMeasuredByOneClock(t *testing.T) {
	t.Parallel()
	hour := func(clock, known time.Duration) func(*observed) {
		return func(s *observed) {
			seconds := int64(3600)
			s.settings.ActiveDeadlineSeconds, s.now, s.waited = &seconds, after(clock), known
		}
	}
	for name, test := range map[string]struct {
		clock, known, want time.Duration
	}{
		"both clocks are right":                     {clock: 20 * time.Minute, known: 20 * time.Minute, want: 40 * time.Minute},
		"the operator's is ten minutes ahead":       {clock: 30 * time.Minute, known: 20 * time.Minute, want: 40 * time.Minute},
		"it is ten minutes behind":                  {clock: 10 * time.Minute, known: 20 * time.Minute, want: 40 * time.Minute},
		"it is a day behind":                        {clock: -24 * time.Hour, known: 20 * time.Minute, want: 40 * time.Minute},
		"it is ahead at the end":                    {clock: 70 * time.Minute, known: time.Hour},
		"an operator took over, and starts at zero": {clock: 50 * time.Minute, want: time.Hour},
		"by this clock the instance is too old":     {clock: 70 * time.Minute, want: time.Hour},
		"operators took over from each other":       {clock: 2*time.Hour + transfer.ClockTolerance, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := timeLeft(fresh(), calm(hour(test.clock, test.known))); got != test.want {
				t.Errorf("%s is left, want %s", got, test.want)
			}
		})
	}
}

func TestOnlyThePodsWordMakesABackupCompleted(t *testing.T) {
	t.Parallel()
	unproven := func(state transfer.State, change ...func(*story)) story {
		told := story{
			instance: fresh(begins), seen: calm(working(state)), want: stepFail, reason: protocol.ReasonPodsFailed, stalled: true,
			says: []string{"there may be a good backup", "backup verify --from file:///shop/db/nightly-1 (in the volume of claim db-backups)"},
		}
		for _, one := range change {
			one(&told)
		}
		return told
	}
	gone := transfer.State{Phase: transfer.Succeeded, Attempts: 1, Message: "its Pod is gone"}
	runStories(t, map[string]story{
		"it reports everything": {instance: fresh(begins), seen: calm(working(succeeded(nil))), want: stepComplete},
		"it reports nothing: another Pod checks": {
			instance: fresh(begins), seen: calm(working(gone)), want: stepAsk, reason: protocol.ReasonScheduled, says: []string{"its Pod is gone", "checks the destination"},
		},
		"the other Pod reports nothing either": unproven(gone, func(s *story) { s.seen.former = 1 }),
		"and there is no time to check":        unproven(gone, func(s *story) { waited(24 * time.Hour)(&s.seen) }),
		"and its cluster is gone":              unproven(gone, func(s *story) { s.seen.cluster = nil }),
		"and another backup replaces it":       unproven(gone, func(s *story) { isReplaced(&s.instance) }),
		"it reports no checksum":               unproven(succeeded(func(o *protocol.Outcome) { o.Checksum = "" })),
		"it reports no size":                   unproven(succeeded(func(o *protocol.Outcome) { o.Size = 0 })),
		"it copied nothing":                    unproven(succeeded(func(o *protocol.Outcome) { o.DataSize = 0 })),
		"it reports a failure":                 unproven(succeeded(func(o *protocol.Outcome) { o.Reason = protocol.ReasonCopyFailed })),
		"it reports on another":                unproven(succeeded(func(o *protocol.Outcome) { o.UID = "uid-0" })),
		"it reported just before it was replaced": {
			instance: fresh(begins, isReplaced), seen: calm(working(succeeded(nil))), want: stepComplete,
		},
	})
}

func TestABackupIsReplaced(t *testing.T) {
	t.Parallel()
	running := working(transfer.State{Phase: transfer.Running})
	runStories(t, map[string]story{
		"before it began":      {instance: fresh(isReplaced), seen: calm(), want: stepFail, reason: protocol.ReasonReplaced, stalled: true},
		"before its Job":       {instance: fresh(begins, isReplaced), seen: calm(), want: stepFail, reason: protocol.ReasonReplaced, stalled: true},
		"while it runs":        {instance: fresh(begins, isReplaced), seen: calm(running), want: stepStop, reason: protocol.ReasonReplaced},
		"its Job is ending":    {instance: fresh(begins, isReplaced), seen: calm(running, func(s *observed) { s.job.DeletionTimestamp = &metav1.Time{Time: born()} }), want: stepWait, reason: protocol.ReasonReplaced},
		"its Pod is ending":    {instance: fresh(begins, isReplaced), seen: calm(func(s *observed) { s.pods = 1 }), want: stepWait, reason: protocol.ReasonReplaced},
		"all of it has ended":  {instance: fresh(begins, isReplaced), seen: calm(), want: stepFail, reason: protocol.ReasonReplaced, stalled: true, says: []string{"concurrencyPolicy Replace"}},
		"it had failed before": {instance: fresh(begins, isReplaced), seen: calm(working(transfer.State{Phase: transfer.Failed})), want: stepFail, reason: protocol.ReasonReplaced, stalled: true},
	})
}

// An admission webhook may add containers to a Pod. One that keeps running prevents the Job from ending, and from retrying.
func TestABackupBesideOtherContainers(t *testing.T) {
	t.Parallel()
	lingering := func(attempts int32, change ...func(*observed)) observed {
		state := transfer.State{Phase: transfer.Failed, Lingers: true, Attempts: attempts, Reason: protocol.ReasonDonorBusy, Message: "db-1 gives a copy"}
		return calm(append([]func(*observed){working(state)}, change...)...)
	}
	after := func(wait time.Duration) func(*observed) { return func(s *observed) { s.ended = wait } }
	runStories(t, map[string]story{
		"it failed, and the other container still runs": {instance: fresh(begins), seen: lingering(1, after(9*time.Second)), want: stepWait, reason: protocol.ReasonDonorBusy, says: []string{"another container", "db-1 gives a copy"}},
		"after a while another Job retries":             {instance: fresh(begins), seen: lingering(1, after(10*time.Second)), want: stepAsk, reason: protocol.ReasonDonorBusy, says: []string{"retries it"}},
		"after a longer while the second time":          {instance: fresh(begins), seen: lingering(1, after(19*time.Second), func(s *observed) { s.former = 1 }), want: stepWait, reason: protocol.ReasonDonorBusy},
		"not while the Job is being deleted": {instance: fresh(begins), seen: lingering(1, after(time.Hour), func(s *observed) { s.job.DeletionTimestamp = &metav1.Time{Time: born()} }),
			want: stepWait, reason: protocol.ReasonDonorBusy},
		"not indefinitely": {instance: fresh(begins), seen: lingering(1, after(time.Hour), func(s *observed) { s.former = transfer.Retries }), want: stepFail, reason: protocol.ReasonDonorBusy, stalled: true},
		"not a refusal": {instance: fresh(begins), seen: lingering(1, after(time.Hour), func(s *observed) { s.transfer.Refused = true }),
			want: stepFail, reason: protocol.ReasonDonorBusy, stalled: true},
		"a completed backup stays complete": {instance: fresh(begins), seen: calm(working(succeeded(nil)), func(s *observed) { s.transfer.Lingers = true }), want: stepComplete},
	})
}

// The container statuses come from Kubernetes, and the test goes from the Pod to the decision. The backup runs, and a container with an
// earlier name has ended.
func TestABackupThatRunsIsNotEndedByAnotherContainer(t *testing.T) {
	t.Parallel()
	controller := true
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", OwnerReferences: []metav1.OwnerReference{{UID: "job", Controller: &controller}}}, Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
		{Name: "azwi-helper", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 0}}},
		{Name: "backup", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
	}}}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "job", Name: "nightly-1-backup"}}
	for _, former := range []int32{0, 1} {
		seen := calm(working(transferOf(job, []corev1.Pod{pod})), func(s *observed) { s.former = former })
		if made := decide(fresh(begins), seen); made.step != stepFollow {
			t.Errorf("with %d former attempts: decided to %s: %s", former, made.step, made.why.Message)
		}
	}
}

func TestWhatOfABackupGoesOnWhenItIsOver(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		phase v1.BackupPhase
		state transfer.State
		want  bool
	}{
		"complete, and its Job about to end":              {v1.BackupCompleted, transfer.State{Phase: transfer.Succeeded}, false},
		"complete, and another container still runs":      {v1.BackupCompleted, transfer.State{Phase: transfer.Succeeded, Lingers: true}, true},
		"given up, and its Pod may still write":           {v1.BackupFailed, transfer.State{Phase: transfer.Running}, true},
		"given up, and Kubernetes may create another Pod": {v1.BackupFailed, transfer.State{Phase: transfer.Pending}, true},
		"refused, and another container still runs":       {v1.BackupFailed, transfer.State{Phase: transfer.Failed, Lingers: true}, true},
		"unproven, and its Job about to end":              {v1.BackupFailed, transfer.State{Phase: transfer.Succeeded}, false},
	} {
		if got := goesOn(fresh(begins, func(i *v1.MySQLBackupInstance) { i.Status.Phase = test.phase }), test.state); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
