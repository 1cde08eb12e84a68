package transfer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
)

// podOf is a Pod of a Job as kubelet reports it.
func podOf(name string, changes ...func(*corev1.Pod)) corev1.Pod {
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{
			{Name: "backup", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}},
		}},
	}
	for _, change := range changes {
		change(&pod)
	}
	return pod
}

func createdAfter(wait time.Duration) func(*corev1.Pod) {
	start := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(start.Add(wait)) }
}

func unschedulable(message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = nil
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message}}
	}
}

func waiting(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: message}
	}
}

func running(p *corev1.Pod) {
	p.Status.Phase, p.Status.PodIP = corev1.PodRunning, "10.0.0.7"
	p.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
}

// ended sets that the program ended, with its termination message.
func ended(phase corev1.PodPhase, terminated corev1.ContainerStateTerminated) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase = phase
		p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &terminated}
	}
}

func failedWith(reason string, status int32) func(*corev1.Pod) {
	message := fmt.Sprintf(`{"reason":%q,"message":"it went wrong"}`, reason)
	return ended(corev1.PodFailed, corev1.ContainerStateTerminated{ExitCode: status, Reason: "Error", Message: message})
}

func succeeded(message string) func(*corev1.Pod) {
	return ended(corev1.PodSucceeded, corev1.ContainerStateTerminated{Reason: "Completed", Message: message})
}

const wholeOutcome = `{"reason":"Completed","source":"db-1","serverVersion":"9.7.4","gtidExecuted":"a:1-9","checksum":"sha256:12","dataSize":100,"size":40}`

func jobWith(changes ...func(*batchv1.Job)) *batchv1.Job {
	job := &batchv1.Job{}
	for _, change := range changes {
		change(job)
	}
	return job
}

func failedOften(times int32) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Status.Failed = times }
}

func jobSays(kind batchv1.JobConditionType, reason, message string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message})
	}
}

