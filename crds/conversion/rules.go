package conversion

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Rules returns the rights that a Server needs in its own namespace. Secret and Service are limited to their name, create included: both
// are created by server-side apply, which is authorised with the name it carries
// (https://kubernetes.io/docs/reference/access-authn-authz/rbac/#referring-to-resources). The Pod's name is not known beforehand.
func Rules(name string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{corev1.GroupName}, Resources: []string{"secrets", "services"}, ResourceNames: []string{name}, Verbs: []string{"get", "create", "patch"}},
		{APIGroups: []string{corev1.GroupName}, Resources: []string{"pods"}, Verbs: []string{"patch"}},
	}
}

// ClusterRules returns the rights that a Server needs beyond its namespace: to read the named definitions.
func ClusterRules(definitions []string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{apiextensionsv1.GroupName}, Resources: []string{"customresourcedefinitions"}, ResourceNames: definitions, Verbs: []string{"get"}}}
}
