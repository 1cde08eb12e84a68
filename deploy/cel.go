package deploy

import (
	"fmt"
	"slices"
	"strings"

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

// sameOwners is an expression: an object's owners stay. Whether they wait for it to go before they do is left out.
func sameOwners() string {
	owners := func(object string) string {
		return object + ".metadata.?ownerReferences.orValue([]).map(o, " +
			"o.apiVersion + ' ' + o.kind + ' ' + o.name + ' ' + o.uid + (o.?controller.orValue(false) ? ' controls' : ''))"
	}
	return owners("object") + " == " + owners("oldObject")
}

// stamp begins the annotation by which ConfigMonitor restarts a workload.
const stamp = schema.MagalixGroup + "/config-"

// keeps is an expression: what an object's metadata says in a field stays as it is; a new object says nothing there.
func keeps(field, empty string) string {
	return fmt.Sprintf("object.metadata.?%[1]s.orValue(%[2]s) == (oldObject == null ? %[2]s : oldObject.metadata.?%[1]s.orValue(%[2]s))", field, empty)
}

// bounded is an expression: of a map that may be missing, each key is one that the condition is true of, or says what it said in another
// map.
func bounded(one, other, condition string) string {
	return fmt.Sprintf("%[1]s.orValue({}).all(key, %[3]s || %[1]s[?key] == %[2]s[?key])", one, other, condition)
}

// ofEach is an expression: a condition is true of each of these fields, whose name it has as %[1]s.
func ofEach(condition string, fields ...string) string {
	conditions := make([]string, len(fields))
	for i, field := range fields {
		conditions[i] = fmt.Sprintf(condition, field)
	}
	return "(" + strings.Join(conditions, " && ") + ")"
}

// alike is an expression: two objects say the same at a path in all fields but some.
func alike(path string, but ...string) string {
	of := func(one, other string) string {
		return fmt.Sprintf("dyn(%[1]s.%[3]s).all(key, key in ['%[4]s'] || dyn(%[1]s.%[3]s)[?key] == dyn(%[2]s.%[3]s)[?key])", one, other, path, strings.Join(but, "', '"))
	}
	return of("object", "oldObject") + " && " + of("oldObject", "object")
}

// restart is an expression: an update of a workload changes nothing but the stamps in its Pod template. Other annotations there are orders
// to whatever injects containers.
func restart() string {
	annotations := func(path, condition string) string {
		one, other := "object."+path+".?annotations", "oldObject."+path+".?annotations"
		return bounded(one, other, condition) + " && " + bounded(other, one, condition)
	}
	return strings.Join([]string{
		"request.operation == 'UPDATE' && request.resource.group == 'apps'",
		alike("spec", "template"), alike("spec.template", "metadata"), alike("spec.template.metadata", "annotations"),
		annotations("spec.template.metadata", "key.startsWith('"+stamp+"')"),
		// The API server counts the templates of a DaemonSet in an annotation.
		annotations("metadata", "key == 'deprecated.daemonset.template.generation'"),
		same("labels"), same("ownerReferences"), same("finalizers"),
	}, " && ")
}

func unique(words []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(words)))
}
