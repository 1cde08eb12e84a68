package main

import (
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// policies returns the printed policies.
func policies(t *testing.T, manifests string) []admissionv1.ValidatingAdmissionPolicySpec {
	t.Helper()
	found := []admissionv1.ValidatingAdmissionPolicySpec{}
	bound := []string{}
	names := []string{}
	for document := range strings.SplitSeq(manifests, "---\n") {
		policy, binding := admissionv1.ValidatingAdmissionPolicy{}, admissionv1.ValidatingAdmissionPolicyBinding{}
		if err := yaml.Unmarshal([]byte(document), &policy); err != nil {
			t.Fatal(err)
		}
		if policy.Kind == "ValidatingAdmissionPolicy" {
			found, names = append(found, policy.Spec), append(names, policy.Name)
			continue
		}
		if err := yaml.Unmarshal([]byte(document), &binding); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(binding.Spec.ValidationActions, []admissionv1.ValidationAction{admissionv1.Deny}) {
			t.Errorf("binding %s does not deny", binding.Name)
		}
		bound = append(bound, binding.Spec.PolicyName)
	}
	if !slices.Equal(names, bound) {
		t.Errorf("policies %v, bound are %v", names, bound)
	}
	return found
}

// TestPolicyHoldsTheOperatorAlone: the policies affect no other client, and refuse requests that they cannot evaluate.
func TestPolicyHoldsTheOperatorAlone(t *testing.T) {
	t.Parallel()
	_, out, _ := called(t, nil, "manifests", "policy", "--namespace=ops", "--service-account=robot")
	found := policies(t, out)
	for _, policy := range found {
		conditions := policy.MatchConditions
		if len(conditions) != 1 || conditions[0].Expression != "request.userInfo.username == 'system:serviceaccount:ops:robot'" || *policy.FailurePolicy != admissionv1.Fail {
			t.Errorf("conditions %v, failure policy %s", conditions, *policy.FailurePolicy)
		}
	}
	if len(found) < 5 {
		t.Errorf("only %d policies in:\n%s", len(found), out)
	}
}

// TestPolicyCoversEveryRight: for every object that the operator has permission to write, there is a policy.
func TestPolicyCoversEveryRight(t *testing.T) {
	t.Parallel()
	for _, kinds := range []string{"--kinds=all", "--kinds=MySQLCluster,MySQLBackupSchedule,MySQLBackupInstance"} {
		_, out, _ := called(t, nil, "manifests", "policy", kinds)
		found := policies(t, out)
		_, rbac, _ := called(t, nil, "manifests", "rbac", kinds)
		for _, rule := range roles(t, rbac) {
			for verb, operation := range map[string]admissionv1.OperationType{"create": admissionv1.Create, "patch": admissionv1.Update, "update": admissionv1.Update, "delete": admissionv1.Delete} {
				if slices.Contains(rule.Verbs, verb) {
					wantCovered(t, found, rule, operation)
				}
			}
		}
	}
}

// wantCovered fails the test unless the policies match every resource of a rule. It skips resources that no user owns: the operator's own
// Lease, events, the status of kinds, and evictions, which PodDisruptionBudgets limit.
func wantCovered(t *testing.T, found []admissionv1.ValidatingAdmissionPolicySpec, rule rbacv1.PolicyRule, operation admissionv1.OperationType) {
	t.Helper()
	for _, resource := range rule.Resources {
		if resource == "leases" || resource == "events" || strings.Contains(resource, "/") {
			continue
		}
		covered := slices.ContainsFunc(found, func(policy admissionv1.ValidatingAdmissionPolicySpec) bool {
			return slices.ContainsFunc(policy.MatchConstraints.ResourceRules, func(on admissionv1.NamedRuleWithOperations) bool {
				return slices.Equal(on.APIGroups, rule.APIGroups) && slices.Contains(on.Resources, resource) && slices.Contains(on.Operations, operation)
			})
		})
		if !covered {
			t.Errorf("no policy is about %s of %s %v", operation, resource, rule.APIGroups)
		}
	}
}
