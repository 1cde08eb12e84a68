package mycustomresource

import (
	"fmt"

	v1 "github.com/mysql-operator/mysql-operator/schema/poc/v1"
)

// The reasons of the conditions. Status, events and docs/mycustomresource.md use the same words.
const (
	reasonPodFound            = "PodFound"
	reasonPodNotFound         = "PodNotFound"
	reasonNamespaceNotWatched = "NamespaceNotWatched"
)

// decision is what the operator reports. The message gives neither the Pod's namespace nor the number of Pods: if these change, the status
// must stay the same.
type decision struct {
	// healthy is true while the Pod exists. stalled is true if the operator cannot know until a user acts.
	healthy, stalled bool
	reason, message  string
}

// decide judges what the pass observed. The order of the cases matters: a Pod that the operator saw exists, even if the operator does not
// see all namespaces.
func decide(spec v1.MyCustomResourceSpec, seen observed) decision {
	switch {
	case seen.exists:
		return decision{healthy: true, reason: reasonPodFound, message: fmt.Sprintf("a Pod named %q exists%s", spec.Name, inNamespace(spec))}
	case spec.Namespace != "" && !seen.watched:
		return decision{stalled: true, reason: reasonNamespaceNotWatched, message: fmt.Sprintf("spec.namespace: the operator does not work in namespace %q and cannot tell whether a Pod named %q exists there: add the namespace to the operator's --namespaces, or name another", spec.Namespace, spec.Name)}
	case !seen.watched:
		return decision{reason: reasonPodNotFound, message: fmt.Sprintf("no Pod named %q exists in the namespaces that the operator works in (--namespaces)", spec.Name)}
	default:
		return decision{reason: reasonPodNotFound, message: fmt.Sprintf("no Pod named %q exists%s", spec.Name, inNamespace(spec))}
	}
}

func inNamespace(spec v1.MyCustomResourceSpec) string {
	if spec.Namespace == "" {
		return ""
	}
	return fmt.Sprintf(" in namespace %q", spec.Namespace)
}
