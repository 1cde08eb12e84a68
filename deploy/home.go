package deploy

import "fmt"

// atHome says that the request is about the operator's own namespace.
func (l Limits) atHome() string { return fmt.Sprintf("request.namespace == '%s'", l.Account.Namespace) }

// keepsOwners says that an object's owners stay: it has a controller, or is a Secret that never has one: with a cluster's CAs, or the
// webhook's. What is owned by nothing that exists goes by garbage collection.
func (l Limits) keepsOwners() string {
	kept := "oldObject.metadata.?ownerReferences.orValue([]).exists(owner, owner.?controller.orValue(false)) || " +
		"(request.resource.resource == 'secrets' && " + l.authority("oldObject") + ")"
	if l.Webhook != "" {
		kept += fmt.Sprintf(" || (request.resource.resource == 'secrets' && %s && oldObject.metadata.name == '%s')", l.atHome(), l.Webhook)
	}
	return kept
}

// authority says that an object is a Secret with the CAs of a cluster: ca.NAMESPACE.NAME, in the operator's own namespace.
func (l Limits) authority(object string) string {
	return fmt.Sprintf("(%s && %s != null && %s.metadata.name.matches('^ca[.][a-z0-9-]+[.][a-z0-9-]+$'))", l.atHome(), object, object)
}

// keepsAtHome says that a Secret is one that the operator has in its own namespace: of a cluster's CAs, of its webhook, or of one of its
// resources.
func (l Limits) keepsAtHome(object string) string {
	kept := l.authority(object) + " || " + l.controlled(object)
	if l.Webhook != "" {
		kept += fmt.Sprintf(" || (%s != null && %s.metadata.name == '%s')", object, object, l.Webhook)
	}
	return "(" + kept + ")"
}
