package main

import (
	"context"
	"fmt"
	"os"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/mysql-operator/mysql-operator/crds"
	"github.com/mysql-operator/mysql-operator/crds/conversion"
	"github.com/mysql-operator/mysql-operator/deploy"
	"github.com/mysql-operator/mysql-operator/schema"
	"github.com/mysql-operator/mysql-operator/schema/definitions"
)

// webhookName is the name of the conversion webhook's Secret and Service.
const webhookName = deploy.Name + "-conversion"

// webhook converts custom resources between the versions of their kinds.
type webhook struct {
	server *conversion.Server
}

// loadDefinitions returns the definitions of the kinds, each knowing which of its versions this program can convert.
func loadDefinitions(kinds []schema.Kind) ([]crds.Definition, error) {
	defined, err := definitions.Load(kinds)
	if err != nil {
		return nil, err
	}
	if defined, err = amended(defined); err != nil {
		return nil, err
	}
	registry, err := converters()
	if err != nil || registry == nil {
		return defined, err
	}
	for at := range defined {
		defined[at].Converts = registry.Versions(defined[at].GroupKind())
	}
	return defined, nil
}

// newWebhook makes the webhook that the definitions need; nil if none of them needs one, or if definitions are not ours to bring.
func (o operator) newWebhook(defined []crds.Definition) (*webhook, error) {
	names, version := converted(defined)
	if len(names) == 0 || o.options.definitions.mode != crdsApply {
		return nil, nil //nolint:nilnil // no webhook is no failure
	}
	registry, err := converters()
	if err != nil {
		return nil, err
	}
	pod, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find the operator's Pod: %w", err)
	}
	api, err := crds.NewAPI(o.cluster.rest)
	if err != nil {
		return nil, err
	}
	identity := definitions.Identity()
	server, err := conversion.NewServer(conversion.Config{
		Rest: o.cluster.rest, Registry: registry, Owner: identity.Owner, Domain: identity.Domain, Namespace: o.cluster.namespace, Name: webhookName,
		Version: version, Pod: pod, Definitions: api, Names: names, Log: o.log.WithName("conversion"),
	})
	if err != nil {
		return nil, err
	}
	return &webhook{server: server}, nil
}

// converted returns the names of the definitions whose objects the webhook converts, and the highest order among them.
func converted(defined []crds.Definition) (names []string, version int) {
	for _, definition := range defined {
		if len(definition.Converts) > 0 {
			names, version = append(names, definition.Name()), max(version, definition.Version)
		}
	}
	return names, version
}

// convert serves conversions until ctx ends, if any kind needs them.
func (c *care) convert(ctx context.Context) error {
	if c.webhook == nil {
		return nil
	}
	return c.webhook.server.Run(ctx)
}

// conversion says how the API server has objects of a definition converted; nil for one whose versions differ in fields only.
func (w *webhook) conversion(ctx context.Context, definition crds.Definition) (*apiextensionsv1.CustomResourceConversion, error) {
	if len(definition.Converts) == 0 {
		return nil, nil //nolint:nilnil // as Installer.Conversion has it
	}
	return w.server.Conversion(ctx)
}

// webhookRules are the rights that the webhook needs in the operator's namespace; none if no kind needs one.
func webhookRules(defined []crds.Definition) []rbacv1.PolicyRule {
	if names, _ := converted(defined); len(names) == 0 {
		return nil
	}
	return conversion.Rules(webhookName)
}
