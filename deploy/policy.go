package deploy

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Limits are the parameters of the policies for an operator.
type Limits struct {
	// Account is the operator's.
	Account Account
	// Kinds are the custom resources it serves.
	Kinds []schema.GroupResource
	// Webhook is the Service of its conversion webhook; empty if its kinds need none.
	Webhook string
	// ReadsSecrets says that its kinds need permissions on Secrets.
	ReadsSecrets bool
	// Restarts says that it stamps the Pod templates of other users' workloads (ConfigMonitor).
	Restarts bool
	// PlainPods says that it makes Deployments whose Pods are not restricted (TDSet).
	PlainPods bool
}

// limitsName returns the name of a policy. It contains the operator's namespace, so that operators in several namespaces do not share
// policies.
func (l Limits) limitsName(what string) string {
	return Name + "-" + what + "." + l.Account.Namespace
}

// systemNamespaces are those that Kubernetes itself works in.
const systemNamespaces = "['kube-system', 'kube-public', 'kube-node-lease']"

// Policy returns policies by which the API server limits the operator's account to what the operator does. RBAC cannot express which
// Services belong to the operator, nor which Pods it may make. An administrator installs the policies; the operator has no permission to
// change them. They affect no other account. (ValidatingAdmissionPolicy, Kubernetes 1.30:
// https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/)
func Policy(of Limits) []any {
	restraints := []policyRules{of.children(), of.contents(), of.pods(), of.workloads(), of.kinds(), of.definitions()}
	objects := make([]any, 0, 2*len(restraints))
	for _, one := range restraints {
		objects = append(objects, of.render(one)...)
	}
	return objects
}

// policyRules is one of the policies.
type policyRules struct {
	name      string
	on        []admissionv1.NamedRuleWithOperations
	variables []admissionv1.Variable
	rules     []admissionv1.Validation
}

func (l Limits) render(one policyRules) []any {
	fail, forbidden := admissionv1.Fail, statusForbidden
	name := l.limitsName(one.name)
	for at := range one.rules {
		one.rules[at].Reason = &forbidden
	}
	user := "system:serviceaccount:" + l.Account.Namespace + ":" + l.Account.Name
	return []any{
		&admissionv1.ValidatingAdmissionPolicy{
			TypeMeta: admissionType("ValidatingAdmissionPolicy"), ObjectMeta: meta("", name),
			Spec: admissionv1.ValidatingAdmissionPolicySpec{
				FailurePolicy:    &fail,
				MatchConstraints: &admissionv1.MatchResources{ResourceRules: one.on},
				MatchConditions:  []admissionv1.MatchCondition{{Name: "operator", Expression: fmt.Sprintf("request.userInfo.username == '%s'", user)}},
				Variables:        one.variables,
				Validations:      one.rules,
			},
		},
		binding(name),
	}
}

// children is about the objects that the operator makes. It writes only its own objects, and none in Kubernetes' own namespaces.
func (l Limits) children() policyRules {
	was, is := "request.operation == 'CREATE' || variables.was", "request.operation == 'DELETE' || variables.is"
	variables := []admissionv1.Variable{
		{Name: "was", Expression: marked("oldObject") + " || " + l.controlled("oldObject")},
		{Name: "is", Expression: marked("object") + " || (request.operation == 'UPDATE' && " + l.controlled("object") + ")"},
	}
	if l.Restarts {
		// In other users' workloads it may change the annotations of the Pod template, as kubectl rollout restart does.
		variables = append(variables, admissionv1.Variable{Name: "restart", Expression: restart()})
		was, is = was+" || variables.restart", is+" || variables.restart"
	}
	return policyRules{
		name: "children",
		on: slices.Concat(on("", "configmaps", "secrets", "serviceaccounts", "services", "persistentvolumeclaims"),
			on("apps", "statefulsets", "deployments", "daemonsets"), on("batch", "jobs"),
			on("policy", "poddisruptionbudgets"), on("networking.k8s.io", "networkpolicies")),
		variables: variables,
		rules: []admissionv1.Validation{
			validation(l.outsideKubernetes(), "the operator does not write in the namespaces of Kubernetes itself"),
			validation(was, "the operator changes and deletes only what it made (label "+OwnerLabel+")"),
			validation(is, "the operator marks what it makes (label "+OwnerLabel+")"),
			validation("request.operation != 'DELETE' || request.resource.resource != 'secrets' || "+l.isAuthoritySecret("oldObject"),
				"the operator deletes only Secrets with CAs of clusters, in its own namespace"),
			validation("request.resource.resource != 'secrets' || !("+l.inOwnNamespace()+") || "+l.isOwnNamespaceSecret("object")+" || "+l.isOwnNamespaceSecret("oldObject"),
				"in its own namespace the operator writes only Secrets with CAs of clusters, and Secrets of its resources there"),
			validation("request.operation != 'UPDATE' || ("+sameOwners()+") || !("+l.keepsOwners()+")",
				"the operator changes no owners, because garbage collection could then delete the object"),
		},
	}
}

