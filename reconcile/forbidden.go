package reconcile

import (
	"fmt"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// SecretsRole is the ClusterRole with the rights on Secrets, which the administrator of a namespace binds where the operator has no
// such rights in the whole cluster (manifests rbac --secrets=by-namespace).
const SecretsRole = "mysql-operator-secrets" //nolint:gosec // the name of a role

// GrantRemedy says how to grant the right that a Forbidden error of the API server names. For the Secrets of a namespace it adds the
// command that grants them there and nowhere else.
func GrantRemedy(err error) string {
	const all = "mysql-operator manifests rbac prints all that the operator needs"
	if !apierrors.IsForbidden(err) {
		return all
	}
	// The words of the API server's authorizer. What does not match is not repeated.
	lacking := regexp.MustCompile(`User "system:serviceaccount:([a-z0-9-]+):([a-z0-9.-]+)" ` +
		`cannot [a-z]+ resource "secrets" in API group "" in the namespace "([a-z0-9-]+)"`)
	found := lacking.FindStringSubmatch(err.Error())
	if found == nil {
		return all
	}
	return fmt.Sprintf("%s; installed with --secrets=by-namespace, an administrator of the namespace grants it there: "+
		"kubectl create rolebinding %s --namespace=%s --clusterrole=%s --serviceaccount=%s:%s",
		all, SecretsRole, found[3], SecretsRole, found[1], found[2])
}
