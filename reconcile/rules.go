package reconcile

import (
	rbacv1 "k8s.io/api/rbac/v1"
)

// Rules returns the permissions that a kind needs in every namespace in which it is reconciled: those that the engine needs for it,
// followed by the Controller's own.
func Rules(controller Controller) []rbacv1.PolicyRule {
	kind := controller.Kind
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{kind.Group}, Resources: []string{kind.Plural}, Verbs: reading()},
		{APIGroups: []string{kind.Group}, Resources: []string{kind.Plural + "/status"}, Verbs: []string{"patch"}},
		{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create"}},
	}
	if !controller.Childless {
		// Children name their owner with blockOwnerDeletion. Some clusters allow that only to clients with permission to update the owner's
		// finalizers (Kubernetes documentation, "Admission Controllers": OwnerReferencesPermissionEnforcement).
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{kind.Group}, Resources: []string{kind.Plural + "/finalizers"}, Verbs: []string{"update"}})
	}
	for _, watch := range controller.Watches {
		resource := watch.Resource
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{resource.Group}, Resources: []string{resource.Resource}, Verbs: reading()})
	}
	return append(rules, controller.Rules...)
}

// reading returns the verbs that a cache needs.
func reading() []string {
	return []string{"get", "list", verbWatch}
}

// LeaseRules returns the permissions that leader election needs in the operator's own namespace.
func LeaseRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{LeaseName}, Verbs: []string{"get", "update"}},
	}
}
