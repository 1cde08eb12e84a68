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

// administratorPatience is how long the operator, with --crds=check, waits for an administrator to apply definitions. Then it exits, and
// kubelet restarts it.
const administratorPatience = 15 * time.Minute

// definitionManager manages the definitions for the operator: it installs them at boot, then watches and repairs them, and runs their
// migration while it is the leader.
type definitionManager struct {
	operator
	definitions []crds.Definition
	installer   crds.Installer
	guard       *crds.Guard
	news        *definitionReporter
	// always are functions that every replica runs in addition, leading those that only the leader runs. Both are for the conversion
	// webhook, and empty in a release (versions.go).
	always  []func(context.Context) error
	leading []func(context.Context)
}

func (o operator) newCare() (*definitionManager, error) {
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
	c := &definitionManager{operator: o, definitions: defined, installer: installer, news: news}
	if err := c.addWebhook(); err != nil {
		return nil, err
	}
	c.guard = crds.NewGuard(c.installer, defined, news.tell)
	return c, nil
}

// newInstaller makes an installer for the Kubernetes cluster. It may list custom resources in the given namespaces, or in all if there are
// none.
func newInstaller(cluster connection, limits definitionLimits, namespaces []string) (crds.Installer, error) {
	api, err := crds.NewAPI(cluster.rest)
	if err != nil {
		return crds.Installer{}, err
	}
	// Definitions are shared by all namespaces. So the checker looks at the objects of all namespaces, whichever the operator works in.
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

// install makes sure that the API server serves the definitions, in the way that --crds names. If a permission is missing, it waits until
// it is granted.
func (c *definitionManager) install(ctx context.Context, closed gates) error {
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
		c.news.installed(ctx, result)
	}
	return nil
}

// bringing is one way to make sure that the API server serves the definitions.
type bringing func(context.Context, []crds.Definition) ([]crds.Result, error)

// permitted calls work. If the API server forbids it, permitted waits for the permissions that the operator always needs. If they do not
// suffice, it waits for those that only some updates of a definition need.
func (c *definitionManager) permitted(ctx context.Context, closed gates, work bringing) ([]crds.Result, error) {
	results, err := work(ctx, c.definitions)
	usual := c.grants()
	wider := usual
	wider.migrate = true
	for _, wanted := range []grants{usual, wider} {
		if !apierrors.IsForbidden(err) {
			break
		}
		if err := c.awaitPermissions(ctx, closed.rights, wanted); err != nil {
			return nil, err
		}
		results, err = work(ctx, c.definitions)
	}
	return results, err
}

// keep watches and repairs the definitions until ctx ends, if the operator may change them.
func (c *definitionManager) keep(ctx context.Context) error {
	if c.options.definitions.mode == crdsApply {
		c.health.Add("definitions-guard", c.checkRefused)
		c.guard.Run(ctx)
	}
	return nil
}

// checkRefused is a check for Health. It returns an error for the first definition that the operator cannot work with. A temporary failure
// to read a definition is not an error.
func (c *definitionManager) checkRefused() error {
	for _, definition := range c.definitions {
		refused := (*crds.RefusedError)(nil)
		if seen, found := c.guard.Latest(definition.Name()); found && errors.As(seen.Err, &refused) {
			return refused
		}
	}
	return nil
}

// lead migrates stored objects and records whether there are any, while this process is the leader.
func (c *definitionManager) lead(ctx context.Context, engine *reconcile.Manager) {
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

// inUse reports whether a definition has objects, from the engine's caches. An operator that sees only some namespaces knows the answer
// only if it sees an object.
func (c *definitionManager) inUse(engine *reconcile.Manager, definition crds.Definition) (some, known bool) {
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

// migrate rewrites the objects of a definition in the storage version.
func (c *definitionManager) migrate(ctx context.Context, name string) error {
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

// mayMigrate returns an error with the remedy if the operator works only in some namespaces and is missing permissions to rewrite the
// objects of a definition.
func (c *definitionManager) mayMigrate(ctx context.Context, name string) error {
	at := slices.IndexFunc(c.definitions, func(definition crds.Definition) bool { return definition.Name() == name })
	if at < 0 || !c.grants().contained() {
		return nil
	}
	shortage, err := deploy.FindMissingPermissions(ctx, c.cluster.rest, map[deploy.Place][]rbacv1.PolicyRule{"": migrationRules(c.definitions[at : at+1])})
	if err != nil {
		return err
	}
	if shortage.None() {
		return nil
	}
	return fmt.Errorf("rewrite the objects of definition %s: the operator works in some namespaces only and is missing these permissions: %s: apply the output of "+
		"mysql-operator manifests rbac --migrate with the operator's own flags; when the objects are rewritten, apply it without --migrate", name, strings.Join(shortage.Lines(), "; "))
}
