package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/mysql-operator/mysql-operator/cmd/internal/cli"
	"github.com/mysql-operator/mysql-operator/deploy"
	"github.com/mysql-operator/mysql-operator/schema"
)

// called runs the program, and returns its exit status and what it printed.
func called(t *testing.T, environment map[string]string, arguments ...string) (status int, out, err string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	get := func(name string) string { return environment[name] }
	status = program().Execute(t.Context(), cli.Process{Arguments: arguments, Environment: get, Out: &stdout, Err: &stderr})
	return status, stdout.String(), stderr.String()
}

// ownRole is the Role for the operator's own namespace.
const ownRole = "mysql-operator-own"

// roles returns the rules of every printed Role and ClusterRole.
func roles(t *testing.T, manifests string) []rbacv1.PolicyRule {
	t.Helper()
	return rolesBut(t, manifests, "")
}

// rolesBut returns the same without the role named not.
func rolesBut(t *testing.T, manifests, not string) []rbacv1.PolicyRule {
	t.Helper()
	rules := []rbacv1.PolicyRule{}
	for document := range strings.SplitSeq(manifests, "---\n") {
		role := rbacv1.ClusterRole{}
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(role.Kind, "Role") && (not == "" || role.Name != not) {
			rules = append(rules, role.Rules...)
		}
	}
	return rules
}

// TestRightsAreTheLeast checks that the generated permissions are no more than docs/security promises.
func TestRightsAreTheLeast(t *testing.T) {
	t.Parallel()
	_, out, _ := called(t, nil, "manifests", "rbac", "--kinds=all")
	rules := roles(t, out)
	if len(rules) < 5 {
		t.Fatalf("only %d rules in:\n%s", len(rules), out)
	}
	own := len(rules) - len(rolesBut(t, out, ownRole))
	if own == 0 {
		t.Fatalf("there is no Role %s in:\n%s", ownRole, out)
	}
	for _, rule := range rolesBut(t, out, ownRole) {
		if fault := excess(rule); fault != "" {
			t.Errorf("%s: %v", fault, rule)
		}
		if slices.Contains(rule.Resources, "secrets") && slices.Contains(rule.Verbs, "delete") {
			t.Errorf("deleting Secrets where tenants are: %v", rule)
		}
	}
	// In its own namespace, the operator lists Secrets by label to find the clusters whose CAs it keeps.
	for _, rule := range rules {
		if fault := excess(rule); fault != "" && !slices.Equal(rule.Resources, []string{"secrets"}) {
			t.Errorf("%s: %v", fault, rule)
		}
	}
}

// excess describes what a rule grants but must not; empty if there is nothing.
func excess(rule rbacv1.PolicyRule) string {
	words := slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs, rule.ResourceNames)
	has := func(list []string, wanted ...string) bool {
		return slices.ContainsFunc(wanted, func(word string) bool { return slices.Contains(list, word) })
	}
	switch {
	case strings.Contains(strings.Join(words, " "), "*"):
		return "a wildcard"
	case has(rule.Verbs, "escalate", "bind", "impersonate", "deletecollection"):
		return "a verb that grants further permissions"
	case has(rule.Resources, "pods/exec", "pods/attach", "pods/portforward"):
		return "a way into Pods"
	case has(rule.Resources, "secrets") && has(rule.Verbs, "list", "watch"):
		return "reading Secrets without their names"
	case has(rule.Resources, "customresourcedefinitions") && (len(rule.ResourceNames) == 0 || has(rule.Verbs, "delete")):
		return "definitions that are not ours, or their deletion"
	default:
		return ""
	}
}

func TestExcessIsFound(t *testing.T) {
	t.Parallel()
	for _, rule := range []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"pods"}, Verbs: []string{"get"}},
		{Resources: []string{"roles"}, Verbs: []string{"bind"}},
		{Resources: []string{"pods/exec"}, Verbs: []string{"create"}},
		{Resources: []string{"secrets"}, Verbs: []string{"list"}},
		{Resources: []string{"customresourcedefinitions"}, Verbs: []string{"get"}},
		{Resources: []string{"customresourcedefinitions"}, ResourceNames: []string{"a.b"}, Verbs: []string{"delete"}},
	} {
		if excess(rule) == "" {
			t.Errorf("nothing is found in %v", rule)
		}
	}
}

