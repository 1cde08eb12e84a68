package crds

import (
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Rules returns the rights Ensure needs, by name and without list or watch. Create can be limited by name here because a server-side apply
// that creates is authorised with the name it carries, unlike a POST
// (https://kubernetes.io/docs/reference/access-authn-authz/rbac/#referring-to-resources).
// Discovery needs no rule: every authenticated account may (system:discovery).
func Rules(definitions []Definition) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{rule(definitions, "get", "create", "patch")}
}

// CheckRules returns the rights Check makes use of. It also works without them, but then sees less.
func CheckRules(definitions []Definition) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{rule(definitions, "get")}
}

func rule(definitions []Definition, verbs ...string) rbacv1.PolicyRule {
	names := make([]string, 0, len(definitions))
	for _, definition := range definitions {
		names = append(names, definition.Name())
	}
	return rbacv1.PolicyRule{APIGroups: []string{apiextensionsv1.GroupName}, Resources: []string{resource}, ResourceNames: names, Verbs: verbs}
}
