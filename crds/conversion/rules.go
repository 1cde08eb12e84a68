package conversion

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Rules returns the permissions that a Server needs in its own namespace. Those on Secret and Service are limited to the name, including
// create: the Server creates both by server-side apply, which the API server authorizes with the object's name
// (https://kubernetes.io/docs/reference/access-authn-authz/rbac/#referring-to-resources). The Pod's name is not known in advance.
func Rules(name string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{corev1.GroupName}, Resources: []string{"secrets", "services"}, ResourceNames: []string{name}, Verbs: []string{"get", "create", "patch"}},
		{APIGroups: []string{corev1.GroupName}, Resources: []string{"pods"}, Verbs: []string{"patch"}},
	}
}

// ClusterRules returns the permissions that a Server needs outside its namespace: to read the named definitions.
func ClusterRules(definitions []string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{apiextensionsv1.GroupName}, Resources: []string{"customresourcedefinitions"}, ResourceNames: definitions, Verbs: []string{"get"}}}
}
