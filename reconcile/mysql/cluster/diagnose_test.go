package cluster

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
)

// The statuses here are as kubelet and containerd write them.

func waiting(container, reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: container, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
}

func ended(container, reason, message string, code int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: container, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: reason, Message: message, ExitCode: code}}}
}

// looping returns a container that kubelet starts again and again.
func looping(container, reason, message string, code int32) corev1.ContainerStatus {
	status := waiting(container, "CrashLoopBackOff", "back-off 40s restarting failed container="+container)
	status.LastTerminationState = ended(container, reason, message, code).State
	return status
}

func podWith(init, running []corev1.ContainerStatus, conditions ...corev1.PodCondition) observed {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db-0"}}
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: init, ContainerStatuses: running, Conditions: conditions}
	return observed{pods: []corev1.Pod{pod}}
}

func claim(phase corev1.PersistentVolumeClaimPhase, class *string) observed {
	return observed{volumes: []corev1.PersistentVolumeClaim{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data-db-0"}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: class},
		Status: corev1.PersistentVolumeClaimStatus{Phase: phase},
	}}}
}

// at returns a scene this long after its claims were created.
func at(after time.Duration, seen observed) observed {
	made := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	seen.now = made.Add(after)
	for index := range seen.volumes {
		seen.volumes[index].CreationTimestamp = metav1.NewTime(made)
	}
	return seen
}

const newerData = `2026-11-21T10:00:00.000000Z 1 [System] [MY-013576] [InnoDB] InnoDB initialization has started.
2026-11-21T10:00:01.000000Z 1 [ERROR] [MY-013171] [InnoDB] Cannot boot server version 80400 on data directory built by version 90700. Downgrade is not supported
2026-11-21T10:00:02.000000Z 0 [ERROR] [MY-010119] [Server] Aborting
`

const noRequests = `2026-11-21T10:00:01.000000Z 1 [Warning] [MY-012582] [InnoDB] io_setup() attempt 5.
2026-11-21T10:00:01.500000Z 1 [ERROR] [MY-012584] [InnoDB] io_setup() failed with EAGAIN after 5 attempts.
2026-11-21T10:00:01.500001Z 1 [ERROR] [MY-012954] [InnoDB] Cannot initialize AIO sub-system
`

func TestDiagnose(t *testing.T) {
	t.Parallel()
	fast := "fast"
	one := func(status corev1.ContainerStatus) []corev1.ContainerStatus { return []corev1.ContainerStatus{status} }
	tests := map[string]struct {
		seen    observed
		reason  string
		says    string
		stalled bool
	}{
		"nothing is there yet": {observed{}, "", "", false},
		"all runs":             {observed{pods: []corev1.Pod{readyPod("db-0")}}, "", "", false},
		"containers begin":     {podWith(one(waiting(children.ContainerPrepare, "PodInitializing", "")), one(waiting(children.ContainerMysqld, "PodInitializing", ""))), "", "", false},
		"no default StorageClass": {
			claim(corev1.ClaimPending, nil), protocol.ReasonNoStorageClass, "spec.storageClassName", true},
		"a volume is on its way":      {at(10*time.Second, claim(corev1.ClaimPending, &fast)), "", "", false},
		"a volume that does not come": {at(time.Minute, claim(corev1.ClaimPending, &fast)), reasonVolumePending, "StorageClass fast", false},
		"a volume that took its time": {at(time.Minute, claim(corev1.ClaimBound, &fast)), "", "", false},
		"a volume for which no node is found": {
			func() observed {
				seen := podWith(nil, nil, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: `storageclass "fast" not found`})
				seen.volumes = claim(corev1.ClaimPending, &fast).volumes
				return at(time.Minute, seen)
			}(), reasonUnschedulable, `"fast" not found`, false},
		"a volume is there, classless": {claim(corev1.ClaimBound, nil), "", "", false},
		"no node has room": {
			podWith(nil, nil, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available: 3 Insufficient memory."}),
			reasonUnschedulable, "Insufficient memory", false},
		"an image that does not exist": {
			podWith(one(waiting(children.ContainerInitialize, "ErrImagePull", `failed to resolve reference "docker.io/library/mysql:nope"`)), nil), reasonImagePull, "spec.image mysql:latest", true},
		"kubelet's other reason for it": {
			podWith(one(waiting(children.ContainerInitialize, "ImagePullBackOff", `Back-off pulling image "mysql:nope"`)), nil), reasonImagePull, "spec.image mysql:latest", true},
		"the operator's own image": {
			podWith(one(waiting(children.ContainerPrepare, "ErrImageNeverPull", "")), nil), reasonImagePull, "the operator's image", true},
		"an image without mysqld": {
			podWith(one(looping(children.ContainerInitialize, "StartError", `failed to create containerd task: exec: "mysqld": executable file not found in $PATH`, 128)), nil), reasonImageUnusable, "PATH", true},
		"an agent image of another release": {
			podWith(one(looping(children.ContainerPrepare, "StartError", `failed to create containerd task: exec: "/mysql-operator-member": stat /mysql-operator-member: no such file or directory`, 128)), nil),
			reasonPrepareFailed, "--agent-image must name an image of the operator's release", true},
		"an agent image of another release, later": {
			podWith(nil, one(looping(children.ContainerAgent, "StartError", `exec: "/mysql-operator-member": no such file or directory`, 128))), reasonPrepareFailed, "container agent of db-0", true},
		"a node that runs no program of an emptyDir": {
			podWith(nil, one(looping(children.ContainerMysqld, "StartError", `exec: "/opt/mysql-operator/mysql-operator-supervisor": permission denied`, 128))), reasonPrepareFailed, "noexec", true},
		"mysqld cannot be started by process 1": {
			podWith(nil, one(looping(children.ContainerMysqld, "Error", "mysql-operator-supervisor: [ERROR] start the program: fork/exec /usr/sbin/mysqld: resource temporarily unavailable\n", 127))),
			reasonServerFailed, "resource temporarily unavailable", false},
		"a Secret that is gone": {
			podWith(one(waiting(children.ContainerPrepare, "CreateContainerConfigError", `secret "db-accounts" not found`)), nil), reasonPrepareFailed, "db-accounts", true},
		"a volume whose data is gone": {
			podWith(one(looping(children.ContainerPrepare, "Error", "the volume's member.json says that this member has data, but data is empty", 1)), nil), reasonPrepareFailed, "member.json", true},
		"a setting that mysqld does not know": {
			podWith(one(looping(children.ContainerInitialize, "Error", "2026-11-21T10:00:01Z 0 [ERROR] [MY-000067] [Server] unknown variable 'max_conections=5'.\n2026-11-21T10:00:02Z 0 [ERROR] [MY-010119] [Server] Aborting\n", 7)), nil),
			reasonSettings, "max_conections", true},
		"an older release than the data's": {
			podWith(nil, one(looping(children.ContainerMysqld, "Error", newerData, 1))), reasonDowngrade, "Cannot boot server version 80400", true},
		"too little memory": {
			podWith(nil, one(looping(children.ContainerMysqld, "OOMKilled", "", 137))), reasonServerFailed, "spec.resources.limits.memory", false},
		"mysqld fails": {
			podWith(nil, one(looping(children.ContainerMysqld, "Error", "2026-11-21T10:00:01Z 0 [ERROR] [MY-012574] [InnoDB] Unable to lock ./ibdata1 error: 11\n", 1))), reasonServerFailed, "Unable to lock", false},
		"a node with too many mysqlds": {
			podWith(nil, one(looping(children.ContainerMysqld, "Error", noRequests, 1))), reasonServerFailed, "Cannot initialize AIO sub-system; the node has no asynchronous I/O requests left for another mysqld: raise fs.aio-max-nr", false},
		"such a node, for a new member": {
			podWith(one(looping(children.ContainerInitialize, "Error", noRequests, 1)), nil), reasonSettings, `innodb_use_native_aio: "OFF" in spec.config`, true},
		"mysqld was killed, or restarts after a copy": {
			podWith(nil, one(ended(children.ContainerMysqld, "Error", "", 137))), "", "", false},
		"mysqld stopped cleanly": {
			podWith(nil, one(ended(children.ContainerMysqld, "Completed", "", 0))), "", "", false},
		"a failure of long ago": {
			func() observed {
				seen := observed{pods: []corev1.Pod{readyPod("db-0")}}
				seen.pods[0].Status.ContainerStatuses[0].LastTerminationState = ended(children.ContainerMysqld, "Error", newerData, 1).State
				return seen
			}(), "", "", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := aCluster(1)
			got := diagnose(cluster, test.seen)
			if test.reason == "" {
				if got != nil {
					t.Errorf("got %+v, want nothing", got)
				}
				return
			}
			if got == nil || got.Reason != test.reason || got.Stalled != test.stalled || !strings.Contains(got.Message, test.says) {
				t.Errorf("got %+v, want %s (stalled %t) with %q", got, test.reason, test.stalled, test.says)
			}
		})
	}
}