func TestManifestsForNamespacesGrantNothingClusterWide(t *testing.T) {
	t.Parallel()
	_, out, _ := called(t, nil, "manifests", "rbac", "--namespaces=a,b", "--crds=check")
	if strings.Contains(out, "ClusterRole") {
		t.Errorf("cluster-wide permissions in:\n%s", out)
	}
	_, out, _ = called(t, nil, "manifests", "rbac", "--namespaces=a,b")
	if found := strings.Count(out, "kind: ClusterRole\nmetadata"); found != 1 {
		t.Errorf("%d ClusterRoles, want the one on definitions:\n%s", found, out)
	}
}

// clusterRoles returns the rules of the printed ClusterRoles by name, and the names of those that are bound.
func clusterRoles(t *testing.T, manifests string) (rules map[string][]rbacv1.PolicyRule, bound []string) {
	t.Helper()
	rules = map[string][]rbacv1.PolicyRule{}
	for document := range strings.SplitSeq(manifests, "---\n") {
		role := rbacv1.ClusterRole{}
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		switch role.Kind {
		case "ClusterRole":
			rules[role.Name] = role.Rules
		case "ClusterRoleBinding":
			bound = append(bound, role.Name)
		}
	}
	return rules, bound
}

// TestNamespacesContain: an operator of some namespaces has no permission on objects of others, not even of its own kinds, unless --migrate
// requests it.
func TestNamespacesContain(t *testing.T) {
	t.Parallel()
	for arguments, contained := range map[string]bool{"--namespaces=a": true, "--namespaces=a --migrate": false, "": false} {
		for _, kinds := range []string{"--kinds=all", "--kinds=MySQLCluster"} {
			_, out, _ := called(t, nil, append([]string{"manifests", "rbac", kinds}, strings.Fields(arguments)...)...)
			rules, _ := clusterRoles(t, out)
			outside := slices.ContainsFunc(rules["mysql-operator-definitions:mysql-operator"], func(rule rbacv1.PolicyRule) bool {
				return rule.APIGroups[0] != "apiextensions.k8s.io" || len(rule.ResourceNames) == 0
			})
			if outside == contained || len(rules) == 0 {
				t.Errorf("%q %s: cluster-wide rules %v", arguments, kinds, rules)
			}
		}
	}
}

// TestSecretsByNamespace: the roles bound in the whole cluster do not contain Secrets. Together with the role for Secrets, they grant
// exactly the usual permissions.
func TestSecretsByNamespace(t *testing.T) {
	t.Parallel()
	for _, kinds := range []string{"--kinds=all", "--kinds=MySQLCluster"} {
		_, out, _ := called(t, nil, "manifests", "rbac", kinds, "--secrets=by-namespace")
		rules, bound := clusterRoles(t, out)
		apart := rules["mysql-operator-secrets"]
		for _, name := range bound {
			for _, rule := range rules[name] {
				if slices.Contains(rule.Resources, "secrets") {
					t.Errorf("%s: %s grants %v in the whole cluster", kinds, name, rule)
				}
			}
		}
		if slices.Contains(bound, "mysql-operator-secrets") || len(apart) != 1 || !slices.Equal(apart[0].Resources, []string{"secrets"}) {
			t.Errorf("%s: the role for Secrets is %v, bound are %v", kinds, apart, bound)
		}
		_, usual, _ := called(t, nil, "manifests", "rbac", kinds)
		all, _ := clusterRoles(t, usual)
		together := deploy.Compact(append(rules["mysql-operator:mysql-operator"], apart...))
		if diff := cmp.Diff(deploy.Compact(all["mysql-operator:mysql-operator"]), together); diff != "" {
			t.Errorf("%s: with Secrets apart (-want +got):\n%s", kinds, diff)
		}
	}
	_, out, _ := called(t, nil, "manifests", "operator", "--secrets=by-namespace")
	if !strings.Contains(out, "- --secrets=by-namespace\n") {
		t.Errorf("the Deployment does not know:\n%s", out)
	}
}

