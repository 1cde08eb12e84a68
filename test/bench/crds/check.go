package main

import (
	"context"
	"fmt"
	"io"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/mysql-operator/mysql-operator/crds/objects"
	"github.com/mysql-operator/mysql-operator/test/bench/figure"
)

// checkLimit bounds one look at all objects.
const checkLimit = 10 * time.Minute

// measureCheck looks at all objects as before an update that takes a field away from every hundredth.
func (b bench) measureCheck(ctx context.Context, o options, out io.Writer) error {
	existing, err := b.api.Get(ctx, b.kind.DefinitionName())
	if err != nil {
		return fmt.Errorf("read definition %s: %w", b.kind.DefinitionName(), err)
	}
	narrower, err := without(existing, "resources")
	if err != nil {
		return err
	}
	checker, err := objects.New(b.Config)
	if err != nil {
		return err
	}
	rates := make([]float64, 0, o.checks)
	for range o.checks {
		limited, cancel := context.WithTimeoutCause(ctx, checkLimit, fmt.Errorf("not within %s", checkLimit))
		began := time.Now()
		found, err := checker.Check(limited, existing, narrower)
		took := time.Since(began)
		cancel()
		if err != nil {
			return err
		}
		if found.Seen != o.objects || found.Harmed != marked(o.objects) {
			return fmt.Errorf("check objects: %d were seen, of them %d harmed, of %d and %d that there are", found.Seen, found.Harmed, o.objects, marked(o.objects))
		}
		rates = append(rates, float64(o.objects)/took.Seconds())
	}
	fmt.Fprintf(out, "\nchecked %d objects %d times\n\n", o.objects, o.checks)
	figure.Print(out, "object_check_rate", figure.Percentile(rates, 50), "objects/s")
	return nil
}

// without returns the definition as it would be if spec lacked a field.
func without(definition *apiextensionsv1.CustomResourceDefinition, field string) (*apiextensionsv1.CustomResourceDefinition, error) {
	lacking := definition.DeepCopy()
	for _, version := range lacking.Spec.Versions {
		spec := version.Schema.OpenAPIV3Schema.Properties["spec"].Properties
		if _, found := spec[field]; !found {
			return nil, fmt.Errorf("take spec.%s from %s of definition %s: it has no such field", field, version.Name, definition.Name)
		}
		delete(spec, field)
	}
	return lacking, nil
}
