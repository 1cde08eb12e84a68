package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
)

// refusal is Kubernetes' refusal to create a Pod: because of a quota that is used up, a security policy or an admission webhook. The
// StatefulSet's status does not report it; the events of its controller do.
type refusal struct{ pod, why string }

// observeRefusal reads the events of the StatefulSet while a Pod is missing that its controller must have tried to create. If the operator
// may not list events, that is no problem of the cluster: the status then only says less.
func (r *reconciler) observeRefusal(ctx context.Context, n children.Names, seen *observed) error {
	missing := missingPods(n, *seen)
	if len(missing) == 0 {
		return nil
	}
	set, found := r.reader.Cached(children.StatefulSets()).Get(n.Namespace, n.Cluster)
	if !found {
		return nil
	}
	items, err := r.reader.Regarding(ctx, set)
	if err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	told, err := transfer.DecodeEvents(items)
	if err != nil {
		return err
	}
	if found := findRefusal(missing, told); found != nil {
		seen.refused = found.problem()
		return nil
	}
	return r.observeForeignPod(ctx, n, missing[0], seen)
}

// observeForeignPod checks whether another owner has a Pod with a member's name. The StatefulSet controller does not report that.
func (r *reconciler) observeForeignPod(ctx context.Context, n children.Names, member string, seen *observed) error {
	pod, err := r.reader.Get(ctx, children.Pods(), n.Namespace, member)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if controller := metav1.GetControllerOfNoCopy(pod); controller == nil || controller.UID != seen.set.UID {
		foreign := &reconcile.ForeignError{Resource: children.Pods(), Namespace: n.Namespace, Name: member}
		if controller != nil {
			foreign.Controller = controller.Kind + "/" + controller.Name
			foreign.Predecessor = controller.Kind == "StatefulSet" && controller.Name == n.Cluster
		}
		seen.refused = report.FromError(foreign)
	}
	return nil
}

// missingPods names the Pods that do not exist although the StatefulSet controller knows that it must create them.
func missingPods(n children.Names, seen observed) []string {
	if seen.set == nil || seen.set.Status.ObservedGeneration < seen.set.Generation {
		return nil
	}
	var missing []string
	for ordinal := range scaleOf(seen) {
		if _, found := seen.pod(n.Member(ordinal)); !found {
			missing = append(missing, n.Member(ordinal))
		}
	}
	return missing
}

// findRefusal finds the first missing Pod whose latest event reports that the controller could not create it.
func findRefusal(missing []string, told []corev1.Event) *refusal {
	for _, pod := range missing {
		isOther := func(event corev1.Event) bool { return !strings.Contains(event.Message, " Pod "+pod+" ") }
		if message, refused := transfer.LastRefusal(slices.DeleteFunc(slices.Clone(told), isOther)); refused {
			return &refusal{pod: pod, why: refusalCause(message)}
		}
	}
	return nil
}

// refusalCause removes the text that every such message begins with ("create Pod NAME in StatefulSet NAME failed error: ").
func refusalCause(message string) string {
	if _, cause, found := strings.Cut(message, "failed error: "); found {
		return cause
	}
	return message
}

func (r refusal) problem() *report.Problem {
	return &report.Problem{Reason: protocol.ReasonPodsNotCreated, Message: fmt.Sprintf("Kubernetes does not create Pod %s: %s; fix that, and Kubernetes tries again within minutes", r.pod, r.why), Stalled: true}
}
