//go:build !twoversions

package main

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/mysql-operator/mysql-operator/crds"
	"github.com/mysql-operator/mysql-operator/crds/objects"
	"github.com/mysql-operator/mysql-operator/schema"
	"github.com/mysql-operator/mysql-operator/schema/definitions"
)

// Each kind of a release has one version. So the release's programs convert no objects, and are not linked with crds/conversion
// (docs/adr/0009). versions_two.go is for a program whose kinds have more versions.

// webhookName is the name of the conversion webhook's Secret and Service; empty, because there is no webhook.
const webhookName = ""

// loadDefinitions returns the definitions of the kinds.
func loadDefinitions(kinds []schema.Kind) ([]crds.Definition, error) { return definitions.Load(kinds) }

// newChecker makes a checker of the objects that an update of a definition could harm.
func newChecker(config *rest.Config) (objects.Checker, error) { return objects.New(config) }

// webhookRules returns the permissions that the conversion webhook needs in the operator's namespace: none.
func webhookRules() []rbacv1.PolicyRule { return nil }

// addWebhook adds nothing.
func (*definitionManager) addWebhook() error { return nil }
