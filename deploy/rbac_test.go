package deploy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func someRights() Permissions {
	return Permissions{
		Objects:     []rbacv1.PolicyRule{rule("", "services", "", "get")},
		Own:         []rbacv1.PolicyRule{rule("", "leases", "", "create")},
		Definitions: []rbacv1.PolicyRule{rule("apiextensions.k8s.io", "customresourcedefinitions", "a.b", "get")},
	}
}

// listed returns the rendered objects as "Kind namespace/name".
func listed(t *testing.T, objects []any) []string {
	t.Helper()
	document, err := Render(objects)
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{}
	for part := range strings.SplitSeq(string(document), "---\n") {
		object := unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(part), &object.Object); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%s %s/%s", object.GetKind(), object.GetNamespace(), object.GetName()))
	}
	return lines
}

func TestRBACForAllNamespaces(t *testing.T) {
	t.Parallel()
	want := []string{
		"ServiceAccount ops/mysql-operator",
		"ClusterRole /mysql-operator-definitions:ops", "ClusterRoleBinding /mysql-operator-definitions:ops",
		"Role ops/mysql-operator-own", "RoleBinding ops/mysql-operator-own",
		"ClusterRole /mysql-operator:ops", "ClusterRoleBinding /mysql-operator:ops",
	}
	if diff := cmp.Diff(want, listed(t, RBAC(Account{"ops", Name}, nil, someRights()))); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestRBACForSomeNamespacesHasRolesOnly(t *testing.T) {
	t.Parallel()
	rights := someRights()
	rights.Definitions = nil
	want := []string{
		"ServiceAccount ops/mysql-operator", "Role ops/mysql-operator-own", "RoleBinding ops/mysql-operator-own",
		"Role a/mysql-operator", "RoleBinding a/mysql-operator", "Role b/mysql-operator", "RoleBinding b/mysql-operator",
	}
	if diff := cmp.Diff(want, listed(t, RBAC(Account{"ops", Name}, []string{"b", "a", "b"}, rights))); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

// TestRBACNeverMakesTheDefaultAccount: every namespace has that account, and a deletion of the manifests would delete it.
func TestRBACNeverMakesTheDefaultAccount(t *testing.T) {
	t.Parallel()
	objects := listed(t, RBAC(Account{"ops", "default"}, nil, someRights()))
	if slices.ContainsFunc(objects, func(line string) bool { return strings.HasPrefix(line, "ServiceAccount") }) {
		t.Errorf("objects %v", objects)
	}
}

func TestNeeds(t *testing.T) {
	t.Parallel()
	rights, account := someRights(), Account{"ops", Name}
	everywhere := map[Place][]rbacv1.PolicyRule{"": append(slices.Clone(rights.Definitions), rights.Objects...), "ops": rights.Own}
	if diff := cmp.Diff(everywhere, Needs(account, nil, rights)); diff != "" {
		t.Errorf("for all namespaces (-want +got):\n%s", diff)
	}
	rights.Definitions = nil
	some := map[Place][]rbacv1.PolicyRule{"ops": append(slices.Clone(rights.Own), rights.Objects...), "a": rights.Objects}
	if diff := cmp.Diff(some, Needs(account, []string{"a", "ops"}, rights)); diff != "" {
		t.Errorf("for two namespaces, one of them its own (-want +got):\n%s", diff)
	}
}

func TestShortageMessage(t *testing.T) {
	t.Parallel()
	shortage := MissingPermissions{User: "system:serviceaccount:ops:default", Missing: map[Place][]rbacv1.PolicyRule{
		"ops": {rule("coordination.k8s.io", "leases", "mysql-operator", "get", "update")},
		"":    {rule("", "secrets", "", "get")},
	}}
	message := shortage.Message([]byte("kind: Role\n"))
	for _, part := range []string{
		"system:serviceaccount:ops:default does not have permissions",
		"  in the whole cluster: get on secrets\n  in namespace ops: get, update on leases of coordination.k8s.io named mysql-operator\n",
		"kubectl apply --server-side -f - <<'EOF'\nkind: Role\nEOF\n",
		"Give the operator its own account",
	} {
		if !strings.Contains(message, part) {
			t.Errorf("the message does not say %q:\n%s", part, message)
		}
	}
}

func TestAccountOf(t *testing.T) {
	t.Parallel()
	if account, known := AccountOf("system:serviceaccount:a:b"); !known || account != (Account{"a", "b"}) {
		t.Errorf("read %+v, %t", account, known)
	}
	for _, user := range []string{"admin", "system:serviceaccount:a", "system:node:a"} {
		if _, known := AccountOf(user); known {
			t.Errorf("%s counts as a service account", user)
		}
	}
}
