package deploy

import (
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// contents is about the content of children: it must not affect anything outside of them.
func (l Limits) contents() policyRules {
	return policyRules{
		name: "contents",
		on: slices.Concat(onWrites("", "secrets", "configmaps", "services", "serviceaccounts", "persistentvolumeclaims"),
			onWrites("policy", "poddisruptionbudgets"), onWrites("networking.k8s.io", "networkpolicies")),
		variables: []admissionv1.Variable{{Name: "before", Expression: "oldObject == null ? dyn({}) : dyn(oldObject)"}},
		rules: []admissionv1.Validation{
			validation("request.resource.resource != 'secrets' || object.?type.orValue('Opaque') == 'Opaque'",
				"the operator makes only Secrets of type Opaque"),
			validation("request.resource.resource != 'services' || (object.spec.?type.orValue('ClusterIP') == 'ClusterIP' && "+
				"object.spec.?externalIPs.orValue([]).size() == 0)",
				"the operator makes only Services of type ClusterIP without external IPs"),
			validation("!(request.resource.resource in ['secrets', 'configmaps', 'services', 'serviceaccounts', 'persistentvolumeclaims']) || ("+keepsAnnotations()+")",
				"the operator adds no annotations that clouds and other controllers may act on"),
			validation("request.resource.resource != 'serviceaccounts' || (dyn(object).?imagePullSecrets == variables.before.?imagePullSecrets && "+
				"dyn(object).?secrets == variables.before.?secrets)",
				"the operator adds no Secrets to service accounts"),
			validation(l.selectsOwnPods(), "the operator's Services, PodDisruptionBudgets and NetworkPolicies select only its own Pods"),
			validation("request.resource.resource != 'persistentvolumeclaims' || "+isNewClaim("dyn(object)", "variables.before"),
				"the operator's claims are new and empty"),
			validation("request.resource.resource != 'persistentvolumeclaims' || "+keeps("ownerReferences", "[]"),
				"the operator adds no owners to claims, because garbage collection would delete the claims with them"),
		},
	}
}

// keepsAnnotations returns an expression: only harmless annotations of an object are added or changed.
func keepsAnnotations() string {
	is, was := "object.metadata.?annotations", "(oldObject == null ? optional.none() : oldObject.metadata.?annotations)"
	return allowedOrSameKeys(is, was, isHarmless(is)) + " && " + allowedOrSameKeys(was, is, isHarmless(was))
}

// isHarmless returns an expression: a key of annotations is the operator's own, or one without effect that common webhooks add to every
// Service or to every object that they change: Linkerd for MySQL's port, GKE with exactly this value, Kyverno. Otherwise the operator could
// not make Services in a cluster with these webhooks.
func isHarmless(annotations string) string {
	return "key.startsWith('" + ownPrefix + "') || key in ['config.linkerd.io/opaque-ports', 'policies.kyverno.io/last-applied-patches'] || " +
		"(key == 'cloud.google.com/neg' && " + annotations + "[?key].orValue('') == '{\"ingress\":true}')"
}

// selectsOwnPods returns an expression: objects that select Pods select only the operator's. A Service without a selector could route to
// any address.
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
