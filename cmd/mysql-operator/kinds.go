package main

import (
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/mysql-operator/mysql-operator/crds"
	"github.com/mysql-operator/mysql-operator/crds/migration"
	"github.com/mysql-operator/mysql-operator/deploy"
	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/kinds/configmonitor"
	"github.com/mysql-operator/mysql-operator/reconcile/kinds/mycustomresource"
	"github.com/mysql-operator/mysql-operator/reconcile/kinds/pulsarconsumer"
	"github.com/mysql-operator/mysql-operator/reconcile/kinds/tdset"
	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup"
	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
	mysqlbackupinstance "github.com/mysql-operator/mysql-operator/reconcile/mysql/backup"
	mysqlcluster "github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster"
	mysqlbackupschedule "github.com/mysql-operator/mysql-operator/reconcile/mysql/schedule"
	"github.com/mysql-operator/mysql-operator/schema"
)

// makeController makes the controller of a kind. own is the operator itself: the kind uses its image for Pods.
type makeController func(kind schema.Kind, own self) reconcile.Controller

// makers returns the functions that make the controllers, by kind: a new kind is one row. vmGroups are the settings of VmGroup.
func makers(vmGroups vmgroup.Settings) map[string]makeController {
	return map[string]makeController{
		"MySQLCluster": func(kind schema.Kind, own self) reconcile.Controller {
			return mysqlcluster.Controller(kind, mysqlcluster.Operator{Image: own.image, Home: own.home, Namespace: own.namespace, Labels: own.labels, AlarmAddress: own.alarmAddress})
		},
		"MySQLBackupSchedule": func(kind schema.Kind, _ self) reconcile.Controller { return mysqlbackupschedule.Controller(kind) },
		"MySQLBackupInstance": func(kind schema.Kind, own self) reconcile.Controller {
			return mysqlbackupinstance.Controller(kind, own.image, own.home)
		},
		"ConfigMonitor":    func(kind schema.Kind, _ self) reconcile.Controller { return configmonitor.Controller(kind) },
		"MyCustomResource": func(kind schema.Kind, _ self) reconcile.Controller { return mycustomresource.Controller(kind) },
		"TDSet":            func(kind schema.Kind, _ self) reconcile.Controller { return tdset.Controller(kind) },
		"PulsarConsumer": func(kind schema.Kind, own self) reconcile.Controller {
			return pulsarconsumer.Controller(kind, own.image)
		},
		"VmGroup": func(kind schema.Kind, _ self) reconcile.Controller {
			return vmgroup.Controller(kind, vmGroups)
		},
	}
}

// newVCenters returns the process that connects to vCenters. It starts with the first VmGroup, and the caller must end it.
func newVCenters() *vcenter.Process { return vcenter.NewProcess(vcenter.HelperPath(), time.Now) }

// vmGroupSettings returns the settings of VmGroup. namespace is the operator's own.
func vmGroupSettings(vCenters vcenter.API, namespace string, trusted vmTrust) vmgroup.Settings {
	return vmgroup.Settings{VCenter: vCenters, Namespace: namespace, SharedWith: trusted.namespaces, Hosts: trusted.hosts, Environment: os.Getenv}
}

// controllers returns the controllers of the kinds.
func controllers(kinds []schema.Kind, own self, vmGroups vmgroup.Settings) ([]reconcile.Controller, error) {
	made, known := []reconcile.Controller{}, makers(vmGroups)
	for _, kind := range kinds {
		maker, found := known[kind.Kind]
		if !found {
			return nil, fmt.Errorf("reconcile %s: this build has no controller for it: choose other kinds with --kinds", kind.Kind)
		}
		made = append(made, maker(kind, own))
	}
	return made, nil
}

// grants select which permissions in a Kubernetes cluster an operator gets.
type grants struct {
	// crds and secrets are the values of --crds and --secrets.
	crds, secrets string
	// namespaces are those that the operator works in; none means all.
	namespaces []string
	// migrate also grants an operator of some namespaces what an update of definitions may need: reading and rewriting the objects of all
	// namespaces.
	migrate bool
}

// contained reports whether the operator gets no permissions on objects outside its namespaces.
func (g grants) contained() bool { return len(g.namespaces) > 0 && !g.migrate }

// permissions returns the permissions that an operator of these kinds needs. With --crds=check or off it needs none on definitions.
func permissions(kinds []schema.Kind, wanted grants) (deploy.Permissions, error) {
	needed := deploy.Permissions{Own: append(reconcile.LeaseRules(), ownPodRule())}
	made, err := controllers(kinds, self{}, vmgroup.Settings{})
	if err != nil {
		return needed, err
	}
	for _, one := range made {
		needed.Objects = append(needed.Objects, reconcile.Rules(one)...)
		needed.Own = append(needed.Own, one.OwnRules...)
	}
	if wanted.secrets == secretsByNamespace {
		needed = needed.SeparateSecrets()
	}
	if wanted.crds == crdsApply {
		defined, err := loadDefinitions(kinds)
		if err != nil {
			return needed, err
		}
		needed.Definitions = crds.Rules(defined)
		if !wanted.contained() {
			needed.Definitions = append(needed.Definitions, migrationRules(defined)...)
		}
		needed.Own = append(needed.Own, webhookRules()...)
	}
	return needed, nil
}

// ownPodRule permits reading the operator's image from its own Pod.
func ownPodRule() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{corev1.GroupName}, Resources: []string{"pods"}, Verbs: []string{"get"}}
}

// migrationRules permit what an update of definitions may need: reading the objects in all namespaces, and rewriting them.
func migrationRules(defined []crds.Definition) []rbacv1.PolicyRule {
	bare := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(defined))
	for _, definition := range defined {
		bare = append(bare, definition.Object())
	}
	return migration.Rules(bare)
}
