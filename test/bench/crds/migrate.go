package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/yaml"

	"github.com/mysql-operator/mysql-operator/crds"
	"github.com/mysql-operator/mysql-operator/crds/migration"
	"github.com/mysql-operator/mysql-operator/schema"
	"github.com/mysql-operator/mysql-operator/schema/definitions"
	"github.com/mysql-operator/mysql-operator/test/bench/figure"
)

const (
	// migrationLimit bounds the rewriting of all objects.
	migrationLimit = 30 * time.Minute
	// second is the version that a later release would add.
	second = "v2"
	// pageSize is how many objects are listed at once.
	pageSize = 500
)

// measureMigration has all objects rewritten in a second version as fast as the API server takes it, and then back as the operator does.
func (b bench) measureMigration(ctx context.Context, o options, out io.Writer) error {
	unlimited, err := b.migrate(ctx, o, second, func(m *migration.Migrator) { m.Rate, m.Settle = -1, -1 })
	if err != nil {
		return err
	}
	byDefault, err := b.migrate(ctx, o, b.kind.Version, func(*migration.Migrator) {})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\nrewrote %d objects without limit in %.1f s, and by default (%.0f objects/s after %s of waiting) in %.1f s\n\n",
		o.objects, unlimited.Seconds(), migration.DefaultRate, migration.DefaultSettle, byDefault.Seconds())
	figure.Print(out, "migration_rate", float64(o.objects)/unlimited.Seconds(), "objects/s")
	figure.Print(out, "migration_by_default", byDefault.Seconds(), "s")
	return nil
}

// migrate makes the version the one for storing, has all objects rewritten, and returns how long that took. Whether it happened is asked of
// the objects themselves.
func (b bench) migrate(ctx context.Context, o options, version string, tune func(*migration.Migrator)) (time.Duration, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, migrationLimit, fmt.Errorf("not within %s", migrationLimit))
	defer cancel()
	if err := b.storeIn(ctx, version); err != nil {
		return 0, err
	}
	definition, err := b.api.Get(ctx, b.kind.DefinitionName())
	if err != nil {
		return 0, fmt.Errorf("read definition %s: %w", b.kind.DefinitionName(), err)
	}
	identity := definitions.Identity()
	migrator, err := migration.New(b.Config, identity.FieldManager()+"-migration", identity.MigrationAnnotation())
	if err != nil {
		return 0, err
	}
	tune(&migrator)
	began := time.Now()
	result, err := migrator.Run(ctx, definition.Name)
	took := time.Since(began)
	if err != nil {
		return 0, err
	}
	if done := result.Progress.Done; !result.Trimmed || done != o.objects {
		return 0, fmt.Errorf("migrate to %s: %d of %d objects were rewritten, storedVersions trimmed: %v", version, done, o.objects, result.Trimmed)
	}
	rewritten, err := b.rewrittenSince(ctx, definition.ResourceVersion)
	if err == nil && rewritten != o.objects {
		err = fmt.Errorf("migrate to %s: only %d of %d objects were written since", version, rewritten, o.objects)
	}
	return took, err
}

// storeIn applies the definition as a later release would, and waits until it is in force.
func (b bench) storeIn(ctx context.Context, version string) error {
	former, err := b.api.Get(ctx, b.kind.DefinitionName())
	if err != nil {
		return fmt.Errorf("read definition %s: %w", b.kind.DefinitionName(), err)
	}
	order, err := strconv.Atoi(former.Annotations[definitions.Identity().VersionAnnotation()])
	if err != nil {
		return fmt.Errorf("read the order of definition %s: %w", former.Name, err)
	}
	shipped, err := schema.Definition(b.kind)
	if err != nil {
		return err
	}
	document, err := release(shipped, order+1, version)
	if err != nil {
		return err
	}
	later, err := definitions.Identity().Parse(document, b.kind.Version)
	if err != nil {
		return err
	}
	_, err = crds.Installer{API: b.api}.Ensure(ctx, []crds.Definition{later})
	return err
}

// release returns the definition as it could come with a later release: of that order, with a second version that differs by name only,
// and objects stored in the one that is named.
func release(shipped []byte, order int, stores string) ([]byte, error) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(shipped, definition); err != nil {
		return nil, fmt.Errorf("parse the definition: %w", err)
	}
	if count := len(definition.Spec.Versions); count != 1 {
		return nil, fmt.Errorf("add version %s to definition %s: it has %d versions, which the benchmark does not know to handle", second, definition.Name, count)
	}
	definition.Annotations[definitions.Identity().VersionAnnotation()] = strconv.Itoa(order)
	added := definition.Spec.Versions[0].DeepCopy()
	added.Name = second
	definition.Spec.Versions = append(definition.Spec.Versions, *added)
	known := false
	for at := range definition.Spec.Versions {
		version := &definition.Spec.Versions[at]
		version.Storage = version.Name == stores
		known = known || version.Storage
	}
	if !known {
		return nil, fmt.Errorf("store objects of definition %s in %s: it has no such version", definition.Name, stores)
	}
	return yaml.Marshal(definition)
}

// rewrittenSince counts the objects that were written after the resourceVersion. With one etcd, as here, those of definitions and of
// their objects are of the same count.
func (b bench) rewrittenSince(ctx context.Context, began string) (int, error) {
	count, next := 0, ""
	for {
		page, err := b.objects().List(ctx, metav1.ListOptions{Limit: pageSize, Continue: next})
		if err != nil {
			return 0, fmt.Errorf("list %s: %w", b.kind.Plural, err)
		}
		for i := range page.Items {
			order, err := resourceversion.CompareResourceVersion(page.Items[i].GetResourceVersion(), began)
			if err != nil {
				return 0, fmt.Errorf("compare resourceVersions of %s: %w", page.Items[i].GetName(), err)
			}
			if order > 0 {
				count++
			}
		}
		if next = page.GetContinue(); next == "" {
			return count, nil
		}
	}
}
