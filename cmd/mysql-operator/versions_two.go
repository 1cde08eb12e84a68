//go:build twoversions

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/mysql-operator/mysql-operator/crds"
	"github.com/mysql-operator/mysql-operator/crds/conversion" //nolint:depguard // only with the tag, which no release has
	"github.com/mysql-operator/mysql-operator/crds/objects"
	"github.com/mysql-operator/mysql-operator/deploy"
	"github.com/mysql-operator/mysql-operator/schema"
	"github.com/mysql-operator/mysql-operator/schema/definitions"
	"github.com/mysql-operator/mysql-operator/test/twoversions" //nolint:depguard // only with the tag, which no release has
)

// This file builds a program that was never released: it serves ConfigMonitor in a second version, to show that conversion works.

// webhookName is the name of the conversion webhook's Secret and Service.
const webhookName = deploy.Name + "-conversion"

// loadDefinitions returns the definitions of the kinds, each with the versions that this program can convert.
func loadDefinitions(kinds []schema.Kind) ([]crds.Definition, error) {
	defined, err := definitions.Load(kinds)
	if err != nil {
		return nil, err
	}
	registry, err := twoversions.Registry()
	if err != nil {
		return nil, err
	}
	for at, definition := range defined {
		if definition.Name() != twoversions.DefinitionName {
			continue
		}
		document, err := twoversions.YAML(definitions.Identity().VersionAnnotation())
		if err != nil {
			return nil, err
		}
		if defined[at], err = definitions.Identity().Parse(document, definition.Uses); err != nil {
			return nil, err
		}
		defined[at].Converts = registry.Versions(definition.GroupKind())
	}
	return defined, nil
}

// newChecker makes a checker of the objects that an update of a definition could harm. The checker converts the objects.
func newChecker(config *rest.Config) (objects.Checker, error) {
	checker, err := objects.New(config)
	if err != nil {
		return checker, err
	}
	registry, err := twoversions.Registry()
	if err != nil {
		return checker, err
	}
	checker.Convert = registry.Convert
	return checker, nil
}

// webhookRules returns the permissions that the conversion webhook needs in the operator's namespace.
func webhookRules() []rbacv1.PolicyRule { return conversion.Rules(webhookName) }

// addWebhook makes the operator serve the conversion webhook, if the definitions need it and the operator installs them.
func (c *definitionManager) addWebhook() error {
	names, version := converted(c.definitions)
	if len(names) == 0 || c.options.definitions.mode != crdsApply {
		return nil
	}
	server, err := c.newServer(names, version)
	if err != nil {
		return err
	}
	c.always, c.leading = append(c.always, server.Run), append(c.leading, server.Lead)
	c.installer.Conversion = func(ctx context.Context, definition crds.Definition) (*apiextensionsv1.CustomResourceConversion, error) {
		if len(definition.Converts) == 0 {
			return nil, nil //nolint:nilnil // as Installer.Conversion has it
		}
		if err := c.mayServe(ctx); err != nil {
			return nil, err
		}
		return server.Conversion(ctx)
	}
	return nil
}

// converted returns the names of the definitions whose objects the webhook converts, and the highest schema version among them.
func converted(defined []crds.Definition) (names []string, version int) {
	for _, definition := range defined {
		if len(definition.Converts) > 0 {
			names, version = append(names, definition.Name()), max(version, definition.Version)
		}
	}
	return names, version
}

func (c *definitionManager) newServer(names []string, version int) (*conversion.Server, error) {
	registry, err := twoversions.Registry()
	if err != nil {
		return nil, err
	}
	pod, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find the operator's Pod: %w", err)
	}
	api, err := crds.NewAPI(c.cluster.rest)
	if err != nil {
		return nil, err
	}
	identity := definitions.Identity()
	return conversion.NewServer(conversion.Config{
		Rest: c.cluster.rest, Registry: registry, Owner: identity.Owner, Domain: identity.Domain, Namespace: c.cluster.namespace, Name: webhookName,
		Version: version, Pod: pod, Definitions: api, Names: names, Log: c.log.WithName("conversion"),
	})
}

// mayServe returns a Forbidden error if the webhook is missing permissions: it cannot serve without them, and the operator would wait for
// it indefinitely.
func (c *definitionManager) mayServe(ctx context.Context) error {
	shortage, err := deploy.FindMissingPermissions(ctx, c.cluster.rest, map[deploy.Place][]rbacv1.PolicyRule{deploy.Place(c.cluster.namespace): webhookRules()})
	if err != nil || shortage.None() {
		return err
	}
	return apierrors.NewForbidden(apischema.GroupResource{Resource: "secrets"}, webhookName, errors.New(strings.Join(shortage.Lines(), "; ")))
}