func TestObserveTellsTheStoryOfAJob(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		job  *batchv1.Job
		pods []corev1.Pod
		want State
		says string
	}{
		"the Job controller has not created a Pod yet": {
			job: jobWith(), want: State{Phase: Pending}, says: "has not created the Pod",
		},
		"no node fits the Pod": {
			job: jobWith(), pods: []corev1.Pod{podOf("p", unschedulable("0/3 nodes are available: 3 Insufficient memory."))},
			want: State{Phase: Pending, Reason: protocol.ReasonUnschedulable, Pod: "p", Waiting: "0/3 nodes are available: 3 Insufficient memory."}, says: "Insufficient memory",
		},
		"its volume has not been provisioned": {
			job: jobWith(), pods: []corev1.Pod{podOf("p", unschedulable("pod has unbound immediate PersistentVolumeClaims"))},
			want: State{Phase: Pending, Reason: protocol.ReasonVolumePending, Pod: "p", Waiting: "pod has unbound immediate PersistentVolumeClaims"},
		},
		"a user deleted its claim": {
			job: jobWith(), pods: []corev1.Pod{podOf("p", unschedulable(`persistentvolumeclaim "nightly" not found`))},
			want: State{Phase: Pending, Reason: protocol.ReasonClaimNotFound, Pod: "p", Waiting: `persistentvolumeclaim "nightly" not found`},
		},
		"the node cannot get the image": {
			job: jobWith(), pods: []corev1.Pod{podOf("p", waiting("ImagePullBackOff", "Back-off pulling image x"))},
			want: State{Phase: Pending, Reason: protocol.ReasonImagePullFailed, Pod: "p", Waiting: "ImagePullBackOff: Back-off pulling image x"},
		},
		"nor that of a container before it": {
			job: jobWith(), pods: []corev1.Pod{podOf("p", func(p *corev1.Pod) {
				p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "room", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "mysql:10: not found"}}}}
				p.Status.ContainerStatuses[0].State.Waiting.Reason = "PodInitializing"
			})},
			want: State{Phase: Pending, Reason: protocol.ReasonImagePullFailed, Pod: "p", Waiting: "ErrImagePull: mysql:10: not found"},
		},
		"a container that cannot be created": {
			job: jobWith(), pods: []corev1.Pod{podOf("p", waiting("CreateContainerConfigError", `secret "db-tls" not found`))},
			want: State{Phase: Pending, Pod: "p", Waiting: `CreateContainerConfigError: secret "db-tls" not found`},
		},
		"a Pod that is starting": {
			job: jobWith(), pods: []corev1.Pod{podOf("p")}, want: State{Phase: Pending, Pod: "p"}, says: "kubectl describe pod p",
		},
		"it runs": {
			job: jobWith(), pods: []corev1.Pod{podOf("p", running)}, want: State{Phase: Running, Attempts: 1, Pod: "p", PodIP: "10.0.0.7"},
		},
		"an attempt failed and will be retried": {
			job: jobWith(failedOften(1)), pods: []corev1.Pod{podOf("p", failedWith(protocol.ReasonDonorBusy, protocol.ExitRetry))},
			want: State{Phase: Pending, Reason: protocol.ReasonDonorBusy, Outcome: &protocol.Outcome{Reason: protocol.ReasonDonorBusy, Message: "it went wrong"}, Attempts: 1, Pod: "p"}, says: "it went wrong",
		},
		"the second attempt runs, whatever the order of the Pods": {
			job: jobWith(failedOften(1)), pods: []corev1.Pod{podOf("a", running, createdAfter(time.Minute)), podOf("b", failedWith(protocol.ReasonDonorBusy, protocol.ExitRetry), createdAfter(0))},
			want: State{Phase: Running, Attempts: 2, Pod: "a", PodIP: "10.0.0.7"},
		},
		"it is being deleted, and its node does not answer": {
			job: jobWith(), pods: []corev1.Pod{podOf("p", running, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} })},
			want: State{Phase: Running, Attempts: 1, Pod: "p", PodIP: "10.0.0.7"}, says: "if its node is gone",
		},
		"refused: a retry cannot succeed": {
			job:  jobWith(failedOften(1), jobSays(batchv1.JobFailed, batchv1.JobReasonPodFailurePolicy, "exit code 3 matches FailJob rule")),
			pods: []corev1.Pod{podOf("p", failedWith(protocol.ReasonDestinationOccupied, protocol.ExitRefused))},
			want: State{Phase: Failed, Reason: protocol.ReasonDestinationOccupied, Outcome: &protocol.Outcome{Reason: protocol.ReasonDestinationOccupied, Message: "it went wrong"}, Attempts: 1, Pod: "p"}, says: "it went wrong",
		},
		"all attempts failed, each for a reason of its own": {
			job:  jobWith(failedOften(7), jobSays(batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit")),
			pods: []corev1.Pod{podOf("a", failedWith(protocol.ReasonDonorBusy, protocol.ExitRetry), createdAfter(0)), podOf("b", failedWith(protocol.ReasonDestinationUnavailable, protocol.ExitRetry), createdAfter(time.Hour))},
			want: State{Phase: Failed, Reason: protocol.ReasonDestinationUnavailable, Outcome: &protocol.Outcome{Reason: protocol.ReasonDestinationUnavailable, Message: "it went wrong"}, Attempts: 7, Pod: "b"},
		},
		"it took too long, and its Pod was removed": {
			job:  jobWith(jobSays(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline")),
			want: State{Phase: Failed, Reason: protocol.ReasonDeadlineExceeded}, says: "longer than its deadline",
		},
		"it is about to fail, but its Pod still removes what it stored": {
			job:  jobWith(jobSays(batchv1.JobFailureTarget, batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline")),
			pods: []corev1.Pod{podOf("p", running)}, want: State{Phase: Running, Attempts: 1, Pod: "p", PodIP: "10.0.0.7"},
		},
		"done, and the Job has not noticed yet": {
			job: jobWith(), pods: []corev1.Pod{podOf("p", succeeded(wholeOutcome))},
			want: State{Phase: Succeeded, Reason: protocol.ReasonCompleted, Attempts: 1, Pod: "p", Outcome: &protocol.Outcome{Reason: protocol.ReasonCompleted, Source: "db-1", ServerVersion: "9.7.4", GTIDExecuted: "a:1-9", Checksum: "sha256:12", DataSize: 100, Size: 40}},
		},
		"done, and kubelet has not cleared the Pod away yet": {
			job: jobWith(), pods: []corev1.Pod{podOf("p", succeeded(wholeOutcome), func(p *corev1.Pod) { p.Status.Phase, p.Status.PodIP = corev1.PodRunning, "10.0.0.7" })},
			want: State{Phase: Succeeded, Reason: protocol.ReasonCompleted, Attempts: 1, Pod: "p", Outcome: &protocol.Outcome{Reason: protocol.ReasonCompleted, Source: "db-1", ServerVersion: "9.7.4", GTIDExecuted: "a:1-9", Checksum: "sha256:12", DataSize: 100, Size: 40}},
		},
		"done at the very moment of its deadline": {
			job:  jobWith(jobSays(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline")),
			pods: []corev1.Pod{podOf("p", succeeded(`{"reason":"Completed","checksum":"sha256:12"}`))},
			want: State{Phase: Succeeded, Reason: protocol.ReasonCompleted, Attempts: 1, Pod: "p", Outcome: &protocol.Outcome{Reason: protocol.ReasonCompleted, Checksum: "sha256:12"}},
		},
		"done, but its report cannot be read": {
			job: jobWith(), pods: []corev1.Pod{podOf("p", succeeded("\x00garbage"))},
			want: State{Phase: Succeeded, Attempts: 1, Pod: "p"}, says: "cannot be read",
		},
		"done, but its Pod is gone": {
			job:  jobWith(func(j *batchv1.Job) { j.Status.Succeeded = 1 }, jobSays(batchv1.JobComplete, "", "")),
			want: State{Phase: Succeeded, Attempts: 1}, says: "gone",
		},
		"the Pod is gone with its node": {
			job: jobWith(failedOften(1)), want: State{Phase: Pending, Attempts: 1}, says: "has not created the Pod",
		},
		"the node was drained: the Pod is not counted as failed, but it ran": {
			job: jobWith(), pods: []corev1.Pod{podOf("p", failedWith(protocol.ReasonInterrupted, protocol.ExitRetry))},
			want: State{Phase: Pending, Reason: protocol.ReasonInterrupted, Outcome: &protocol.Outcome{Reason: protocol.ReasonInterrupted, Message: "it went wrong"}, Attempts: 1, Pod: "p"},
		},
		"evicted by kubelet": {
			job: jobWith(failedOften(1)), pods: []corev1.Pod{podOf("p", func(p *corev1.Pod) {
				p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: ephemeral-storage."}
			})},
			want: State{Phase: Pending, Reason: protocol.ReasonPodsFailed, Attempts: 1, Pod: "p"}, says: "Evicted: The node was low",
		},
		"it used too much memory": {
			job: jobWith(failedOften(1)), pods: []corev1.Pod{podOf("p", ended(corev1.PodFailed, corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}))},
			want: State{Phase: Pending, Reason: protocol.ReasonPodsFailed, Attempts: 1, Pod: "p"}, says: "more memory than its limit of 192Mi",
		},
		"it crashed": {
			job:  jobWith(failedOften(7), jobSays(batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit")),
			pods: []corev1.Pod{podOf("p", ended(corev1.PodFailed, corev1.ContainerStateTerminated{ExitCode: 2, Reason: "Error", Message: "goroutine 1\npanic: out of ideas\n"}))},
			want: State{Phase: Failed, Reason: protocol.ReasonPodsFailed, Attempts: 7, Pod: "p"}, says: "reached the specified backoff limit: container backup of Pod p ended with exit status 2: panic: out of ideas",
		},
		"a container before it fails": {
			job: jobWith(failedOften(1)), pods: []corev1.Pod{podOf("p", func(p *corev1.Pod) {
				p.Status.Phase = corev1.PodFailed
				p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "room", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 127, Message: "room: not found"}}}}
			})},
			want: State{Phase: Pending, Reason: protocol.ReasonPodsFailed, Attempts: 1, Pod: "p"}, says: "container room of Pod p ended with exit status 127: room: not found",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Observe(protocol.CommandBackup, test.job, test.pods)
			if !strings.Contains(got.Message, test.says) {
				t.Errorf("the message is %q, want it to contain %q", got.Message, test.says)
			}
			got.Message = ""
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// withOthers adds containers to the Pod, as an admission webhook does. kubelet sorts statuses by name.
func withOthers(state corev1.ContainerState, names ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for _, name := range names {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: name, State: state})
		}
		slices.SortFunc(p.Status.ContainerStatuses, func(a, b corev1.ContainerStatus) int { return strings.Compare(a.Name, b.Name) })
	}
}

// TestOtherContainersOfAPodDecideNothing has other containers, with names that sort before and after the program's, which still run, have
// ended or have failed.
func TestOtherContainersOfAPodDecideNothing(t *testing.T) {
	t.Parallel()
	on := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	waits := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
	over := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: wholeOutcome}}
	broken := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: protocol.ExitRefused, Message: `{"reason":"DataExists"}`}}
	in := func(phase corev1.PodPhase) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Status.Phase = phase } }
	whole := protocol.Outcome{Reason: protocol.ReasonCompleted, Source: "db-1", ServerVersion: "9.7.4", GTIDExecuted: "a:1-9", Checksum: "sha256:12", DataSize: 100, Size: 40}
	busy := protocol.Outcome{Reason: protocol.ReasonDonorBusy, Message: "it went wrong"}
	tests := map[string]struct {
		ours, others []func(*corev1.Pod)
		want         State
	}{
		"ours runs, the others run":                  {[]func(*corev1.Pod){running}, []func(*corev1.Pod){withOthers(on, "azwi", "istio")}, State{Phase: Running, PodIP: "10.0.0.7"}},
		"ours runs, the others have ended":           {[]func(*corev1.Pod){running}, []func(*corev1.Pod){withOthers(over, "azwi", "istio")}, State{Phase: Running, PodIP: "10.0.0.7"}},
		"ours runs, the others have failed":          {[]func(*corev1.Pod){running}, []func(*corev1.Pod){withOthers(broken, "azwi", "istio")}, State{Phase: Running, PodIP: "10.0.0.7"}},
		"ours runs, the others wait for their image": {[]func(*corev1.Pod){running, in(corev1.PodPending)}, []func(*corev1.Pod){withOthers(waits, "azwi", "istio")}, State{Phase: Running, PodIP: "10.0.0.7"}},
		"ours is done, the others still run": {
			[]func(*corev1.Pod){succeeded(wholeOutcome), in(corev1.PodRunning)}, []func(*corev1.Pod){withOthers(on, "azwi", "istio")},
			State{Phase: Succeeded, Reason: protocol.ReasonCompleted, Outcome: &whole, Lingers: true},
		},
		"ours is done, the others have ended": {
			[]func(*corev1.Pod){succeeded(wholeOutcome)}, []func(*corev1.Pod){withOthers(over, "azwi", "istio")},
			State{Phase: Succeeded, Reason: protocol.ReasonCompleted, Outcome: &whole},
		},
		"ours is done, the others have failed": {
			[]func(*corev1.Pod){succeeded(wholeOutcome), in(corev1.PodFailed)}, []func(*corev1.Pod){withOthers(broken, "azwi", "istio")},
			State{Phase: Succeeded, Reason: protocol.ReasonCompleted, Outcome: &whole, Lingers: true},
		},
		"ours has failed, the others still run": {
			[]func(*corev1.Pod){failedWith(protocol.ReasonDonorBusy, protocol.ExitRetry), in(corev1.PodRunning)}, []func(*corev1.Pod){withOthers(on, "azwi", "istio")},
			State{Phase: Failed, Reason: protocol.ReasonDonorBusy, Outcome: &busy, Lingers: true},
		},
		"ours has refused, the others still run": {
			[]func(*corev1.Pod){failedWith(protocol.ReasonDonorBusy, protocol.ExitRefused), in(corev1.PodRunning)}, []func(*corev1.Pod){withOthers(on, "azwi", "istio")},
			State{Phase: Failed, Reason: protocol.ReasonDonorBusy, Outcome: &busy, Lingers: true, Refused: true},
		},
		"ours has failed, the others have ended": {
			[]func(*corev1.Pod){failedWith(protocol.ReasonDonorBusy, protocol.ExitRetry)}, []func(*corev1.Pod){withOthers(over, "azwi", "istio")},
			State{Phase: Pending, Reason: protocol.ReasonDonorBusy, Outcome: &busy},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Observe(protocol.CommandBackup, jobWith(), []corev1.Pod{podOf("p", append(test.ours, test.others...)...)})
			got.Message, test.want.Pod, test.want.Attempts = "", "p", 1
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
