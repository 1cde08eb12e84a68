package main

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mysql-operator/mysql-operator/crds"
	"github.com/mysql-operator/mysql-operator/crds/migration"
	"github.com/mysql-operator/mysql-operator/crds/objects"
	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/schema"
	"github.com/mysql-operator/mysql-operator/schema/definitions"
)

// administratorPatience is how long the operator waits, with --crds=check, for an administrator to apply definitions before it gives up and
// is started anew.
const administratorPatience = 15 * time.Minute

// care is what the operator does about its definitions: it brings them at boot, then watches over them, and leads their migration.
type care struct {
	operator
	definitions []crds.Definition
	installer   crds.Installer
	guard       *crds.Guard
	news        *definitionNews
	webhook     *webhook // nil if no kind needs one
}

func (o operator) newCare() (*care, error) {
	defined, err := loadDefinitions(o.kinds)
	if err != nil {
		return nil, err
	}
	webhook, err := o.newWebhook(defined)
	if err != nil {
		return nil, err
	}
	installer, err := newInstaller(o.cluster, o.options.definitions.definitionLimits, o.options.namespaces)
	if err != nil {
		return nil, err
	}
	installer.Log = o.log.WithName("crds")
	news, err := o.newDefinitionNews(defined)
	if err != nil {
		return nil, err
	}
	if webhook != nil {
		installer.Conversion = webhook.conversion
	}
	c := &care{operator: o, definitions: defined, installer: installer, news: news, webhook: webhook}
	c.guard = crds.NewGuard(installer, defined, news.tell)
	return c, nil
}

// newInstaller makes an installer for the cluster, which may list custom resources in these namespaces, or in all.
func newInstaller(cluster connection, limits definitionLimits, namespaces []string) (crds.Installer, error) {
	api, err := crds.NewAPI(cluster.rest)
	if err != nil {
		return crds.Installer{}, err
	}
	// Definitions are everybody's: the objects of all namespaces are looked at, whichever the operator works in.
	checker, err := objects.New(cluster.rest)
	if err != nil {
		return crds.Installer{}, err
	}
	registry, err := converters()
	if err != nil {
		return crds.Installer{}, err
	}
	if registry != nil {
		checker.Convert = registry.Convert
	}
	namespace := cluster.namespace
	if len(namespaces) > 0 {
		namespace = namespaces[0]
	}
	return crds.Installer{API: api, Objects: checker, Namespace: namespace, Adopt: limits.adopts, AllowBreaking: limits.allowBreaking}, nil
}

// bring makes sure that the definitions serve, in the way --crds says. Where a right is missing, it waits for it.
func (c *care) bring(ctx context.Context, closed gates) error {
	if c.webhook != nil {
		// Without its rights the webhook cannot serve, and without the webhook a definition cannot be brought.
		if err := c.awaitRights(ctx, closed.rights); err != nil {
			return err
		}
	}
	var work func(context.Context, []crds.Definition) ([]crds.Result, error)
	switch c.options.definitions.mode {
	case crdsOff:
		return nil
	case crdsCheck:
		patient := c.installer
		patient.Timeout = administratorPatience
		patient.Waiting = func(name, message string) {
			closed.definitions.say(message)
			c.log.Info("waiting for an administrator", "reason", "DefinitionLacking", "name", name, "message", message)
		}
		work = patient.Check
	default:
		work = c.installer.Ensure
	}
	results, err := work(ctx, c.definitions)
	if apierrors.IsForbidden(err) {
		if err := c.awaitRights(ctx, closed.rights); err != nil {
			return err
		}
		results, err = work(ctx, c.definitions)
	}
	if err != nil {
		return err
	}
	for _, result := range results {
		c.news.brought(ctx, result)
	}
	return nil
}

// keep watches over the definitions until ctx ends, where the operator may change them.
func (c *care) keep(ctx context.Context) error {
	if c.options.definitions.mode == crdsApply {
		c.health.Add("definitions-guard", c.trouble)
		c.guard.Run(ctx)
	}
	return nil
}

// trouble is a check for Health: an error for the first definition that the operator cannot work with. That it cannot be looked at for a
// moment is none.
func (c *care) trouble() error {
	for _, definition := range c.definitions {
		refused := (*crds.RefusedError)(nil)
		if seen, found := c.guard.Latest(definition.Name()); found && errors.As(seen.Err, &refused) {
			return refused
		}
	}
	return nil
}

// lead migrates stored objects and notes whether there are any, while this process is the leader.
func (c *care) lead(ctx context.Context, engine *reconcile.Manager) {
	if c.options.definitions.mode != crdsApply {
		return
	}
	leader := crds.Leader{Guard: c.guard, Migrate: c.migrate, InUse: func(definition crds.Definition) (some, known bool) {
		return c.inUse(engine, definition)
	}}
	var leading sync.WaitGroup
	leading.Go(func() { leader.Run(ctx) })
	if c.webhook != nil {
		leading.Go(func() { c.webhook.server.Lead(ctx) })
	}
	leading.Wait()
}

// inUse says whether a definition has objects, from the engine's caches. Who sees only some namespaces knows only if there are some.
func (c *care) inUse(engine *reconcile.Manager, definition crds.Definition) (some, known bool) {
	kind, found := kindOf(c.kinds, definition)
	if !found || engine.CachesSynced() != nil {
		return false, false
	}
	some = engine.InUse(kind)
	return some, some || len(c.options.namespaces) == 0
}

func kindOf(kinds []schema.Kind, definition crds.Definition) (schema.Kind, bool) {
	for _, kind := range kinds {
		if kind.DefinitionName() == definition.Name() {
			return kind, true
		}
	}
	return schema.Kind{}, false
}

// migrate rewrites the objects of a definition in the version for storing.
func (c *care) migrate(ctx context.Context, name string) error {
	identity := definitions.Identity()
	migrator, err := migration.New(c.cluster.rest, identity.FieldManager()+"-migration", identity.MigrationAnnotation())
	if err != nil {
		return err
	}
	migrator.Rate, migrator.Log, migrator.Report = float64(c.options.definitions.migrationRate), c.log.WithName("migration"), c.news.migrated
	_, err = migrator.Run(ctx, name)
	return err
}