// TestRightsAtStart: the operator waits for exactly the permissions that its manifests grant it in the whole cluster.
func TestRightsAtStart(t *testing.T) {
	t.Parallel()
	kinds, err := schema.Select(nil)
	if err != nil {
		t.Fatal(err)
	}
	account := deploy.Account{Namespace: "ops", Name: deploy.Name}
	for _, wanted := range []grants{{crds: crdsApply}, {crds: crdsApply, secrets: secretsByNamespace}, {crds: crdsCheck, namespaces: []string{"a"}}} {
		needed, err := permissions(kinds, wanted)
		if err != nil {
			t.Fatal(err)
		}
		for place, rules := range deploy.Needs(account, wanted.namespaces, needed) {
			asks := slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "secrets") })
			if want := wanted.secrets != secretsByNamespace || place == "ops"; asks != want {
				t.Errorf("%+v: the operator asks for Secrets %s: %t", wanted, place, asks)
			}
		}
	}
}

// TestDeploymentRunsWhatTheManifestsAreFor: run accepts the Deployment's arguments, and they have the same values.
func TestDeploymentRunsWhatTheManifestsAreFor(t *testing.T) {
	t.Parallel()
	_, out, _ := called(t, nil, "manifests", "operator", "--namespaces=b,a", "--kinds=MySQLCluster", "--crds=check", "--image=i:1", "--namespace=n")
	deployment := appsv1.Deployment{}
	if err := yaml.UnmarshalStrict([]byte(out), &deployment); err != nil {
		t.Fatal(err)
	}
	container := deployment.Spec.Template.Spec.Containers[0]
	o := runOptions{}
	rest, err := cli.Parse(o.flags(), cli.Process{Arguments: container.Args[1:], Environment: func(string) string { return "" }})
	if err != nil || len(rest) > 0 || container.Args[0] != "run" {
		t.Fatalf("arguments %v: rest %v, error %v", container.Args, rest, err)
	}
	if !slices.Equal(o.namespaces, []string{"a", "b"}) || !slices.Equal(o.kinds, []string{"MySQLCluster"}) || o.definitions.mode != crdsCheck {
		t.Errorf("the arguments are read as %+v", o)
	}
	if container.Image != "i:1" || deployment.Namespace != "n" {
		t.Errorf("image %s in namespace %s", container.Image, deployment.Namespace)
	}
}

func TestManifestsAllIsEveryPart(t *testing.T) {
	t.Parallel()
	parts := []string{}
	for _, part := range []string{"crds", "rbac", "policy", "operator"} {
		_, out, _ := called(t, nil, "manifests", part)
		parts = append(parts, out)
	}
	_, all, _ := called(t, nil, "manifests")
	if all != strings.Join(parts, "---\n") {
		t.Error("all is not crds, rbac, policy and operator one after the other")
	}
}

func TestManifestsOfDefinitionsAreStamped(t *testing.T) {
	t.Parallel()
	_, out, _ := called(t, nil, "manifests", "crds")
	for _, kind := range schema.Kinds() {
		if kind.Default != strings.Contains(out, "name: "+kind.DefinitionName()+"\n") {
			t.Errorf("%s: default %t", kind.DefinitionName(), kind.Default)
		}
	}
	if !strings.Contains(out, "/schema-hash: ") || !strings.Contains(out, "app.kubernetes.io/managed-by: mysql-operator") {
		t.Error("the definitions have no schema hash or label")
	}
}

// TestManifestsOfTheRepositoryAreOfToday: users apply these files, and an outdated policy would refuse the operator's writes.
func TestManifestsOfTheRepositoryAreOfToday(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"crds", "rbac", "policy", "operator", "protection"} {
		written, err := os.ReadFile(filepath.Join("..", "..", "deploy", part+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if _, made, _ := called(t, nil, "manifests", part); made != string(written) {
			t.Errorf("deploy/%s.yaml is not what mysql-operator manifests %s prints: run make manifests", part, part)
		}
	}
}
