package main

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/mysql-operator/mysql-operator/cmd/internal/cli"
	"github.com/mysql-operator/mysql-operator/deploy"
	"github.com/mysql-operator/mysql-operator/schema"
)

func kindsFlag(flags *pflag.FlagSet, into *[]string) {
	flags.StringSliceVar(into, "kinds", nil, "kinds to reconcile: all, or a list of "+strings.Join(schema.KindNames(), ", ")+" (default: the MySQL kinds)")
}

func namespacesFlag(flags *pflag.FlagSet, into *[]string) {
	flags.StringSliceVar(into, "namespaces", nil, "namespaces to work in; the operator then needs only Roles there (default: all)")
}

// checkNamespaces checks --namespaces: an empty name is a mistake in the list, and would mean all namespaces.
func checkNamespaces(namespaces []string) error {
	for _, namespace := range namespaces {
		if strings.TrimSpace(namespace) == "" {
			return cli.BadUsage("--namespaces has an empty name in %q: name each namespace, or leave the flag out for all namespaces", strings.Join(namespaces, ","))
		}
	}
	return nil
}

// The values of --crds.
const (
	crdsApply = "apply"
	crdsCheck = "check"
	crdsOff   = "off"
)

func crdsFlag(flags *pflag.FlagSet, into *string) {
	flags.StringVar(into, "crds", crdsApply, "definitions: apply installs, upgrades and repairs them, check waits until they are served, off ignores them")
}

// The values of --secrets.
const (
	secretsEverywhere  = "everywhere"
	secretsByNamespace = "by-namespace"
)

func secretsFlag(flags *pflag.FlagSet, into *string) {
	flags.StringVar(into, "secrets", secretsEverywhere, "permissions on Secrets: everywhere where the operator works, or by-namespace, "+
		"where an administrator bound ClusterRole "+deploy.SecretsRole)
}

// checkSecrets checks --secrets: with --namespaces, the Roles grant Secrets in those namespaces only.
func checkSecrets(secrets string, namespaces []string) error {
	if secrets == secretsByNamespace && len(namespaces) > 0 {
		return cli.BadUsage("--secrets=%s is for an operator of all namespaces: with --namespaces it has permissions on Secrets in those only", secrets)
	}
	return cli.OneOf("secrets", secrets, secretsEverywhere, secretsByNamespace)
}

// vmTrust are the flags that limit which of the operator's accounts and which vCenters VmGroups may use.
type vmTrust struct {
	namespaces, hosts []string
}

func (o *vmTrust) register(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.namespaces, "vm-namespaces", nil, "namespaces whose VmGroups may use the operator's own vCenter account, or all (default: its own namespace)")
	flags.StringSliceVar(&o.hosts, "vcenter-hosts", nil, "vCenters, as HOST or HOST:PORT, that Secrets vc-creds in other namespaces may name (default: any)")
}

// definitionOptions are the flags of run for definitions.
type definitionOptions struct {
	mode string
	definitionLimits
	migrationRate int
}

// definitionLimits are the flags that limit what an update of a definition may do.
type definitionLimits struct {
	adopt         []string
	allowBreaking bool
}

func (o *definitionOptions) register(flags *pflag.FlagSet) {
	crdsFlag(flags, &o.mode)
	o.definitionLimits.register(flags)
	flags.IntVar(&o.migrationRate, "crds-migration-rate", 200, "how many stored objects to rewrite per second when the storage version changes")
}

func (o *definitionLimits) register(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.adopt, "crds-adopt", nil, "definitions to take over from another manager, by name, or all")
	flags.BoolVar(&o.allowBreaking, "crds-allow-breaking", false, "update definitions even if existing objects lose fields or become invalid")
}

func (o definitionOptions) check() error {
	if o.migrationRate < 1 {
		return cli.BadUsage("--crds-migration-rate=%d: use 1 or more", o.migrationRate)
	}
	return cli.OneOf("crds", o.mode, crdsApply, crdsCheck, crdsOff)
}

func (o definitionLimits) adopts(name string) bool {
	return slices.Contains(o.adopt, "all") || slices.Contains(o.adopt, name)
}

func kubeconfigFlag(flags *pflag.FlagSet, into *string) {
	flags.StringVar(into, "kubeconfig", "", "kubeconfig file (default: KUBECONFIG, ~/.kube/config, or the Pod's service account)")
}
