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
	"github.com/mysql-operator/mysql-operator/test/bench/testbed"
)

// removeLimit bounds the removal of the definitions.
const removeLimit = time.Minute

// bootOnce starts the operator, watches it come up, and stops it.
func (b bench) bootOnce(ctx context.Context) (boot, error) {
	operator, err := b.Start(ctx, "all")
	if err != nil {
		return boot{}, err
	}
	watching, cancel := context.WithTimeoutCause(ctx, testbed.BootLimit, fmt.Errorf("not up within %s", testbed.BootLimit))
	defer cancel()
	var seen boot
	group, watching := errgroup.WithContext(watching)
	group.Go(func() error { return b.watchServed(watching, operator.Began, &seen) })
	group.Go(func() error { return watchSaid(watching, operator, &seen) })
	err = group.Wait()
	if err != nil {
		err = fmt.Errorf("%w%s", err, operator.Tail())
	}
	return seen, errors.Join(err, operator.Stop())
}

// watchServed asks for the kinds until the API server answers for all.
func (b bench) watchServed(ctx context.Context, began time.Time, seen *boot) error {
	for _, kind := range b.kinds {
		// One kind after the other: the last one's moment is what counts, and the API server is busy enough.
		if err := testbed.Until(ctx, kind.Plural+" to be served", func() bool { return b.isServed(ctx, kind) }); err != nil {
			return err
		}
	}
	seen.served = time.Since(began)
	return nil
}

// isServed reports whether a client can use the kind: its resources can be listed, and discovery names it, so that kubectl finds it.
func (b bench) isServed(ctx context.Context, kind schema.Kind) bool {
	if _, err := b.Admin.Resource(kind.GVR()).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
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
func watchSaid(ctx context.Context, operator *testbed.Process, seen *boot) error {
	return testbed.Until(ctx, "the operator to be ready", func() bool {
		checks, ready := operator.Readiness(ctx)
		if checks[testbed.DefinitionsCheck] && seen.said == 0 {
			seen.said = time.Since(operator.Began)
		}
		if !ready || !checks[testbed.DefinitionsCheck] || !checks[testbed.CachesCheck] {
			return false
		}
		seen.ready = time.Since(operator.Began)
		return true
	})
}

// removeDefinitions makes the cluster know nothing of the kinds, as the administrator, and returns when it does not.
func (b bench) removeDefinitions(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, removeLimit, fmt.Errorf("not within %s", removeLimit))
	defer cancel()
	definitions := b.Admin.Resource(apischema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for _, kind := range b.kinds {
		if err := definitions.Delete(ctx, kind.DefinitionName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete definition %s: %w", kind.DefinitionName(), err)
		}
	}
	for _, kind := range b.kinds {
		err := wait.PollUntilContextCancel(ctx, testbed.Look, true, func(ctx context.Context) (bool, error) {
			_, known := definitions.Get(ctx, kind.DefinitionName(), metav1.GetOptions{})
			_, listed := b.Admin.Resource(kind.GVR()).List(ctx, metav1.ListOptions{Limit: 1})
			return apierrors.IsNotFound(known) && apierrors.IsNotFound(listed), nil
		})
		if err != nil {
			return fmt.Errorf("wait for %s to be unknown: %w", kind.Plural, context.Cause(ctx))
		}
	}
	return nil
}
