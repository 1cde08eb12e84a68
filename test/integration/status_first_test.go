package integration

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/schema"
)

// TestNewObjectsAreAcceptedAtOnce creates objects of all kinds while every full pass hangs: each has conditions all the same.
func TestNewObjectsAreAcceptedAtOnce(t *testing.T) {
	t.Parallel()
	p := newPlace(t, pool.Shared(t), schema.Kinds()...)
	hanging := simply(func(ctx context.Context, _ *reconcile.Client, _ *unstructured.Unstructured) (reconcile.Outcome, error) {
		<-ctx.Done()
		return reconcile.Outcome{}, ctx.Err()
	})
	var controllers []reconcile.Controller
	for _, kind := range schema.Kinds() {
		controllers = append(controllers, reconcile.Controller{Kind: kind, New: hanging})
	}
	p.grant(t, rulesOf(controllers...))
	p.operate(t, func(config *reconcile.Config) { config.Workers = 1 }, controllers...)

	const each = 4 // one of them is in a pass that hangs
	for _, kind := range schema.Kinds() {
		content, err := os.ReadFile("../../deploy/samples/" + strings.ToLower(kind.Kind) + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		sample := sampleOf(t, kind.Kind, string(content))
		sample.SetNamespace(p.namespace)
		api := p.Dynamic.Resource(kind.GVR()).Namespace(p.namespace)
		for number := range each {
			sample.SetName(fmt.Sprintf("new-%d", number))
			if _, err := api.Create(t.Context(), sample, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, kind := range schema.Kinds() {
		soon(t, func(ctx context.Context) string {
			all, err := p.Dynamic.Resource(kind.GVR()).Namespace(p.namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err.Error()
			}
			for _, one := range all.Items {
				if missing := isAccepted(one); missing != "" {
					return fmt.Sprintf("%s %s: %s", kind.Kind, one.GetName(), missing)
				}
			}
			return ""
		})
	}
}

func isAccepted(object unstructured.Unstructured) (missing string) {
	observed, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	if observed != object.GetGeneration() || len(conditions) != 1 {
		return fmt.Sprintf("its status is %v", object.Object["status"])
	}
	ready, _ := conditions[0].(map[string]any)
	if ready["type"] != "Ready" || ready["status"] != "Unknown" || ready["reason"] != reconcile.ReasonAccepted {
		return fmt.Sprintf("its condition is %v", ready)
	}
	return ""
}
