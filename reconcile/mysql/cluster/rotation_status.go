package cluster

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// conditionRotation is present while the operator replaces a cluster's CA, or while an annotation about that cannot be parsed.
const conditionRotation = "CertificateRotation"

const (
	// requestInvalid is the reason of the condition if an annotation cannot be parsed.
	requestInvalid = "InvalidRequest"
	// eventRotated is the event of a rotation that is complete.
	eventRotated = "CertificateRotationCompleted"
)

// rotation is the content of the condition.
type rotation struct {
	is              metav1.ConditionStatus
	reason, message string
}

// rotationOf returns the state of a rotation, and which annotation cannot be parsed; nil if there is nothing to report.
func rotationOf(n children.Names, last nextStep, asked rotationRequest) *rotation {
	switch {
	case last.waits != "" && asked.fault != "":
		return &rotation{metav1.ConditionTrue, string(last.waits), last.message(n) + "; " + asked.fault}
	case last.waits != "":
		return &rotation{metav1.ConditionTrue, string(last.waits), last.message(n)}
	case asked.fault != "":
		return &rotation{metav1.ConditionFalse, requestInvalid, asked.fault}
	}
	return nil
}

// rotationIn returns the content of the condition in a status; nil if there is none.
func rotationIn(status v1.MySQLClusterStatus) *rotation {
	told := meta.FindStatusCondition(status.Conditions, conditionRotation)
	if told == nil {
		return nil
	}
	return &rotation{told.Status, told.Reason, told.Message}
}

// describeRotation sets or removes the condition CertificateRotation.
func describeRotation(status *v1.MySQLClusterStatus, now *rotation) {
	if now == nil {
		conditionsOf(status).Remove(conditionRotation)
		return
	}
	conditionsOf(status).Set(conditionRotation, now.is, now.reason, now.message)
}

// rotationEvents turns changes of a rotation into events.
func rotationEvents(before, after v1.MySQLClusterStatus) []reconcile.Event {
	was, is := meta.FindStatusCondition(before.Conditions, conditionRotation), meta.FindStatusCondition(after.Conditions, conditionRotation)
	event := reconcile.Event{Type: reconcile.Normal, Action: "Rotate"}
	switch {
	case is == nil && was != nil && was.Status == metav1.ConditionTrue:
		event.Reason, event.Note = eventRotated, "the old CA is no longer trusted"
	case is != nil && (was == nil || was.Reason != is.Reason || was.Message != is.Message):
		event.Reason, event.Note = is.Reason, is.Message
		if is.Reason == requestInvalid {
			event.Type = reconcile.Warning
		}
	default:
		return nil
	}
	return []reconcile.Event{event}
}

// lostPatience is how long members may take to read which CAs to trust, after the key of the one that they trust was lost. kubelet updates
// a Secret within about a minute.
const lostPatience = 3 * time.Minute

// waitForTrust returns a problem while members cannot trust this operator yet: the key of the CA that they trust is lost, and not all
// running members have the new one. That they do not answer then means nothing, and the operator decides nothing on it; nil otherwise.
func (p certificateState) waitForTrust(cluster v1.MySQLCluster, seen observed) *report.Problem {
	if p.lost.IsZero() || !cluster.Status.HadPrimary() || seen.now.Sub(p.lost) > lostPatience {
		return nil
	}
	for at, address := range seen.addresses() {
		if address != "" && seen.members[at].Status == nil {
			return &report.Problem{Reason: reasonAuthorityLost, Message: fmt.Sprintf("the Secret with the cluster's CA was lost, and the operator created a new CA; waiting until %s trusts it, which takes about a minute. "+
				"mysqld keeps running, and clients need no change", seen.members[at].Name)}
		}
	}
	return nil
}

// usesOf identifies the certificates that all running members use; empty if they differ, or one does not report them. A mysqld whose agent
// has crashed continues with its earlier ones until the agent is back.
func usesOf(seen observed) string {
	uses := ""
	for at := range seen.members {
		if pod, found := seen.pod(seen.members[at].Name); !found || !runs(pod, children.ContainerMysqld) {
			continue
		}
		status := seen.members[at].Status
		if status == nil || status.TLS == "" || uses != "" && uses != status.TLS {
			return ""
		}
		uses = status.TLS
	}
	return uses
}

// isStepDue reports whether the next step of a rotation waited only for what has been done by now: by the members, or by the pass itself,
// which applies the ConfigMap.
func (p certificateState) isStepDue(uses string) bool {
	return p.unpublished || p.awaited && uses == p.digest
}
