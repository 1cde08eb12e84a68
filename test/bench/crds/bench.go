package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/mysql-operator/mysql-operator/crds"
	"github.com/mysql-operator/mysql-operator/schema"
	"github.com/mysql-operator/mysql-operator/schema/definitions"
	"github.com/mysql-operator/mysql-operator/test/bench/testbed"
)

const (
	namespace = "default"
	// fillers is how many objects are made at once, and fillLimit how long making them may take.
	fillers   = 8
	fillLimit = 10 * time.Minute
	// hundredth marks the objects that differ from the others.
	hundredth = 100
)

// bench is a control plane with the kind that is measured.
type bench struct {
	*testbed.Bed
	kind schema.Kind
	api  crds.API
}

func newBench(ctx context.Context, o testbed.Options) (bench, error) {
	kinds, err := schema.Select([]string{"MySQLCluster"})
	if err != nil {
		return bench{}, err
	}
	bed, err := testbed.Up(ctx, o)
	if err != nil {
		return bench{}, err
	}
	api, err := crds.NewAPI(bed.Config)
	return bench{Bed: bed, kind: kinds[0], api: api}, err
}

func (b bench) objects() dynamic.ResourceInterface {
	return b.Admin.Resource(b.kind.GVR()).Namespace(namespace)
}

// install lets the operator itself bring its definitions.
func (b bench) install(ctx context.Context) error {
	_, err := b.bootOnce(ctx)
	return err
}

// unchanged makes sure that the definitions of the cluster are those of the operator: nothing is left to do for it.
func (b bench) unchanged(ctx context.Context) error {
	defined, err := definitions.Load(schema.Kinds())
	if err != nil {
		return err
	}
	plans, err := crds.Installer{API: b.api}.Plan(ctx, defined)
	if err != nil {
		return err
	}
	for _, one := range plans {
		if decision := one.Plan.Decision(); decision.Reason != crds.ReasonUnchanged {
			return fmt.Errorf("measure boots with definitions unchanged: %s: %s %s: %s", one.Definition.Name(), decision.Action, decision.Reason, decision.Message)
		}
	}
	return nil
}

// fill makes the objects, as users write them.
func (b bench) fill(ctx context.Context, count int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, fillLimit, fmt.Errorf("not within %s", fillLimit))
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(fillers)
	for number := range count {
		group.Go(func() error {
			if _, err := b.objects().Create(ctx, b.object(number), metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("create %s %d of %d: %w", b.kind.Kind, number+1, count, errors.Join(err, context.Cause(ctx)))
			}
			return nil
		})
	}
	return group.Wait()
}

// object is a cluster that the operator leaves alone, should it get so far. Every hundredth sets resources.
func (b bench) object(number int) *unstructured.Unstructured {
	spec := map[string]any{"secret": "root", "paused": true, "config": map[string]any{"max_connections": "500", "innodb_buffer_pool_size": "1G"}}
	if number%hundredth == 0 {
		spec["resources"] = map[string]any{"requests": map[string]any{"cpu": "500m"}}
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": fmt.Sprintf("cluster-%05d", number), "namespace": namespace}, "spec": spec,
	}}
	object.SetGroupVersionKind(b.kind.GVK())
	return object
}

// marked is how many of so many objects set resources.
func marked(objects int) int { return (objects + hundredth - 1) / hundredth }
