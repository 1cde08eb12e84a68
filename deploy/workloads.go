package deploy

import (
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// workloads are what Pods are made of: they pass the Pod Security Standard "restricted", and get no credentials of Kubernetes, neither by
// themselves nor as a volume. A template that somebody else made, and that stays as it is, is not the operator's affair.
func (l Limits) workloads() restraint {
	return restraint{
		name: "workloads",
		on:   append(onWrites("apps", "statefulsets", "deployments", "daemonsets"), onWrites("batch", "jobs")...),
		variables: []admissionv1.Variable{
			{Name: "pod", Expression: "object.spec.template.spec"},
			{Name: "before", Expression: "oldObject == null ? dyn({}) : dyn(oldObject.spec.template.spec)"},
			{Name: "containers", Expression: "object.spec.template.spec.containers + object.spec.template.spec.?initContainers.orValue([])"},
		},
		rules: append(l.podRules(), templateRules()...),
	}
}

// podRules are about the Pods themselves.
func (l Limits) podRules() []admissionv1.Validation {
	apart := ""
	if l.PlainPods {
		apart = "request.resource.resource == 'deployments' || "
	}
	rules := []admissionv1.Validation{
		validation(reachesNoNode(), "the operator makes no Pods that reach the node"),
		validation(probesItself(), "the operator's Pods are probed at their own addresses"),
		validation(volumes(), "the operator's Pods mount Secrets, ConfigMaps, claims and empty folders only, and no service account's token"),
		validation(l.getsNoToken(), "the operator's Pods get no service account's token"),
		validation(apart+isRestricted(), "the operator's Pods are restricted (Pod Security Standards)"),
		validation(apart+hasRestrictedContainers(), "the containers of the operator's Pods are restricted (Pod Security Standards)"),
		validation("variables.pod.?affinity.?podAntiAffinity.?requiredDuringSchedulingIgnoredDuringExecution.orValue([]).size() == 0",
			"the operator's Pods keep nobody off their node"),
	}
	if l.ReadsSecrets {
		// Else a Pod would read for the operator what it may not read itself.
		rules = append(rules, validation("!("+usesSecrets()+") || "+
			"authorizer.group('').resource('secrets').namespace(request.namespace).check('get').allowed()",
			"the operator makes Pods with Secrets only in namespaces where it may read Secrets"))
	}
	for at := range rules {
		rules[at].Expression = "dyn(variables.pod) == variables.before || (" + rules[at].Expression + ")"
	}
	return append(rules,
		validation(isPlacedByOthers(), "the operator chooses for its Pods no node, scheduler, toleration, priority, runtime or device, and shares no processes"),
		validation(isNamedByOthers(), "the operator's Pods choose no names, which in the DNS of their namespace could hide a Service of another one"))
}

func ofPod(conditions ...string) string { return "(" + strings.Join(conditions, " && ") + ")" }

func ofContainers(conditions ...string) string {
	return "variables.containers.all(c, " + strings.Join(conditions, " && ") + ")"
}

// reachesNoNode is an expression: what every Pod has to be, also one that need not be restricted (Pod Security Standard "baseline").
func reachesNoNode() string {
	return ofPod("!variables.pod.?hostNetwork.orValue(false)", "!variables.pod.?hostPID.orValue(false)",
		"!variables.pod.?hostIPC.orValue(false)", "!variables.pod.?securityContext.?seLinuxOptions.hasValue()",
		"!variables.pod.?securityContext.?windowsOptions.hasValue()",
		"variables.pod.?securityContext.?sysctls.orValue([]).all(s, s.name in ['net.ipv4.ip_unprivileged_port_start', "+
			"'net.ipv4.tcp_keepalive_time', 'net.ipv4.tcp_keepalive_intvl', 'net.ipv4.tcp_keepalive_probes'])",
		"variables.pod.?securityContext.?seccompProfile.?type.orValue('RuntimeDefault') == 'RuntimeDefault'",
		"variables.pod.?securityContext.?appArmorProfile.?type.orValue('RuntimeDefault') == 'RuntimeDefault'",
		ofContainers("!c.?securityContext.?privileged.orValue(false)", "!c.?securityContext.?seLinuxOptions.hasValue()",
			"!c.?securityContext.?windowsOptions.hasValue()",
			"c.?ports.orValue([]).all(p, p.?hostPort.orValue(0) == 0)",
			"c.?securityContext.?procMount.orValue('Default') == 'Default'", "c.?securityContext.?capabilities.?add.orValue([]).size() == 0",
			"c.?securityContext.?seccompProfile.?type.orValue('RuntimeDefault') == 'RuntimeDefault'",
			"c.?securityContext.?appArmorProfile.?type.orValue('RuntimeDefault') == 'RuntimeDefault'"))
}

// probesItself is an expression: kubelet, which reaches what Pods cannot, sends its requests to the Pods alone.
func probesItself() string {
	return ofContainers(ofEach("c.?%[1]s.?httpGet.?host.orValue('') == '' && c.?%[1]s.?tcpSocket.?host.orValue('') == ''",
		"livenessProbe", "readinessProbe", "startupProbe", "lifecycle.?postStart", "lifecycle.?preStop"))
}

// getsNoToken is an expression: no account's token is in the Pods, nor may they choose whose it is.
func (l Limits) getsNoToken() string {
	none := "variables.pod.?automountServiceAccountToken.orValue(true) == false"
	if l.PlainPods {
		return none + " || (request.resource.resource == 'deployments' && variables.pod.?serviceAccountName.orValue('default') in ['', 'default'])"
	}
	return none
}

func isRestricted() string {
	return ofPod("variables.pod.?securityContext.?runAsNonRoot.orValue(false)",
		"variables.pod.?securityContext.?runAsUser.orValue(1) != 0",
		"variables.pod.?securityContext.?seccompProfile.?type.orValue('') == 'RuntimeDefault'")
}

func hasRestrictedContainers() string {
	return ofContainers("c.?securityContext.?allowPrivilegeEscalation.orValue(true) == false",
		"'ALL' in c.?securityContext.?capabilities.?drop.orValue([])",
		"c.?securityContext.?runAsNonRoot.orValue(true)", "c.?securityContext.?runAsUser.orValue(1) != 0")
}

// isPlacedByOthers is an expression: where Pods run, before whom and beside what is left to others. What people wrote stays.
func isPlacedByOthers() string {
	const scheduler = "?schedulerName.orValue('default-scheduler')"
	return staysAsBefore("nodeName", "nodeSelector", "affinity.?nodeAffinity", "affinity.?podAffinity", "tolerations",
		"priorityClassName", "priority", "runtimeClassName", "resourceClaims", "shareProcessNamespace") +
		" && dyn(variables.pod)." + scheduler + " == variables.before." + scheduler
}

// isNamedByOthers is an expression: with a name and a headless Service a Pod has an address in the DNS. That of postgres in prod is asked
// for in the asking Pod's own namespace first, and in the namespace prod only then.
func isNamedByOthers() string { return staysAsBefore("hostname", "subdomain", "setHostnameAsFQDN") }

// staysAsBefore is an expression: these fields of a Pod say what they said before, in a new template nothing.
func staysAsBefore(fields ...string) string {
	return ofEach("dyn(variables.pod).?%[1]s == variables.before.?%[1]s", fields...)
}

// volumes is an expression: every volume is of a kind that the operator uses.
func volumes() string {
	return "variables.pod.?volumes.orValue([]).all(v, has(v.secret) || has(v.configMap) || has(v.emptyDir) || " +
		"has(v.persistentVolumeClaim) || has(v.downwardAPI) || " +
		"(has(v.projected) && v.projected.?sources.orValue([]).all(s, " +
		"!has(s.serviceAccountToken) && !has(s.clusterTrustBundle) && !has(s.podCertificate))))"
}

// usesSecrets is an expression: a Pod gets a Secret's content as files or in its environment, or an image by its password.
func usesSecrets() string {
	return "variables.pod.?imagePullSecrets.orValue([]).size() > 0 || " +
		"variables.pod.?volumes.orValue([]).exists(v, has(v.secret) || has(v.projected)) || variables.containers.exists(c, " +
		"c.?envFrom.orValue([]).exists(e, has(e.secretRef)) || c.?env.orValue([]).exists(e, e.?valueFrom.?secretKeyRef.hasValue()))"
}
