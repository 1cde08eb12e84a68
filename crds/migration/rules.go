package migration

import (
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

const resource = "customresourcedefinitions"

// Rules returns the permissions that the migration of these definitions needs: on their objects in all namespaces, and on the definitions
// by name. RBAC cannot limit permissions on objects by name, because the names are not known in advance
// (https://kubernetes.io/docs/reference/access-authn-authz/rbac/).
func Rules(of []*apiextensionsv1.CustomResourceDefinition) []rbacv1.PolicyRule {
	names, rules := make([]string, 0, len(of)), make([]rbacv1.PolicyRule, 0, len(of)+2)
	for _, definition := range of {
		names = append(names, definition.Name)
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: []string{definition.Spec.Group}, Resources: []string{definition.Spec.Names.Plural}, Verbs: []string{"get", "list", "patch"},
		})
	}
	if len(names) == 0 {
		return nil // a rule without names would apply to all definitions
	}
	group := []string{apiextensionsv1.GroupName}
	return append(rules,
		rbacv1.PolicyRule{APIGroups: group, Resources: []string{resource}, ResourceNames: names, Verbs: []string{"get", "patch"}},
		rbacv1.PolicyRule{APIGroups: group, Resources: []string{resource + "/status"}, ResourceNames: names, Verbs: []string{"patch"}},
	)
}
