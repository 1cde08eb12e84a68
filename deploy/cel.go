package deploy

import (
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/schema"
)

// OwnerLabel is on everything that the operator makes, with its name as the value.
const OwnerLabel = "app.kubernetes.io/managed-by"

const statusForbidden = metav1.StatusReasonForbidden

func admissionType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: kind}
}

// binding has a policy of the same name deny what it refuses.
func binding(name string) *admissionv1.ValidatingAdmissionPolicyBinding {
	return &admissionv1.ValidatingAdmissionPolicyBinding{
		TypeMeta: admissionType("ValidatingAdmissionPolicyBinding"), ObjectMeta: meta("", name),
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
}

func validation(expression, message string) admissionv1.Validation {
	return admissionv1.Validation{Expression: expression, Message: message}
}

// on matches every write to resources of a group; subresources are resources of their own.
func on(group string, resources ...string) []admissionv1.NamedRuleWithOperations {
	return matching(group, resources, admissionv1.Create, admissionv1.Update, admissionv1.Delete)
}

// onWrites matches what makes or changes objects.
func onWrites(group string, resources ...string) []admissionv1.NamedRuleWithOperations {
	return matching(group, resources, admissionv1.Create, admissionv1.Update)
}

func matching(group string, resources []string, operations ...admissionv1.OperationType) []admissionv1.NamedRuleWithOperations {
	all := admissionv1.AllScopes
	return []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: operations,
		Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resources, Scope: &all},
	}}}
}

// marked is an expression: an object carries the operator's mark.
func marked(object string) string {
	return fmt.Sprintf("(%s != null && %s.metadata.?labels[?'%s'].orValue('') == '%s')", object, object, OwnerLabel, Name)
}

// same is an expression: a map or list of the metadata stays as it is.
func same(field string) string {
	empty := "{}"
	if field == "ownerReferences" || field == "finalizers" {
		empty = "[]"
	}
	return fmt.Sprintf("object.metadata.?%s.orValue(%s) == oldObject.metadata.?%s.orValue(%s)", field, empty, field, empty)
}

// stamp begins the annotation by which ConfigMonitor restarts a workload.
const stamp = schema.MagalixGroup + "/config-"

// restart is an expression: an update of a workload changes nothing but the stamps in its Pod template. Other annotations there are orders to
// whatever injects containers.
func restart() string {
	kept := func(one, other string) string {
		annotations := ".spec.template.metadata.?annotations"
		return fmt.Sprintf(" && %s%s.orValue({}).all(key, key.startsWith('%s') || %s%s[?key].orValue('') == %s%s[?key].orValue(''))",
			one, annotations, stamp, one, annotations, other, annotations)
	}
	return "request.operation == 'UPDATE' && request.resource.group == 'apps' && object.spec.template.spec == oldObject.spec.template.spec" +
		" && object.spec.template.metadata.?labels.orValue({}) == oldObject.spec.template.metadata.?labels.orValue({})" +
		" && object.spec.selector == oldObject.spec.selector && object.spec.?replicas.orValue(0) == oldObject.spec.?replicas.orValue(0)" +
		// The API server counts the templates of a DaemonSet in an annotation.
		" && object.metadata.?annotations.orValue({}).all(key, key == 'deprecated.daemonset.template.generation' ||" +
		" (key in oldObject.metadata.?annotations.orValue({}) && object.metadata.annotations[key] == oldObject.metadata.annotations[key]))" +
		kept("object", "oldObject") + kept("oldObject", "object") +
		" && " + same("labels") + " && " + same("ownerReferences") + " && " + same("finalizers")
}

func unique(words []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(words)))
}
