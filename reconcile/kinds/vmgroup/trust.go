package vmgroup

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// everywhere, in Settings.LendTo, stands for all namespaces.
const everywhere = "all"

// lends says whether the groups of a namespace may use the operator's own account.
func (s Settings) lends(namespace string) bool {
	return namespace != "" && namespace == s.Namespace || slices.Contains(s.LendTo, everywhere) || slices.Contains(s.LendTo, namespace)
}

// places are the namespaces whose Secret may name the account of a namespace's groups, in the order in which they are looked at.
func (s Settings) places(namespace string) []string {
	if s.Namespace == "" || s.Namespace == namespace || !s.lends(namespace) {
		return []string{namespace}
	}
	return []string{namespace, s.Namespace}
}

// mayReach says whether the operator may be sent to a vCenter that the Secret of a namespace names: any, unless the settings list hosts.
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

// strayed says that a Secret leads to a host that the operator may not be sent to. The host is not printed: there may be a password in it.
func strayed(namespace string) *problem {
	return &problem{reasonForbidden, fmt.Sprintf("%s of Secret %s in namespace %s is none of the hosts that the operator may speak to: "+
		"correct it, or have the host added to the operator's --vcenter-hosts", keyHost, SecretName, namespace)}
}

// unlent says that a namespace has no account of its own and gets none from the operator.
func unlent(namespace string) *problem {
	return &problem{reasonCredentialsMissing, fmt.Sprintf("there is no Secret %s in namespace %s, "+
		"and the operator's own account is not for it (--vm-namespaces): %s", SecretName, namespace, creation(namespace))}
}

// creation is the command that makes the Secret.
func creation(namespace string) string {
	return fmt.Sprintf("kubectl -n %s create secret generic %s --from-literal=%s=… --from-literal=%s=… --from-literal=%s=…",
		namespace, SecretName, keyUser, keyPassword, keyHost)
}
