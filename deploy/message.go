package deploy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Lines returns the missing permissions, one rule in each line.
func (s MissingPermissions) Lines() []string {
	lines := []string{}
	for _, place := range slices.Sorted(maps.Keys(s.Missing)) {
		for _, rule := range s.Missing[place] {
			lines = append(lines, fmt.Sprintf("%s: %s", place, describe(rule)))
		}
	}
	return lines
}

// Message returns a text that says which permissions the user does not have, and a command that an administrator can paste to grant them.
// grant is the YAML for this command.
func (s MissingPermissions) Message(grant []byte) string {
	var text strings.Builder
	fmt.Fprintf(&text, "\n%s does not have permissions that the operator needs:\n", s.User)
	for _, line := range s.Lines() {
		fmt.Fprintf(&text, "  %s\n", line)
	}
	if account, known := AccountOf(s.User); known && account.Name == "default" {
		fmt.Fprintf(&text, "\nEvery Pod of namespace %s without its own service account would get these permissions, too. Give the operator its own account\n"+
			"(mysql-operator manifests rbac --namespace=%s), and run it with that account: kubectl run … --overrides='{\"spec\":{\"serviceAccountName\":\"%s\"}}'\n", account.Namespace, account.Namespace, Name)
	}
	fmt.Fprintf(&text, "\nAn administrator can grant them. The operator continues as soon as it has them:\n\nkubectl apply --server-side -f - <<'EOF'\n%sEOF\n\n", grant)
	return text.String()
}

func describe(rule rbacv1.PolicyRule) string {
	text := fmt.Sprintf("%s on %s", strings.Join(rule.Verbs, ", "), strings.Join(rule.Resources, ", "))
	if group := rule.APIGroups[0]; group != "" {
		text += " of " + group
	}
	if len(rule.ResourceNames) > 0 {
		text += " named " + strings.Join(rule.ResourceNames, ", ")
	}
	return text
}

// AccountOf returns the service account of a user name of the API server, and false for other users.
func AccountOf(user string) (Account, bool) {
	rest, isAccount := strings.CutPrefix(user, "system:serviceaccount:")
	namespace, name, complete := strings.Cut(rest, ":")
	return Account{Namespace: namespace, Name: name}, isAccount && complete
}
