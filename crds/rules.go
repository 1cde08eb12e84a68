package crds

import (
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Rules returns the permissions for installing, watching and migrating definitions, all limited to the definitions by name. RBAC can limit
// create, because the API server authorizes a server-side apply that creates with the object's name, unlike a POST. It can limit list and
// watch, because they have a field selector on metadata.name
// (https://kubernetes.io/docs/reference/access-authn-authz/rbac/#referring-to-resources). Discovery needs no rule: every authenticated
// account has this permission (system:discovery).
func Rules(definitions []Definition) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule(definitions, resource, "get", "list", "watch", "create", "patch"),
		rule(definitions, resource+"/status", "patch"),
	}
}

// CheckRules returns the permissions that Check uses. Check also works without them, but then checks less.
func CheckRules(definitions []Definition) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{rule(definitions, resource, "get")}
}

func rule(definitions []Definition, resource string, verbs ...string) rbacv1.PolicyRule {
	names := make([]string, 0, len(definitions))
	for _, definition := range definitions {
		names = append(names, definition.Name())
	}
	return rbacv1.PolicyRule{APIGroups: []string{apiextensionsv1.GroupName}, Resources: []string{resource}, ResourceNames: names, Verbs: verbs}
}
