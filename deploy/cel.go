package deploy

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/schema"
)

// OwnerLabel is the label of everything that the operator makes, with the operator's name as the value.
const OwnerLabel = "app.kubernetes.io/managed-by"

const statusForbidden = metav1.StatusReasonForbidden

func admissionType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: kind}
}

// binding binds the policy of the same name, with the action Deny.
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

// on matches every write to resources of a group. Subresources do not match.
func on(group string, resources ...string) []admissionv1.NamedRuleWithOperations {
	return matching(group, resources, admissionv1.Create, admissionv1.Update, admissionv1.Delete)
}

// onWrites matches requests that create or update objects.
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

// marked returns an expression: the object has the operator's label.
func marked(object string) string {
	return fmt.Sprintf("(%s != null && %s.metadata.?labels[?'%s'].orValue('') == '%s')", object, object, OwnerLabel, Name)
}

// unchangedMetadata returns an expression: a map or list of the metadata does not change.
func unchangedMetadata(field string) string {
	empty := "{}"
	if field == "ownerReferences" || field == "finalizers" {
		empty = "[]"
	}
	return fmt.Sprintf("object.metadata.?%s.orValue(%s) == oldObject.metadata.?%s.orValue(%s)", field, empty, field, empty)
}

// sameOwners returns an expression: an object's owners do not change. blockOwnerDeletion may change.
func sameOwners() string {
	owners := func(object string) string {
		return object + ".metadata.?ownerReferences.orValue([]).map(o, " +
			"o.apiVersion + ' ' + o.kind + ' ' + o.name + ' ' + o.uid + (o.?controller.orValue(false) ? ' controls' : ''))"
	}
	return owners("object") + " == " + owners("oldObject")
}

// restartPrefix is the prefix of the annotation by which ConfigMonitor restarts a workload.
const restartPrefix = schema.MagalixGroup + "/config-"

// keeps returns an expression: a field of an object's metadata does not change, and is empty in a new object.
func keeps(field, empty string) string {
	return fmt.Sprintf("object.metadata.?%[1]s.orValue(%[2]s) == (oldObject == null ? %[2]s : oldObject.metadata.?%[1]s.orValue(%[2]s))", field, empty)
}

// allowedOrSameKeys returns an expression: for each key of a map, which may be missing, the condition is true or the other map has the same
// value.
func allowedOrSameKeys(one, other, condition string) string {
	return fmt.Sprintf("%[1]s.orValue({}).all(key, %[3]s || %[1]s[?key] == %[2]s[?key])", one, other, condition)
}

// ofEach returns an expression: the condition is true for each of these fields. %[1]s in the condition stands for the field's name.
func ofEach(condition string, fields ...string) string {
	conditions := make([]string, len(fields))
	for i, field := range fields {
		conditions[i] = fmt.Sprintf(condition, field)
	}
	return "(" + strings.Join(conditions, " && ") + ")"
}

// sameFields returns an expression: object and oldObject have the same fields at a path, except for some.
func sameFields(path string, but ...string) string {
	of := func(one, other string) string {
		return fmt.Sprintf("dyn(%[1]s.%[3]s).all(key, key in ['%[4]s'] || dyn(%[1]s.%[3]s)[?key] == dyn(%[2]s.%[3]s)[?key])", one, other, path, strings.Join(but, "', '"))
	}
	return of("object", "oldObject") + " && " + of("oldObject", "object")
}

// restart returns an expression: an update of a workload changes only the stamps in its Pod template. Webhooks that inject containers act
// on other annotations there.
func restart() string {
	annotations := func(path, condition string) string {
		one, other := "object."+path+".?annotations", "oldObject."+path+".?annotations"
		return allowedOrSameKeys(one, other, condition) + " && " + allowedOrSameKeys(other, one, condition)
	}
	return strings.Join([]string{
		"request.operation == 'UPDATE' && request.resource.group == 'apps'",
		sameFields("spec", "template"), sameFields("spec.template", "metadata"), sameFields("spec.template.metadata", "annotations"),
		annotations("spec.template.metadata", "key.startsWith('"+restartPrefix+"')"),
		// The API server counts the templates of a DaemonSet in an annotation.
		annotations("metadata", "key == 'deprecated.daemonset.template.generation'"),
		unchangedMetadata("labels"), unchangedMetadata("ownerReferences"), unchangedMetadata("finalizers"),
	}, " && ")
}

func unique(words []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(words)))
}
