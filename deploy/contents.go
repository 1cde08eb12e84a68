package deploy

import (
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// contents are what children must not hold: what leads beyond them.
func (l Limits) contents() restraint {
	return restraint{
		name: "contents",
		on: slices.Concat(onWrites("", "secrets", "configmaps", "services", "serviceaccounts", "persistentvolumeclaims"),
			onWrites("policy", "poddisruptionbudgets"), onWrites("networking.k8s.io", "networkpolicies")),
		variables: []admissionv1.Variable{{Name: "before", Expression: "oldObject == null ? dyn({}) : dyn(oldObject)"}},
		rules: []admissionv1.Validation{
			validation("request.resource.resource != 'secrets' || object.?type.orValue('Opaque') == 'Opaque'",
				"the operator makes Secrets of type Opaque only"),
			validation("request.resource.resource != 'services' || (object.spec.?type.orValue('ClusterIP') == 'ClusterIP' && "+
				"object.spec.?externalIPs.orValue([]).size() == 0)",
				"the operator makes Services inside the cluster only"),
			validation("!(request.resource.resource in ['secrets', 'configmaps', 'services', 'serviceaccounts', 'persistentvolumeclaims']) || ("+keepsAnnotations()+")",
				"the operator gives what it makes no annotations, which clouds and other controllers take for orders"),
			validation("request.resource.resource != 'serviceaccounts' || (dyn(object).?imagePullSecrets == variables.before.?imagePullSecrets && "+
				"dyn(object).?secrets == variables.before.?secrets)",
				"the operator gives service accounts no Secrets"),
			validation(l.selectsOwnPods(), "the operator's Services, budgets and NetworkPolicies select its own Pods"),
			validation("request.resource.resource != 'persistentvolumeclaims' || "+isNewClaim("dyn(object)", "variables.before"),
				"the operator's claims are new and empty"),
			validation("request.resource.resource != 'persistentvolumeclaims' || "+keeps("ownerReferences", "[]"),
				"the operator gives claims no owners, with which they would go"),
		},
	}
}

// keepsAnnotations is an expression: of an object's annotations only harmless ones are new or another.
func keepsAnnotations() string {
	is, was := "object.metadata.?annotations", "(oldObject == null ? optional.none() : oldObject.metadata.?annotations)"
	return bounded(is, was, isHarmless(is)) + " && " + bounded(was, is, isHarmless(was))
}

// isHarmless is an expression: a key of annotations is the operator's own, or what usual webhooks add to every Service or to all that they
// change, and orders nothing: Linkerd for MySQL's port, GKE with this very value, Kyverno. The operator could make no Service beside them.
func isHarmless(annotations string) string {
	return "key.startsWith('" + ownPrefix + "') || key in ['config.linkerd.io/opaque-ports', 'policies.kyverno.io/last-applied-patches'] || " +
		"(key == 'cloud.google.com/neg' && " + annotations + "[?key].orValue('') == '{\"ingress\":true}')"
}

// selectsOwnPods is an expression: what selects Pods selects the operator's. Without a selector a Service leads wherever somebody says.
func (l Limits) selectsOwnPods() string {
	service := "dyn(object).spec.?selector[?'" + OwnerLabel + "'].orValue('') == '" + Name + "'"
	if l.Webhook != "" {
		service += fmt.Sprintf(" || (request.namespace == '%s' && object.metadata.name == '%s')", l.Account.Namespace, l.Webhook)
	}
	return fmt.Sprintf("request.resource.resource == 'services' ? (%s) : "+
		"request.resource.resource == 'networkpolicies' ? %s : "+
		"request.resource.resource == 'poddisruptionbudgets' ? %s : true",
		service, selectsOwn("dyn(object).spec.?podSelector"), selectsOwn("dyn(object).spec.?selector"))
}
