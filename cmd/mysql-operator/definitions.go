package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mysql-operator/mysql-operator/crds"
	"github.com/mysql-operator/mysql-operator/crds/migration"
	"github.com/mysql-operator/mysql-operator/deploy"
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
	// always has what every replica runs in addition, leading what the leader runs in addition. Both are for the conversion webhook, and empty
	// in a release (versions.go).
	always  []func(context.Context) error
	leading []func(context.Context)
}

func (o operator) newCare() (*care, error) {
	defined, err := loadDefinitions(o.kinds)
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
	c := &care{operator: o, definitions: defined, installer: installer, news: news}
	if err := c.addWebhook(); err != nil {
		return nil, err
	}
	c.guard = crds.NewGuard(c.installer, defined, news.tell)
	return c, nil
}

// newInstaller makes an installer for the cluster, which may list custom resources in these namespaces, or in all.
func newInstaller(cluster connection, limits definitionLimits, namespaces []string) (crds.Installer, error) {
	api, err := crds.NewAPI(cluster.rest)
	if err != nil {
		return crds.Installer{}, err
	}
	// Definitions are everybody's: the objects of all namespaces are looked at, whichever the operator works in.
	checker, err := newChecker(cluster.rest)
	if err != nil {
		return crds.Installer{}, err
	}
	namespace := cluster.namespace
	if len(namespaces) > 0 {
		namespace = namespaces[0]
	}
	return crds.Installer{API: api, Objects: checker, Namespace: namespace, Adopt: limits.adopts, AllowBreaking: limits.allowBreaking}, nil
}

// bring makes sure that the definitions serve, in the way --crds says. Where a right is missing, it waits for it.
func (c *care) bring(ctx context.Context, closed gates) error {
	var work bringing
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
	results, err := c.permitted(ctx, closed, work)
	if err != nil {
		return err
	}
	for _, result := range results {
		c.news.brought(ctx, result)
	}
	return nil
}

// bringing is one way of making sure that definitions serve.
type bringing func(context.Context, []crds.Definition) ([]crds.Result, error)

// permitted does the work. Where that is forbidden it waits for the rights the operator always needs, and then, if they do not suffice,
// for those that only some updates of a definition need.
func (c *care) permitted(ctx context.Context, closed gates, work bringing) ([]crds.Result, error) {
	results, err := work(ctx, c.definitions)
	usual := c.grants()
	wider := usual
	wider.migrate = true
	for _, wanted := range []grants{usual, wider} {
		if !apierrors.IsForbidden(err) {
			break
		}
		if err := c.awaitRights(ctx, closed.rights, wanted); err != nil {
			return nil, err
		}
		results, err = work(ctx, c.definitions)
	}
	return results, err
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
	for _, lead := range c.leading {
		leading.Go(func() { lead(ctx) })
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
	if err := c.mayMigrate(ctx, name); err != nil {
		return err
	}
	migrator, err := migration.New(c.cluster.rest, identity.FieldManager()+"-migration", identity.MigrationAnnotation())
	if err != nil {
		return err
	}
	migrator.Rate, migrator.Log, migrator.Report = float64(c.options.definitions.migrationRate), c.log.WithName("migration"), c.news.migrated
	_, err = migrator.Run(ctx, name)
	return err
}

// mayMigrate returns an error with the remedy while a contained operator lacks the rights to rewrite the objects of a definition.
func (c *care) mayMigrate(ctx context.Context, name string) error {
	at := slices.IndexFunc(c.definitions, func(definition crds.Definition) bool { return definition.Name() == name })
	if at < 0 || !c.grants().contained() {
		return nil
	}
	shortage, err := deploy.FindShortage(ctx, c.cluster.rest, map[deploy.Place][]rbacv1.PolicyRule{"": migrationRules(c.definitions[at : at+1])})
	if err != nil {
		return err
	}
	if shortage.None() {
		return nil
	}
	return fmt.Errorf("rewrite the objects of definition %s: the operator works in some namespaces only and lacks %s: grant that until they are rewritten, with "+
		"what mysql-operator manifests rbac --migrate prints, given the operator's own flags, and apply it without --migrate afterwards", name, strings.Join(shortage.Lines(), "; "))
}
