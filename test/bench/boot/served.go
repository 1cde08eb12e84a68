package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/mysql-operator/mysql-operator/schema"
)

// removeLimit bounds the removal of the definitions.
const removeLimit = time.Minute

// The operator's checks in /readyz that a boot ends with: the first, and the last to be there at all.
const (
	definitionsCheck = "definitions"
	cachesCheck      = "caches"
)

// bootOnce starts the operator, watches it come up, and stops it.
func (b *bench) bootOnce(ctx context.Context) (boot, error) {
	operator, err := b.start(ctx)
	if err != nil {
		return boot{}, err
	}
	watching, cancel := context.WithTimeoutCause(ctx, bootLimit, fmt.Errorf("not up within %s", bootLimit))
	defer cancel()
	var seen boot
	group, watching := errgroup.WithContext(watching)
	group.Go(func() error { return b.watchServed(watching, operator.began, &seen) })
	group.Go(func() error { return watchSaid(watching, operator, &seen) })
	err = group.Wait()
	if err != nil {
		err = fmt.Errorf("%w%s", err, operator.tail())
	}
	return seen, errors.Join(err, operator.stop())
}

// watchServed asks for the kinds until the API server answers for all.
func (b *bench) watchServed(ctx context.Context, began time.Time, seen *boot) error {
	for _, kind := range b.kinds {
		// One kind after the other: the last one's moment is what counts, and the API server is busy enough.
		if err := until(ctx, kind.Plural+" to be served", func() bool { return b.isServed(ctx, kind) }); err != nil {
			return err
		}
	}
	seen.served = time.Since(began)
	return nil
}

// isServed says whether a client can use the kind: its resources can be listed, and discovery names it, so that kubectl finds it.
func (b *bench) isServed(ctx context.Context, kind schema.Kind) bool {
	if _, err := b.admin.Resource(kind.GVR()).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		return false
	}
	list, err := b.discovery.ServerResourcesForGroupVersion(kind.GVK().GroupVersion().String())
	if err != nil {
		return false
	}
	for _, resource := range list.APIResources {
		if resource.Name == kind.Plural && resource.Kind == kind.Kind {
			return true
		}
	}
	return false
}

// watchSaid asks the operator how far it is.
func watchSaid(ctx context.Context, operator *process, seen *boot) error {
	return until(ctx, "the operator to be ready", func() bool {
		checks, ready := operator.readiness(ctx)
		if checks[definitionsCheck] && seen.said == 0 {
			seen.said = time.Since(operator.began)
		}
		if !ready || !checks[definitionsCheck] || !checks[cachesCheck] {
			return false
		}
		seen.ready = time.Since(operator.began)
		return true
	})
}

// until asks again and again, tightly.
func until(ctx context.Context, what string, holds func() bool) error {
	for !holds() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
		case <-time.After(look):
		}
	}
	return nil
}

// removeDefinitions makes the cluster know nothing of the kinds, as the administrator, and returns when it does not.
func (b *bench) removeDefinitions(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, removeLimit, fmt.Errorf("not within %s", removeLimit))
	defer cancel()
	definitions := b.admin.Resource(apischema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for _, kind := range b.kinds {
		if err := definitions.Delete(ctx, kind.DefinitionName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete definition %s: %w", kind.DefinitionName(), err)
		}
	}
	for _, kind := range b.kinds {
		err := wait.PollUntilContextCancel(ctx, look, true, func(ctx context.Context) (bool, error) {
			_, known := definitions.Get(ctx, kind.DefinitionName(), metav1.GetOptions{})
			_, listed := b.admin.Resource(kind.GVR()).List(ctx, metav1.ListOptions{Limit: 1})
			return apierrors.IsNotFound(known) && apierrors.IsNotFound(listed), nil
		})
		if err != nil {
			return fmt.Errorf("wait for %s to be unknown: %w", kind.Plural, context.Cause(ctx))
		}
	}
	return nil
}
