package deploy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	rbacv1 "k8s.io/api/rbac/v1"
)

func rule(group, resource, name string, verbs ...string) rbacv1.PolicyRule {
	made := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	if name != "" {
		made.ResourceNames = []string{name}
	}
	return made
}

func TestCompact(t *testing.T) {
	t.Parallel()
	for story, test := range map[string]struct {
		rules, want []rbacv1.PolicyRule
	}{
		"nothing": {nil, nil},
		"the same twice": {
			[]rbacv1.PolicyRule{rule("", "pods", "", "get"), rule("", "pods", "", "get")},
			[]rbacv1.PolicyRule{rule("", "pods", "", "get")},
		},
		"verbs of one resource are joined, in the usual order": {
			[]rbacv1.PolicyRule{rule("", "pods", "", "patch"), rule("", "pods", "", "get", "list")},
			[]rbacv1.PolicyRule{rule("", "pods", "", "get", "list", "patch")},
		},
		"resources with the same verbs share a rule": {
			[]rbacv1.PolicyRule{rule("", "services", "", "get"), rule("", "pods", "", "get"), rule("", "secrets", "", "create")},
			[]rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"pods", "services"}, Verbs: []string{"get"}},
				rule("", "secrets", "", "create"),
			},
		},
		"groups stay apart": {
			[]rbacv1.PolicyRule{rule("b", "pods", "", "get"), rule("a", "pods", "", "get")},
			[]rbacv1.PolicyRule{rule("a", "pods", "", "get"), rule("b", "pods", "", "get")},
		},
		"names stay names": {
			[]rbacv1.PolicyRule{rule("", "leases", "mine", "get"), rule("", "leases", "", "create")},
			[]rbacv1.PolicyRule{rule("", "leases", "", "create"), rule("", "leases", "mine", "get")},
		},
		"names with the same verbs share a rule": {
			[]rbacv1.PolicyRule{rule("", "crds", "b", "get"), rule("", "crds", "a", "get")},
			[]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"crds"}, ResourceNames: []string{"a", "b"}, Verbs: []string{"get"}}},
		},
		"a permission for all names is not repeated by name": {
			[]rbacv1.PolicyRule{rule("", "leases", "mine", "get"), rule("", "leases", "", "get")},
			[]rbacv1.PolicyRule{rule("", "leases", "", "get")},
		},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, Compact(test.rules), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("compact (-want +got):\n%s", diff)
			}
		})
	}
}