// pods is about Pods. The operator makes none itself. It labels those of its own workloads, and its own Pod if it converts.
func (l Limits) pods() policyRules {
	own := marked("oldObject")
	if l.Webhook != "" {
		own += fmt.Sprintf(" || request.namespace == '%s'", l.Account.Namespace)
	}
	return policyRules{
		name: "pods",
		on:   on("", "pods"),
		rules: []admissionv1.Validation{
			validation("("+l.outsideKubernetes()+") && request.operation == 'UPDATE' && ("+own+")",
				"the operator changes only Pods of its own workloads, and neither creates nor deletes Pods"),
			validation("request.operation != 'UPDATE' || (object.spec == oldObject.spec && "+unchangedMetadata("annotations")+
				" && "+unchangedMetadata("ownerReferences")+" && "+unchangedMetadata("finalizers")+")",
				"the operator changes only the labels of Pods"),
			validation("request.operation != 'UPDATE' || ("+allowedOrSameKeys("object.metadata.?labels", "oldObject.metadata.?labels", "key.startsWith('"+ownPrefix+"')")+
				" && "+allowedOrSameKeys("oldObject.metadata.?labels", "object.metadata.?labels", "key.startsWith('"+ownPrefix+"')")+")",
				"the operator changes only its own labels of Pods: with others, Services could select them"),
		},
	}
}

// kinds is about the custom resources: only users change their specs.
func (l Limits) kinds() policyRules {
	rules := make([]admissionv1.NamedRuleWithOperations, 0, len(l.Kinds))
	for _, kind := range l.Kinds {
		rules = append(rules, on(kind.Group, kind.Resource)...)
	}
	scheduled := func(object string) string {
		return fmt.Sprintf("(request.resource.resource == 'mysqlbackupinstances' && %s.spec.?schedule.orValue('') != '')", object)
	}
	return policyRules{
		name: "kinds", on: rules,
		rules: []admissionv1.Validation{
			validation("request.operation != 'UPDATE' || object.?spec.orValue({}) == oldObject.?spec.orValue({})", "the operator never writes spec"),
			validation("request.operation != 'UPDATE' || ("+unchangedMetadata("ownerReferences")+" && "+unchangedMetadata("labels")+")",
				"the operator changes neither labels nor owners of custom resources"),
			validation("request.operation != 'CREATE' || "+scheduled("object"), "the operator creates only MySQLBackupInstances of schedules"),
			validation("request.operation != 'DELETE' || "+scheduled("oldObject"), "the operator deletes only MySQLBackupInstances of schedules"),
		},
	}
}

// definitions is about definitions. The operator may install them, but must not send every object to another program's webhook.
func (l Limits) definitions() policyRules {
	none := "object.spec.?conversion.?strategy.orValue('None') == 'None'"
	kept := "(oldObject != null && object.spec.?conversion.orValue({}) == oldObject.spec.?conversion.orValue({}))"
	allowed := none + " || " + kept
	if l.Webhook != "" {
		allowed += fmt.Sprintf(" || (object.spec.conversion.webhook.clientConfig.?service.?namespace.orValue('') == '%s' && "+
			"object.spec.conversion.webhook.clientConfig.service.name == '%s')",
			l.Account.Namespace, l.Webhook)
	}
	return policyRules{
		name: "conversion",
		on:   onWrites("apiextensions.k8s.io", "customresourcedefinitions"),
		rules: []admissionv1.Validation{
			validation(allowed, "the operator sets only its own webhook for the conversion of objects"),
			validation(keeps("ownerReferences", "[]"), "the operator adds no owners to definitions, because garbage collection could delete them with all their objects"),
		},
	}
}

// outsideKubernetes returns an expression: the request is not about a namespace of Kubernetes itself. The operator's own namespace is
// always allowed.
func (l Limits) outsideKubernetes() string {
	return fmt.Sprintf("!(request.namespace in %s) || request.namespace == '%s'", systemNamespaces, l.Account.Namespace)
}

// controlled returns an expression: a custom resource of the operator owns the object, even if a client removed its label.
func (l Limits) controlled(object string) string {
	groups := make([]string, 0, len(l.Kinds))
	for _, kind := range l.Kinds {
		groups = append(groups, "'"+kind.Group+"'")
	}
	return fmt.Sprintf("(%s != null && %s.metadata.?ownerReferences.orValue([]).exists(owner, "+
		"owner.?controller.orValue(false) && owner.apiVersion.split('/')[0] in [%s]))",
		object, object, strings.Join(unique(groups), ", "))
}
