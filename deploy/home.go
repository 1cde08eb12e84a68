package deploy

import "fmt"

// inOwnNamespace returns an expression: the request is about the operator's own namespace.
func (l Limits) inOwnNamespace() string {
	return fmt.Sprintf("request.namespace == '%s'", l.Account.Namespace)
}

// keepsOwners returns an expression: the owners of an object must not change. It has a controller, or is a Secret that never has one: a
// Secret with a cluster's CAs, or the webhook's. Garbage collection deletes an object whose owners do not exist.
func (l Limits) keepsOwners() string {
	kept := "oldObject.metadata.?ownerReferences.orValue([]).exists(owner, owner.?controller.orValue(false)) || " +
		"(request.resource.resource == 'secrets' && " + l.isAuthoritySecret("oldObject") + ")"
	if l.Webhook != "" {
		kept += fmt.Sprintf(" || (request.resource.resource == 'secrets' && %s && oldObject.metadata.name == '%s')", l.inOwnNamespace(), l.Webhook)
	}
	return kept
}

// isAuthoritySecret returns an expression: an object is a Secret with the CAs of a cluster: ca.NAMESPACE.NAME, in the operator's own
// namespace.
func (l Limits) isAuthoritySecret(object string) string {
	return fmt.Sprintf("(%s && %s != null && %s.metadata.name.matches('^ca[.][a-z0-9-]+[.][a-z0-9-]+$'))", l.inOwnNamespace(), object, object)
}

// isOwnNamespaceSecret returns an expression: a Secret is one that the operator keeps in its own namespace: for a cluster's CAs, for its
// webhook, or for one of its resources.
func (l Limits) isOwnNamespaceSecret(object string) string {
	kept := l.isAuthoritySecret(object) + " || " + l.controlled(object)
	if l.Webhook != "" {
		kept += fmt.Sprintf(" || (%s != null && %s.metadata.name == '%s')", object, object, l.Webhook)
	}
	return "(" + kept + ")"
}
