package deploy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Lines says what is missing, one rule a line.
func (s Shortage) Lines() []string {
	lines := []string{}
	for _, place := range slices.Sorted(maps.Keys(s.Missing)) {
		for _, rule := range s.Missing[place] {
			lines = append(lines, fmt.Sprintf("%s: %s", place, describe(rule)))
		}
	}
	return lines
}

// Message says who lacks which rights and how to grant them, as text an administrator can paste: grant is the YAML that does.
func (s Shortage) Message(grant []byte) string {
	var text strings.Builder
	fmt.Fprintf(&text, "\n%s lacks rights the operator needs:\n", s.User)
	for _, line := range s.Lines() {
		fmt.Fprintf(&text, "  %s\n", line)
	}
	if account, known := AccountOf(s.User); known && account.Name == "default" {
		fmt.Fprintf(&text, "\nEvery Pod of namespace %s without an account of its own has the rights of this one: better give the operator its own\n"+
			"(mysql-operator manifests rbac --namespace=%s), and run it under that: kubectl run … --overrides='{\"spec\":{\"serviceAccountName\":\"%s\"}}'\n", account.Namespace, account.Namespace, Name)
	}
	fmt.Fprintf(&text, "\nAn administrator can grant them; the operator goes on as soon as it has them:\n\nkubectl apply --server-side -f - <<'EOF'\n%sEOF\n\n", grant)
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

// AccountOf returns the service account a user name of the API server stands for, and false for other users.
func AccountOf(user string) (Account, bool) {
	rest, isAccount := strings.CutPrefix(user, "system:serviceaccount:")
	namespace, name, complete := strings.Cut(rest, ":")
	return Account{Namespace: namespace, Name: name}, isAccount && complete
}
