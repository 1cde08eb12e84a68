package deploy

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Limits are what a policy holds an operator to.
type Limits struct {
	// Account is the operator's.
	Account Account
	// Kinds are the custom resources it serves.
	Kinds []schema.GroupResource
	// Webhook is the Service of its conversion webhook; empty if its kinds need none.
	Webhook string
	// ReadsSecrets says that its kinds need rights on Secrets.
	ReadsSecrets bool
	// Restarts says that it stamps the Pod templates of workloads that are not its own (ConfigMonitor).
	Restarts bool
	// PlainPods says that it makes Deployments whose Pods are not restricted (TDSet).
	PlainPods bool
}

// limitsName is how the policies for an operator begin: operators in several namespaces do not share them.
func (l Limits) limitsName(what string) string {
	return Name + "-" + what + "." + l.Account.Namespace
}

// systemNamespaces are those that Kubernetes itself works in.
const systemNamespaces = "['kube-system', 'kube-public', 'kube-node-lease']"

// Policy returns policies by which the API server holds the operator's account to what the operator does: RBAC can say neither which
// Services are its own nor which Pods it may make. They are for the administrator to install: the operator may not change them. Nobody
// else is affected by them. (ValidatingAdmissionPolicy, Kubernetes 1.30:
// https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/)
func Policy(of Limits) []any {
	restraints := []restraint{of.children(), of.contents(), of.pods(), of.workloads(), of.kinds(), of.definitions()}
	objects := make([]any, 0, 2*len(restraints))
	for _, one := range restraints {
		objects = append(objects, of.render(one)...)
	}
	return objects
}

// restraint is one of the policies.
type restraint struct {
	name      string
	on        []admissionv1.NamedRuleWithOperations
	variables []admissionv1.Variable
	rules     []admissionv1.Validation
}

