package configmonitor

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/mysql-operator/mysql-operator/schema/magalix/v1"
)

// step is what a pass must do.
type step string

const (
	// stepWait: there is no ConfigMap. The operator restarts nothing: Pods that mount the ConfigMap could not start.
	stepWait step = "wait"
	// stepAdopt: the monitor sees this ConfigMap for the first time. It assumes that the Pods run with the current data.
	stepAdopt step = "adopt"
	// stepRest: the Pods match the data.
	stepRest step = "rest"
	// stepBegin: the data changed. The operator must plan a restart.
	stepBegin step = "begin"
	// stepContinue: a restart for exactly this data is in progress.
	stepContinue step = "continue"
)

// nextStep decides from the status, which is the monitor's only memory, and from the current ConfigMap. The order of the cases matters:
// during a restart, Pods may run with the old or the new data, so even a change back to the old data is a change.
func nextStep(status v1.ConfigMonitorStatus, now config) step {
	switch {
	case !now.found:
		return stepWait
	case status.ObservedConfigMap != now.name || status.ObservedHash == "":
		return stepAdopt
	case isUnderWay(status.LastRestart) && status.LastRestart.Hash == now.hash:
		return stepContinue
	case isUnderWay(status.LastRestart):
		return stepBegin
	case status.ObservedHash != now.hash:
		return stepBegin
	default:
		return stepRest
	}
}

func isUnderWay(restart *v1.Restart) bool {
	return restart != nil && restart.CompletionTime == nil
}

// treatment is how a Pod is restarted.
type treatment string

const (
	// treatRoll: the Pod's controller replaces all its Pods when their template changes.
	treatRoll treatment = "roll"
	// treatEvict: the operator evicts the Pod, and the Pod's controller creates another.
	treatEvict treatment = "evict"
	// treatLeave: the operator leaves the Pod alone.
	treatLeave treatment = "leave"
)

// origin is the controller that created a Pod, and how to restart the Pod.
type origin struct {
	kind, name string
	uid        types.UID
	treatment  treatment
	// why is the reason for leaving the Pod alone, and what a user can do.
	why string
}

// pod has the fields of a Pod that decisions need.
type pod struct {
	name   string
	uid    types.UID
	labels labels.Set
	// ended: the Pod has succeeded or failed. ending: it is being deleted.
	ended, ending, ready bool
	origin               origin
}

// sibling is another monitor of the same ConfigMap that has planned a restart for the same version.
type sibling struct {
	selector labels.Selector
	planned  map[types.UID]bool
}

// maxWorkloads limits a plan. The plan is in the status, and etcd takes no object of more than 1.5 MiB.
const maxWorkloads = 1000

// plan decides which workloads a restart has: each Deployment, StatefulSet and DaemonSet once, each other Pod separately. Pods that have
// ended or are being deleted need no restart. Nor do Pods created after a sibling's plan for the same version of the ConfigMap: they have
// its data.
func plan(running []pod, siblings []sibling, now time.Time) []v1.RestartedWorkload {
	planned := []v1.RestartedWorkload{}
	seen := map[types.UID]bool{}
	for _, one := range running {
		if one.ended || one.ending {
			continue
		}
		entry := v1.RestartedWorkload{Kind: kindPod, Name: one.name, UID: one.uid, Action: v1.ActionPending, Time: second(now)}
		switch one.origin.treatment {
		case treatRoll:
			entry.Kind, entry.Name, entry.UID = one.origin.kind, one.origin.name, one.origin.uid
		case treatEvict:
			if isNewer(one, siblings) {
				continue
			}
			entry.Owner = one.origin.String()
		case treatLeave:
			entry.Action, entry.Message = v1.ActionLeftAlone, one.origin.why
		}
		if !seen[entry.UID] {
			seen[entry.UID] = true
			planned = append(planned, entry)
		}
	}
	slices.SortFunc(planned, func(a, b v1.RestartedWorkload) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return planned
}

// isNewer reports whether the Pod was certainly created after a sibling's plan. That plan names every Pod that existed then.
func isNewer(one pod, siblings []sibling) bool {
	return slices.ContainsFunc(siblings, func(s sibling) bool {
		return s.selector.Matches(one.labels) && !s.planned[one.uid]
	})
}

// The kinds that have a treatment of their own, as ownerReferences name them.
const (
	kindPod         = "Pod"
	kindDeployment  = "Deployment"
	kindStatefulSet = "StatefulSet"
	kindDaemonSet   = "DaemonSet"
	kindReplicaSet  = "ReplicaSet"
)

// parent is a Pod's ReplicaSet.
type parent struct {
	exists bool
	// controller controls the ReplicaSet, in most cases a Deployment; nil if it has no controller.
	controller *metav1.OwnerReference
}

// originOf decides which controller created a Pod, and how to restart the Pod. controller is the Pod's. If that is a ReplicaSet, originOf
// uses set. As when a node is drained, each controller is expected to replace its Pod, except one whose Pods run once and to their end.
func originOf(controller *metav1.OwnerReference, set parent) origin {
	if controller == nil {
		return origin{treatment: treatLeave, why: "no controller would create it again: delete and create it yourself, or run it by a Deployment"}
	}
	if isA(controller, "apps", kindReplicaSet) && isA(set.controller, "apps", kindDeployment) {
		return origin{kind: kindDeployment, name: set.controller.Name, uid: set.controller.UID, treatment: treatRoll}
	}
	found := origin{kind: controller.Kind, name: controller.Name, uid: controller.UID, treatment: treatEvict}
	switch {
	case isA(controller, "apps", kindStatefulSet), isA(controller, "apps", kindDaemonSet):
		found.treatment = treatRoll
	case isA(controller, "apps", kindReplicaSet) && !set.exists:
		found.treatment = treatLeave
		found.why = fmt.Sprintf("ReplicaSet %s, which created it, is gone: no controller would create it again", controller.Name)
	case isA(controller, "batch", "Job"):
		found.treatment = treatLeave
		found.why = fmt.Sprintf("it runs to its end, and Job %s would count its eviction as a failure; later Pods read the new data", controller.Name)
	case isA(controller, "", "Node"):
		found.treatment = treatLeave
		found.why = fmt.Sprintf("it is a static Pod of node %s: restart it there", controller.Name)
	}
	return found
}

func isA(owner *metav1.OwnerReference, group, kind string) bool {
	return owner != nil && apischema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() == apischema.GroupKind{Group: group, Kind: kind}
}

// String returns "Kind/name".
func (o origin) String() string {
	return o.kind + "/" + o.name
}

// second returns a time with the API's precision.
func second(at time.Time) metav1.Time {
	return metav1.NewTime(at.UTC().Truncate(time.Second))
}
