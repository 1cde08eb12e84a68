package deploy

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
)

// Name is the name of the operator's Deployment, service account and Roles.
const Name = "mysql-operator"

// SecretsRole is the name of the ClusterRole for Rights.Secrets. The manifests do not bind it; administrators of namespaces do.
const SecretsRole = reconcile.SecretsRole

// Account is the service account that an operator runs as.
type Account struct {
	// Namespace is the operator's own namespace.
	Namespace string
	// Name is the account's name.
	Name string
}

// clusterName returns the name of a cluster-scoped object of this operator. Operators in several namespaces do not share such objects.
func (a Account) clusterName(suffix string) string {
	return Name + suffix + ":" + a.Namespace
}

// RBAC returns the objects that grant the account its permissions: in all namespaces, or only in the named ones. In the latter case, the
// only cluster-wide permissions are those on definitions, if there are any.
func RBAC(account Account, namespaces []string, rights Permissions) []any {
	objects := []any{}
	if account.Name != "default" {
		objects = append(objects, serviceAccount(account))
	}
	if len(rights.Definitions) > 0 {
		objects = append(objects, everywhere(account, account.clusterName("-definitions"), rights.Definitions)...)
	}
	if len(rights.Secrets) > 0 {
		objects = append(objects, clusterRole(SecretsRole, rights.Secrets))
	}
	objects = append(objects, within(account, account.Namespace, Name+"-own", rights.Own)...)
	if len(namespaces) == 0 {
		return append(objects, everywhere(account, account.clusterName(""), rights.Objects)...)
	}
	for _, namespace := range slices.Compact(slices.Sorted(slices.Values(namespaces))) {
		objects = append(objects, within(account, namespace, Name, rights.Objects)...)
	}
	return objects
}

func serviceAccount(account Account) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta: meta(account.Namespace, account.Name),
	}
}

func everywhere(account Account, name string, rules []rbacv1.PolicyRule) []any {
	return []any{
		clusterRole(name, rules),
		&rbacv1.ClusterRoleBinding{
			TypeMeta: rbacType("ClusterRoleBinding"), ObjectMeta: meta("", name),
			RoleRef: roleRef("ClusterRole", name), Subjects: subjects(account),
		},
	}
}

func clusterRole(name string, rules []rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{TypeMeta: rbacType("ClusterRole"), ObjectMeta: meta("", name), Rules: Compact(rules)}
}

func within(account Account, namespace, name string, rules []rbacv1.PolicyRule) []any {
	return []any{
		&rbacv1.Role{TypeMeta: rbacType("Role"), ObjectMeta: meta(namespace, name), Rules: Compact(rules)},
		&rbacv1.RoleBinding{
			TypeMeta: rbacType("RoleBinding"), ObjectMeta: meta(namespace, name),
			RoleRef: roleRef("Role", name), Subjects: subjects(account),
		},
	}
}

func rbacType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

func roleRef(kind, name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
}

func subjects(account Account) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}}
}

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels()}
}

func labels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": Name}
}
