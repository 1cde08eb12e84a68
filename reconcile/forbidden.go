package reconcile

import (
	"fmt"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// SecretsRole is the ClusterRole with the permissions on Secrets. The administrator of a namespace binds it if the operator does not have
// these permissions in the whole cluster (manifests rbac --secrets=by-namespace).
const SecretsRole = "mysql-operator-secrets" //nolint:gosec // the name of a role

// PermissionRemedy says how to grant the permission that a Forbidden error of the API server names. For Secrets of a namespace it adds the
// command that grants them in that namespace only.
func PermissionRemedy(err error) string {
	const all = "mysql-operator manifests rbac prints the permissions that the operator needs; give it the operator's --kinds"
	if !apierrors.IsForbidden(err) {
		return all
	}
	// This is the text of the API server's authorizer. Text that does not match is not repeated in the command.
	lacking := regexp.MustCompile(`User "system:serviceaccount:([a-z0-9-]+):([a-z0-9.-]+)" ` +
		`cannot [a-z]+ resource "secrets" in API group "" in the namespace "([a-z0-9-]+)"`)
	found := lacking.FindStringSubmatch(err.Error())
	if found == nil {
		return all
	}
	return fmt.Sprintf("%s; if the operator is installed with --secrets=by-namespace, an administrator of the namespace grants it in that namespace: "+
		"kubectl create rolebinding %s --namespace=%s --clusterrole=%s --serviceaccount=%s:%s",
		all, SecretsRole, found[3], SecretsRole, found[1], found[2])
}