func TestTheSameFaultAlwaysReadsTheSame(t *testing.T) {
	t.Parallel()
	later := strings.ReplaceAll(newerData, "2026-11-21T10:00", "2026-12-24T18:30")
	if lastLines(newerData) != lastLines(later) {
		t.Errorf("%q differs from %q", lastLines(newerData), lastLines(later))
	}
	if got := lastLines(newerData); strings.Contains(got, "2026") || strings.Contains(got, "System") {
		t.Errorf("got %q, want the errors without their times", got)
	}
}

// The API server returns a status that is not valid text as something else, so the operator would write it again and again.
func TestQuotesStayValidText(t *testing.T) {
	t.Parallel()
	for shift := range 4 {
		got := lastLines(strings.Repeat("a", shift) + strings.Repeat("密码🔑", 300))
		if !utf8.ValidString(got) {
			t.Errorf("shifted by %d: cut in the middle of a character: %q", shift, got[len(got)-12:])
		}
		if len(got) > longestQuote+len("…") {
			t.Errorf("it is %d bytes long", len(got))
		}
	}
	if got := lastLines("table \xff\xfe is broken"); !utf8.ValidString(got) {
		t.Errorf("got %q", got)
	}
}

// TestALostPrimaryHasAReason: a user who may have it replaced reads what Kubernetes knows about its Pod.
func TestALostPrimaryHasAReason(t *testing.T) {
	t.Parallel()
	full := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available"}
	lost := replication.Decision{
		Record: replication.Record{Epoch: 1, Revision: 9, Primary: "db-0"},
		Note:   &replication.Note{Reason: replication.ReasonPrimaryDown, Message: "it has not answered", Request: "db-0.1.9"},
	}
	for name, test := range map[string]struct {
		seen observed
		want string
	}{
		"its node does not answer": {podWith(nil, nil), "it has not answered. If its node"},
		"no node has room":         {podWith(nil, nil, full), "it has not answered; no node can take db-0: 0/3 nodes are available. If its node"},
		"its Pod is gone":          {observed{}, "it has not answered; its Pod does not exist. If its node"},
	} {
		if note := (passResult{cluster: aCluster(2), seen: test.seen, decision: lost}).note(); !strings.Contains(note.Message, test.want) {
			t.Errorf("%s: %s", name, note.Message)
		}
	}
}
