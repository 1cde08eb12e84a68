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

// step is what a pass has to do.
type step string

const (
	// stepWait: there is no ConfigMap. Nothing is restarted: Pods that mount it could not start.
	stepWait step = "wait"
	// stepAdopt: the monitor sees this ConfigMap for the first time. What the Pods run with is taken to be its data.
	stepAdopt step = "adopt"
	// stepRest: the Pods are in line with the data.
	stepRest step = "rest"
	// stepBegin: the data changed. A restart is planned.
	stepBegin step = "begin"
	// stepContinue: a restart for this very data is under way.
	stepContinue step = "continue"
)

// nextStep decides by the status, the monitor's only memory, and by the ConfigMap as it is now. The order of the cases matters: while
// a restart is under way the Pods may run with either data, so that even a return to the data before it is a change.
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
	// treatRoll: what made the Pod replaces all its Pods by itself when their template changes.
	treatRoll treatment = "roll"
	// treatEvict: the Pod is evicted, and what made it makes another.
	treatEvict treatment = "evict"
	// treatLeave: the Pod is left alone.
	treatLeave treatment = "leave"
)

// origin is what made a Pod.
type origin struct {
	kind, name string
	uid        types.UID
	treatment  treatment
	// why is the reason for leaving the Pod alone, and what a person can do.
	why string
}

// pod is what matters of a Pod.
type pod struct {
	name   string
	uid    types.UID
	labels labels.Set
	// over Pods have ended; ending ones are about to.
	over, ending, ready bool
	origin              origin
}

// sibling is another monitor of the same ConfigMap that has planned a restart for the same version of it.
type sibling struct {
	selector labels.Selector
	planned  map[types.UID]bool
}

// maxWorkloads bounds a plan: it is kept in the status, which etcd does not take beyond 1.5 MiB.
const maxWorkloads = 1000

// plan decides what a restart consists of: each Deployment, StatefulSet and DaemonSet once, every other Pod by itself. Pods that are
// over or about to be need no restart, nor do Pods made since a sibling planned for the same version of the ConfigMap: they were made
// with its data.
func plan(running []pod, siblings []sibling, now time.Time) []v1.RestartedWorkload {
	planned := []v1.RestartedWorkload{}
	seen := map[types.UID]bool{}
	for _, one := range running {
		if one.over || one.ending {
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

// isNewer says that the Pod was certainly made after a sibling's plan: the plan names every Pod there was.
func isNewer(one pod, siblings []sibling) bool {
	return slices.ContainsFunc(siblings, func(s sibling) bool {
		return s.selector.Matches(one.labels) && !s.planned[one.uid]
	})
}

// The kinds that are told apart, as ownerReferences name them.
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
	// controller is what controls it, a Deployment most of the time; nil if nothing does.
	controller *metav1.OwnerReference
}

// originOf decides what made a Pod and how the Pod is therefore restarted. controller is the Pod's; set is looked at if that is a
// ReplicaSet. As for a node that is drained, whatever controls a Pod is expected to replace it, but what runs once and to its end.
func originOf(controller *metav1.OwnerReference, set parent) origin {
	if controller == nil {
		return origin{treatment: treatLeave, why: "nothing would make it again: delete and create it yourself, or run it by a Deployment"}
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
		found.why = fmt.Sprintf("ReplicaSet %s, which made it, is gone, so that nothing would make it again", controller.Name)
	case isA(controller, "batch", "Job"):
		found.treatment = treatLeave
		found.why = fmt.Sprintf("it runs to its end and then not again, and Job %s would count its eviction as a failure; later Pods read the new data", controller.Name)
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

// second is a time as the API keeps it.
func second(at time.Time) metav1.Time {
	return metav1.NewTime(at.UTC().Truncate(time.Second))
}