func (l Limits) render(one restraint) []any {
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

// children are the objects that the operator makes: it touches its own only, and none of Kubernetes' own namespaces.
func (l Limits) children() restraint {
	was, is := "request.operation == 'CREATE' || variables.was", "request.operation == 'DELETE' || variables.is"
	variables := []admissionv1.Variable{
		{Name: "was", Expression: marked("oldObject") + " || " + l.controlled("oldObject")},
		{Name: "is", Expression: marked("object") + " || (request.operation == 'UPDATE' && " + l.controlled("object") + ")"},
	}
	if l.Restarts {
		// Of what is not its own it may change the annotations of the Pod template, as kubectl rollout restart does.
		variables = append(variables, admissionv1.Variable{Name: "restart", Expression: restart()})
		was, is = was+" || variables.restart", is+" || variables.restart"
	}
	return restraint{
		name: "children",
		on: slices.Concat(on("", "configmaps", "secrets", "serviceaccounts", "services", "persistentvolumeclaims"),
			on("apps", "statefulsets", "deployments", "daemonsets"), on("batch", "jobs"),
			on("policy", "poddisruptionbudgets"), on("networking.k8s.io", "networkpolicies")),
		variables: variables,
		rules: []admissionv1.Validation{
			validation(l.outsideKubernetes(), "the operator has nothing to do in the namespaces of Kubernetes itself"),
			validation(was, "the operator changes and deletes only what it made (label "+OwnerLabel+")"),
			validation(is, "the operator marks what it makes (label "+OwnerLabel+")"),
			validation("request.operation != 'DELETE' || request.resource.resource != 'secrets' || "+l.authority("oldObject"),
				"the operator deletes no Secrets but those with CAs of clusters, in its own namespace"),
			validation("request.resource.resource != 'secrets' || !("+l.atHome()+") || "+l.keepsAtHome("object")+" || "+l.keepsAtHome("oldObject"),
				"in its own namespace the operator writes Secrets with CAs of clusters only, beside those of its resources there"),
			validation("request.operation != 'UPDATE' || ("+sameOwners()+") || !("+l.keepsOwners()+")",
				"the operator changes no owners, with whose absence an object would go"),
		},
	}
}

// pods are not the operator's to make: it labels those of its own workloads, and its own Pod where it converts.
func (l Limits) pods() restraint {
	own := marked("oldObject")
	if l.Webhook != "" {
		own += fmt.Sprintf(" || request.namespace == '%s'", l.Account.Namespace)
	}
	return restraint{
		name: "pods",
		on:   on("", "pods"),
		rules: []admissionv1.Validation{
			validation("("+l.outsideKubernetes()+") && request.operation == 'UPDATE' && ("+own+")",
				"the operator changes Pods of its own workloads only, and neither makes nor deletes any"),
			validation("request.operation != 'UPDATE' || (object.spec == oldObject.spec && "+same("annotations")+
				" && "+same("ownerReferences")+" && "+same("finalizers")+")",
				"the operator changes the labels of Pods only"),
			validation("request.operation != 'UPDATE' || ("+bounded("object.metadata.?labels", "oldObject.metadata.?labels", "key.startsWith('"+ownPrefix+"')")+
				" && "+bounded("oldObject.metadata.?labels", "object.metadata.?labels", "key.startsWith('"+ownPrefix+"')")+")",
				"the operator changes its own labels of Pods only: others lead clients there"),
		},
	}
}

// kinds are the custom resources: what people ask for is theirs to change.
func (l Limits) kinds() restraint {
	rules := make([]admissionv1.NamedRuleWithOperations, 0, len(l.Kinds))
	for _, kind := range l.Kinds {
		rules = append(rules, on(kind.Group, kind.Resource)...)
	}
	scheduled := func(object string) string {
		return fmt.Sprintf("(request.resource.resource == 'mysqlbackupinstances' && %s.spec.?schedule.orValue('') != '')", object)
	}
	return restraint{
		name: "kinds", on: rules,
		rules: []admissionv1.Validation{
			validation("request.operation != 'UPDATE' || object.?spec.orValue({}) == oldObject.?spec.orValue({})", "the operator never writes spec"),
			validation("request.operation != 'UPDATE' || ("+same("ownerReferences")+" && "+same("labels")+")",
				"the operator changes neither labels nor owners of what people made"),
			validation("request.operation != 'CREATE' || "+scheduled("object"), "the operator makes MySQLBackupInstances of schedules only"),
			validation("request.operation != 'DELETE' || "+scheduled("oldObject"), "the operator deletes MySQLBackupInstances of schedules only"),
		},
	}
}

// definitions may be brought, but must not send every object through somebody's webhook.
func (l Limits) definitions() restraint {
	none := "object.spec.?conversion.?strategy.orValue('None') == 'None'"
	kept := "(oldObject != null && object.spec.?conversion.orValue({}) == oldObject.spec.?conversion.orValue({}))"
	allowed := none + " || " + kept
	if l.Webhook != "" {
		allowed += fmt.Sprintf(" || (object.spec.conversion.webhook.clientConfig.?service.?namespace.orValue('') == '%s' && "+
			"object.spec.conversion.webhook.clientConfig.service.name == '%s')",
			l.Account.Namespace, l.Webhook)
	}
	return restraint{
		name: "conversion",
		on:   onWrites("apiextensions.k8s.io", "customresourcedefinitions"),
		rules: []admissionv1.Validation{
			validation(allowed, "the operator has objects converted by no webhook but its own"),
			validation(keeps("ownerReferences", "[]"), "the operator gives definitions no owners, with which they and all their objects would go"),
		},
	}
}

// outsideKubernetes says that the request is not about a namespace of Kubernetes itself; where the operator lives is its own in any case.
func (l Limits) outsideKubernetes() string {
	return fmt.Sprintf("!(request.namespace in %s) || request.namespace == '%s'", systemNamespaces, l.Account.Namespace)
}

// controlled says that an object belongs to a custom resource of the operator's, although somebody took its label off.
func (l Limits) controlled(object string) string {
	groups := make([]string, 0, len(l.Kinds))
	for _, kind := range l.Kinds {
		groups = append(groups, "'"+kind.Group+"'")
	}
	return fmt.Sprintf("(%s != null && %s.metadata.?ownerReferences.orValue([]).exists(owner, "+
		"owner.?controller.orValue(false) && owner.apiVersion.split('/')[0] in [%s]))",
		object, object, strings.Join(unique(groups), ", "))
}
