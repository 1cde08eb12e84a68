package deploy

import (
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// Protected are the definitions that a policy protects from deletion.
type Protected struct {
	// Definitions are their names.
	Definitions []string
	// UsageAnnotation says, with the value Unused, that a definition has no objects. The operator writes it.
	UsageAnnotation, Unused string
	// DeletionAnnotation says, with the value "true", that a user allows the deletion of a definition with all its objects.
	DeletionAnnotation string
}

// Protection returns a policy by which the API server refuses to delete definitions that have objects, because it would delete the objects
// too. A user can annotate a definition to allow this. An administrator installs the policy; the operator does not need it, and has no
// permission to change it. The API server also refuses if it is unknown whether there are objects. (ValidatingAdmissionPolicy, Kubernetes
// 1.30: https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/)
func Protection(of Protected) []any {
	const name = Name + "-definitions"
	fail, allScopes := admissionv1.Fail, admissionv1.AllScopes
	quoted := make([]string, 0, len(of.Definitions))
	for _, definition := range of.Definitions {
		quoted = append(quoted, "'"+definition+"'")
	}
	annotation := func(key string) string {
		return fmt.Sprintf("oldObject.metadata.?annotations[?'%s'].orValue('')", key)
	}
	remedy := fmt.Sprintf("'definition ' + oldObject.metadata.name + ' has objects, which would be deleted with it. Delete them first, or allow the deletion: "+
		"kubectl annotate crd ' + oldObject.metadata.name + ' %s=true'", of.DeletionAnnotation)
	return []any{
		&admissionv1.ValidatingAdmissionPolicy{
			TypeMeta:   admissionType("ValidatingAdmissionPolicy"),
			ObjectMeta: meta("", name),
			Spec: admissionv1.ValidatingAdmissionPolicySpec{
				FailurePolicy: &fail,
				MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Delete},
					Rule:       admissionv1.Rule{APIGroups: []string{"apiextensions.k8s.io"}, APIVersions: []string{"*"}, Resources: []string{"customresourcedefinitions"}, Scope: &allScopes},
				}}}},
				// Not by resourceNames: a request to delete a whole collection has no name.
				MatchConditions: []admissionv1.MatchCondition{{Name: "ours", Expression: "oldObject.metadata.name in [" + strings.Join(quoted, ", ") + "]"}},
				Validations: []admissionv1.Validation{{
					Expression:        fmt.Sprintf("%s == '%s' || %s == 'true'", annotation(of.UsageAnnotation), of.Unused, annotation(of.DeletionAnnotation)),
					MessageExpression: remedy,
					Message:           "the definition has objects, which would be deleted with it",
				}},
			},
		},
		binding(name),
	}
}
