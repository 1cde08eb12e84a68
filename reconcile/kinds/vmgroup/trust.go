package vmgroup

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/mysql-operator/mysql-operator/reconcile/report"
)

// everywhere, in Settings.SharedWith, stands for all namespaces.
const everywhere = "all"

// sharesWith reports whether the groups of a namespace may use the operator's own account.
func (s Settings) sharesWith(namespace string) bool {
	return namespace != "" && namespace == s.Namespace || slices.Contains(s.SharedWith, everywhere) || slices.Contains(s.SharedWith, namespace)
}

// places returns the namespaces whose Secret may have the account for a namespace's groups, in the order in which to read them.
func (s Settings) places(namespace string) []string {
	if s.Namespace == "" || s.Namespace == namespace || !s.sharesWith(namespace) {
		return []string{namespace}
	}
	return []string{namespace, s.Namespace}
}

// mayReach reports whether a namespace's Secret may name this vCenter: any, unless the settings list hosts.
func (s Settings) mayReach(host string) bool {
	if len(s.Hosts) == 0 {
		return true
	}
	if !strings.Contains(host, "://") {
		host = "https://" + host
	}
	endpoint, err := url.Parse(host)
	if err != nil || !slices.Contains([]string{"", "/", "/sdk"}, endpoint.Path) || endpoint.RawQuery != "" || endpoint.User != nil {
		return false
	}
	return slices.ContainsFunc(s.Hosts, func(allowed string) bool {
		usual := endpoint.Port() == "" || endpoint.Port() == "443"
		return strings.EqualFold(allowed, endpoint.Host) || usual && strings.EqualFold(allowed, endpoint.Hostname())
	})
}

// hostNotAllowed returns the problem that a Secret names a host which it may not. The message leaves out the host, because it may contain a
// password.
func hostNotAllowed(namespace string) *report.Problem {
	return &report.Problem{Reason: report.ReasonForbidden, Message: fmt.Sprintf("%s of Secret %s in namespace %s is not one of the hosts that the operator may connect to: "+
		"correct it, or add the host to the operator's --vcenter-hosts", keyHost, SecretName, namespace)}
}

// accountNotShared returns the problem that a namespace has no account and may not use the operator's.
func accountNotShared(namespace string) *report.Problem {
	return &report.Problem{Reason: reasonCredentialsMissing, Message: fmt.Sprintf("there is no Secret %s in namespace %s, "+
		"and that namespace may not use the operator's own account (--vm-namespaces): %s", SecretName, namespace, createSecretCommand(namespace))}
}

// createSecretCommand returns the command that creates the Secret.
func createSecretCommand(namespace string) string {
	return fmt.Sprintf("kubectl -n %s create secret generic %s --from-literal=%s=… --from-literal=%s=… --from-literal=%s=…",
		namespace, SecretName, keyUser, keyPassword, keyHost)
}
