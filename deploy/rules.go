package deploy

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Permissions are the permissions that an operator needs, by where it needs them.
type Permissions struct {
	// Objects are needed in every namespace that the operator serves.
	Objects []rbacv1.PolicyRule
	// Own are needed in the operator's own namespace.
	Own []rbacv1.PolicyRule
	// Definitions are needed on the cluster's definitions, by name.
	Definitions []rbacv1.PolicyRule
	// Secrets are needed in every namespace that the operator serves, and granted by the administrator of each namespace: see SeparateSecrets.
	Secrets []rbacv1.PolicyRule
}

// SeparateSecrets returns the same permissions, but moves those on Secrets from Objects to Secrets.
func (r Permissions) SeparateSecrets() Permissions {
	objects, secrets := []rbacv1.PolicyRule{}, []rbacv1.PolicyRule{}
	for _, rule := range r.Objects {
		others := slices.DeleteFunc(slices.Clone(rule.Resources), func(resource string) bool { return resource == "secrets" })
		if len(others) < len(rule.Resources) {
			onSecrets := *rule.DeepCopy()
			onSecrets.Resources = []string{"secrets"}
			secrets = append(secrets, onSecrets)
		}
		if len(others) > 0 {
			rule.Resources = others
			objects = append(objects, rule)
		}
	}
	r.Objects, r.Secrets = objects, secrets
	return r
}

// permission is the smallest unit of RBAC: one verb on one resource.
type permission struct {
	group, resource, name, verb string
}

// permissions returns the permissions of the rules, each once, sorted.
func permissions(rules []rbacv1.PolicyRule) []permission {
	found := map[permission]bool{}
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					for _, verb := range rule.Verbs {
						found[permission{group, resource, name, verb}] = true
					}
				}
			}
		}
	}
	// A permission for all names includes those by name.
	maps.DeleteFunc(found, func(one permission, _ bool) bool {
		return one.name != "" && found[permission{one.group, one.resource, "", one.verb}]
	})
	return slices.SortedFunc(maps.Keys(found), comparePermissions)
}

func comparePermissions(a, b permission) int {
	return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.resource, b.resource), cmp.Compare(a.name, b.name), cmp.Compare(verbOrder(a.verb), verbOrder(b.verb)), cmp.Compare(a.verb, b.verb))
}

// verbOrder returns the place of a verb in the usual order.
func verbOrder(verb string) int {
	return slices.Index([]string{"get", "list", "watch", "create", "update", "patch", "delete"}, verb)
}

// Compact returns fewer rules that grant the same, but stay readable: one for each set of resources of a group with the same verbs and
// names. The result is sorted, so that manifests change only when permissions change.
func Compact(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	verbs := map[permission][]string{}
	for _, one := range permissions(rules) {
		at := permission{group: one.group, resource: one.resource, name: one.name}
		verbs[at] = append(verbs[at], one.verb)
	}
	names := map[permission][]string{}
	for _, at := range slices.SortedFunc(maps.Keys(verbs), comparePermissions) {
		key := permission{group: at.group, resource: at.resource, verb: strings.Join(verbs[at], " ")}
		names[key] = append(names[key], at.name)
	}
	resources := map[permission][]string{}
	for _, key := range slices.SortedFunc(maps.Keys(names), comparePermissions) {
		merged := permission{group: key.group, name: strings.Join(names[key], " "), verb: key.verb}
		resources[merged] = append(resources[merged], key.resource)
	}
	compact := make([]rbacv1.PolicyRule, 0, len(resources))
	for merged, of := range resources {
		compact = append(compact, rbacv1.PolicyRule{
			APIGroups: []string{merged.group}, Resources: of, ResourceNames: strings.Fields(merged.name), Verbs: strings.Fields(merged.verb),
		})
	}
	slices.SortFunc(compact, func(a, b rbacv1.PolicyRule) int {
		return cmp.Or(cmp.Compare(a.APIGroups[0], b.APIGroups[0]), slices.Compare(a.Resources, b.Resources), slices.Compare(a.ResourceNames, b.ResourceNames))
	})
	return compact
}
