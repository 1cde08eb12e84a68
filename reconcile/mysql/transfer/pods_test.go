package transfer

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPodsOfAJob(t *testing.T) {
	t.Parallel()
	isController := true
	owned := func(name string, controller *bool) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: "nightly", UID: "job", Controller: controller}}}}
	}
	other := owned("of an earlier Job of that name", &isController)
	other.OwnerReferences[0].UID = "earlier"
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "nightly", UID: "job"}}
	own := PodsOf(job, []corev1.Pod{{}, other, owned("own", &isController), owned("named, but not controlled", nil)})
	if len(own) != 1 || own[0].Name != "own" {
		t.Errorf("got %+v", own)
	}
}

func TestActivePods(t *testing.T) {
	t.Parallel()
	all := []corev1.Pod{}
	for _, phase := range []corev1.PodPhase{"", corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed, corev1.PodUnknown} {
		all = append(all, corev1.Pod{Status: corev1.PodStatus{Phase: phase}})
	}
	if got := CountActive(all); got != 4 { // the node of an unknown one may be cut off
		t.Errorf("got %d active Pods, want 4", got)
	}
}

func TestFinishedJobs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kind   batchv1.JobConditionType
		status corev1.ConditionStatus
		want   bool
	}{
		"complete":            {batchv1.JobComplete, corev1.ConditionTrue, true},
		"failed":              {batchv1.JobFailed, corev1.ConditionTrue, true},
		"not complete":        {batchv1.JobComplete, corev1.ConditionFalse, false},
		"about to fail":       {batchv1.JobFailureTarget, corev1.ConditionTrue, false},
		"suspended by a user": {batchv1.JobSuspended, corev1.ConditionTrue, false},
	} {
		job := &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: test.kind, Status: test.status}}}}
		if got := IsFinished(job); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// TestFormerAttempts: the Jobs of backups and of restores count in different annotations.
func TestFormerAttempts(t *testing.T) {
	t.Parallel()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{AnnotationAttempts: "3", "other": "5", "wrong": "many", "large": "4294967296"}}}
	for annotation, want := range map[string]int32{AnnotationAttempts: 3, "other": 5, "missing": 0, "wrong": 0, "large": 0} {
		if got := FormerAttempts(job, annotation); got != want {
			t.Errorf("%s: got %d, want %d", annotation, got, want)
		}
	}
}
