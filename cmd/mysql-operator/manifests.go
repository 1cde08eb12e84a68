package main

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/mysql-operator/mysql-operator/cmd/internal/cli"
	"github.com/mysql-operator/mysql-operator/crds"
	"github.com/mysql-operator/mysql-operator/deploy"
	"github.com/mysql-operator/mysql-operator/schema"
	"github.com/mysql-operator/mysql-operator/schema/definitions"
)

// manifestOptions are the flags of manifests.
type manifestOptions struct {
	kinds, namespaces []string
	crds, secrets     string
	image             string
	migrate           bool
	account           deploy.Account
}

func (o *manifestOptions) flags() *pflag.FlagSet {
	flags := pflag.NewFlagSet("mysql-operator manifests", pflag.ContinueOnError)
	kindsFlag(flags, &o.kinds)
	namespacesFlag(flags, &o.namespaces)
	crdsFlag(flags, &o.crds)
	secretsFlag(flags, &o.secrets)
	flags.BoolVar(&o.migrate, "migrate", false, "with --namespaces: also grant what an update of definitions needs: get, list and patch of the kinds' objects in all namespaces")
	flags.StringVar(&o.account.Namespace, "namespace", deploy.Name, "namespace in which the operator runs")
	flags.StringVar(&o.account.Name, "service-account", deploy.Name, "service account of the operator")
	flags.StringVar(&o.image, "image", "mysql-operator:latest", "the operator's image")
	return flags
}

// runManifests prints manifests for an administrator to apply, from the same definitions and rules that the operator uses.
func runManifests(_ context.Context, p cli.Process) error {
	o := manifestOptions{}
	parts, err := cli.Parse(o.flags(), p)
	if err != nil {
		return err
	}
	if len(parts) == 0 {
		parts = []string{"all"}
	}
	if err := errors.Join(cli.OneOf("crds", o.crds, crdsApply, crdsCheck, crdsOff), checkNamespaces(o.namespaces), checkSecrets(o.secrets, o.namespaces)); err != nil {
		return err
	}
	kinds, err := schema.Select(o.kinds)
	if err != nil {
		return cli.BadUsage("%w", err)
	}
	documents := [][]byte{}
	for _, part := range parts {
		rendered, err := o.render(part, kinds)
		if err != nil {
			return err
		}
		documents = append(documents, rendered...)
	}
	_, err = p.Out.Write(bytes.Join(documents, []byte("---\n")))
	return err
}

func (o manifestOptions) render(part string, kinds []schema.Kind) ([][]byte, error) {
	switch part {
	case "crds":
		return o.definitions(kinds)
	case "rbac":
		return o.rbac(kinds)
	case "operator":
		document, err := deploy.Render(deploy.Operator(o.account, o.image, o.arguments()))
		return [][]byte{document}, err
	case "policy":
		return o.policy(kinds)
	case "protection":
		return o.protection(kinds)
	case "all":
		everything := [][]byte{}
		for _, each := range []string{"crds", "rbac", "policy", "operator"} {
			documents, err := o.render(each, kinds)
			if err != nil {
				return nil, err
			}
			everything = append(everything, documents...)
		}
		return everything, nil
	default:
		return nil, cli.BadUsage("manifests prints crds, rbac, policy, operator, protection or all (all except protection), not %q", part)
	}
}

func (o manifestOptions) definitions(kinds []schema.Kind) ([][]byte, error) {
	defined, err := loadDefinitions(kinds)
	if err != nil {
		return nil, err
	}
	documents := [][]byte{}
	for _, definition := range defined {
		document, err := definition.YAML()
		if err != nil {
			return nil, err
		}
		documents = append(documents, document)
	}
	return documents, nil
}

// protection returns the policy that prevents the deletion of definitions while they have objects.
func (o manifestOptions) protection(kinds []schema.Kind) ([][]byte, error) {
	identity := definitions.Identity()
	protected := deploy.Protected{UsageAnnotation: identity.UsageAnnotation(), Unused: crds.UsageNone, DeletionAnnotation: identity.DeletionAnnotation()}
	for _, kind := range kinds {
		protected.Definitions = append(protected.Definitions, kind.DefinitionName())
	}
	document, err := deploy.Render(deploy.Protection(protected))
	return [][]byte{document}, err
}

func (o manifestOptions) rbac(kinds []schema.Kind) ([][]byte, error) {
	needed, err := permissions(kinds, grants{crds: o.crds, secrets: o.secrets, namespaces: o.namespaces, migrate: o.migrate})
	if err != nil {
		return nil, err
	}
	document, err := deploy.Render(deploy.RBAC(o.account, o.namespaces, needed))
	return [][]byte{document}, err
}

// arguments returns the flags of run with which the Deployment's operator matches the manifests.
func (o manifestOptions) arguments() []string {
	arguments := []string{}
	add := func(flag string, values []string) {
		if len(values) > 0 {
			arguments = append(arguments, "--"+flag+"="+strings.Join(values, ","))
		}
	}
	add("kinds", o.kinds)
	add("namespaces", slices.Sorted(slices.Values(o.namespaces)))
	if o.crds != crdsApply {
		add("crds", []string{o.crds})
	}
	if o.secrets != secretsEverywhere {
		add("secrets", []string{o.secrets})
	}
	return arguments
}
