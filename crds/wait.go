package crds

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Polling starts fast, because a definition is usually served within a few tens of milliseconds. It slows down to reduce the load on the
// API server.
const (
	firstPoll = 20 * time.Millisecond
	lastPoll  = 200 * time.Millisecond
)

// poll calls look until look is done or fails, or the context ends. Then the error says what poll waited for and what look saw last. An
// error of look that may pass (isTransient) counts as something seen, not as a failure.
func poll(ctx context.Context, waitingFor string, look func(context.Context) (done bool, seen string, err error)) error {
	pause, last := firstPoll, "nothing yet"
	for {
		done, seen, err := look(ctx)
		switch {
		case err == nil && done:
			return nil
		case err == nil:
			last = seen
		case ctx.Err() != nil:
			// The end of the wait cancelled the request: what look saw before says more.
		case isTransient(err):
			last = err.Error()
		default:
			return err
		}
		if err := sleep(ctx, pause); err != nil {
			return fmt.Errorf("wait for %s: %w; last seen: %s", waitingFor, err, last)
		}
		pause = min(2*pause, lastPoll)
	}
}

func sleep(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// readiness reports whether the API server has accepted and established a definition. If not yet, seen says what is missing; if the API
// server never will, err says why. Established alone proves nothing after an update, because it stays true. Where the API server reports
// the generation of a condition, it must be the current one.
func readiness(object *apiextensionsv1.CustomResourceDefinition) (ready bool, seen string, err error) {
	if condition := conditionOf(object, apiextensionsv1.NamesAccepted); condition != nil && condition.Status == apiextensionsv1.ConditionFalse {
		return false, "", fmt.Errorf("the API server does not accept the names of definition %s: %s: another definition uses them; "+
			"find it with kubectl get crds, and remove it if it is not needed", object.Name, condition.Message)
	}
	if condition := conditionOf(object, apiextensionsv1.NonStructuralSchema); condition != nil && condition.Status == apiextensionsv1.ConditionTrue {
		return false, "", fmt.Errorf("the API server does not accept the schema of definition %s: %s", object.Name, condition.Message)
	}
	for _, needed := range []apiextensionsv1.CustomResourceDefinitionConditionType{apiextensionsv1.NamesAccepted, apiextensionsv1.Established} {
		condition := conditionOf(object, needed)
		switch {
		case condition == nil:
			return false, fmt.Sprintf("condition %s is missing", needed), nil
		case condition.Status != apiextensionsv1.ConditionTrue:
			return false, fmt.Sprintf("condition %s is %s: %s", needed, condition.Status, condition.Message), nil
		case condition.ObservedGeneration != 0 && condition.ObservedGeneration < object.Generation:
			return false, fmt.Sprintf("condition %s is for generation %d, but the definition has generation %d", needed, condition.ObservedGeneration, object.Generation), nil
		}
	}
	return true, "", nil
}

func conditionOf(object *apiextensionsv1.CustomResourceDefinition, kind apiextensionsv1.CustomResourceDefinitionConditionType) *apiextensionsv1.CustomResourceDefinitionCondition {
	at := slices.IndexFunc(object.Status.Conditions, func(condition apiextensionsv1.CustomResourceDefinitionCondition) bool { return condition.Type == kind })
	if at < 0 {
		return nil
	}
	return &object.Status.Conditions[at]
}

// notServed returns the resources of the definition that are missing in the list, comma-separated; empty if all are served.
func notServed(list *metav1.APIResourceList, definition Definition) string {
	plural := definition.Resource().Resource
	needed := []string{plural}
	if subresources := findVersion(definition.object, definition.Uses).Subresources; subresources != nil {
		if subresources.Status != nil {
			needed = append(needed, plural+"/status")
		}
		if subresources.Scale != nil {
			needed = append(needed, plural+"/scale")
		}
	}
	missing := slices.DeleteFunc(needed, func(name string) bool {
		return slices.ContainsFunc(list.APIResources, func(resource metav1.APIResource) bool { return resource.Name == name })
	})
	return strings.Join(missing, ", ")
}
