package deploy

import (
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// workloads is about the workloads that make Pods. Their Pods pass the Pod Security Standard "restricted", and get no credentials of
// Kubernetes, neither by default nor as a volume. A template that another client made, and that does not change, is allowed.
func (l Limits) workloads() policyRules {
	return policyRules{
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

// podRules are the rules about the Pods themselves.
func (l Limits) podRules() []admissionv1.Validation {
	apart := ""
	if l.PlainPods {
		apart = "request.resource.resource == 'deployments' || "
	}
	rules := []admissionv1.Validation{
		validation(reachesNoNode(), "the operator makes no Pods with access to the node"),
		validation(probesItself(), "kubelet probes the operator's Pods only at their own addresses"),
		validation(volumes(), "the operator's Pods mount only Secrets, ConfigMaps, claims, empty directories and the downward API, and no service account token"),
		validation(l.getsNoToken(), "the operator's Pods get no service account token"),
		validation(apart+isRestricted(), "the operator's Pods are restricted (Pod Security Standards)"),
		validation(apart+hasRestrictedContainers(), "the containers of the operator's Pods are restricted (Pod Security Standards)"),
		validation("variables.pod.?affinity.?podAntiAffinity.?requiredDuringSchedulingIgnoredDuringExecution.orValue([]).size() == 0",
			"the operator's Pods have no required anti-affinity, which would keep other Pods off their node"),
	}
	if l.ReadsSecrets {
		// Otherwise the operator could read a Secret through a Pod without the permission to read it.
		rules = append(rules, validation("!("+usesSecrets()+") || "+
			"authorizer.group('').resource('secrets').namespace(request.namespace).check('get').allowed()",
			"the operator makes Pods with Secrets only in namespaces where it may read Secrets"))
	}
	for at := range rules {
		rules[at].Expression = "dyn(variables.pod) == variables.before || (" + rules[at].Expression + ")"
	}
	return append(rules,
		validation(setsNoPlacement(), "the operator sets no node, scheduler, toleration, priority, runtime, device or shared process namespace for its Pods"),
		validation(setsNoHostNames(), "the operator sets no host names for its Pods, because in the DNS of their namespace they could hide a Service of another namespace"))
}

func ofPod(conditions ...string) string { return "(" + strings.Join(conditions, " && ") + ")" }

func ofContainers(conditions ...string) string {
	return "variables.containers.all(c, " + strings.Join(conditions, " && ") + ")"
}

// reachesNoNode returns an expression that must be true for every Pod, also for one that need not be restricted (Pod Security Standard
// "baseline").
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

// probesItself returns an expression: kubelet, which reaches addresses that Pods cannot reach, sends its requests only to the Pods.
func probesItself() string {
	return ofContainers(ofEach("c.?%[1]s.?httpGet.?host.orValue('') == '' && c.?%[1]s.?tcpSocket.?host.orValue('') == ''",
		"livenessProbe", "readinessProbe", "startupProbe", "lifecycle.?postStart", "lifecycle.?preStop"))
}

// getsNoToken returns an expression: the Pods get no token of a service account. Plain Pods may get that of the default account only.
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

// setsNoPlacement returns an expression: the operator does not decide where Pods run, with which priority, and next to which other Pods.
// It keeps what users wrote.
func setsNoPlacement() string {
	const scheduler = "?schedulerName.orValue('default-scheduler')"
	return staysAsBefore("nodeName", "nodeSelector", "affinity.?nodeAffinity", "affinity.?podAffinity", "tolerations",
		"priorityClassName", "priority", "runtimeClassName", "resourceClaims", "shareProcessNamespace") +
		" && dyn(variables.pod)." + scheduler + " == variables.before." + scheduler
}

// setsNoHostNames returns an expression: the operator sets no host names of Pods. With a host name and a headless Service, a Pod gets a
// name in the DNS. A client that looks up postgres.prod first finds Pod postgres of Service prod in its own namespace, and only then
// Service postgres in namespace prod.
func setsNoHostNames() string { return staysAsBefore("hostname", "subdomain", "setHostnameAsFQDN") }

// staysAsBefore returns an expression: these fields of a Pod do not change, and are not set in a new template.
func staysAsBefore(fields ...string) string {
	return ofEach("dyn(variables.pod).?%[1]s == variables.before.?%[1]s", fields...)
}

// volumes returns an expression: every volume is of a kind that the operator uses.
func volumes() string {
	return "variables.pod.?volumes.orValue([]).all(v, has(v.secret) || has(v.configMap) || has(v.emptyDir) || " +
		"has(v.persistentVolumeClaim) || has(v.downwardAPI) || " +
		"(has(v.projected) && v.projected.?sources.orValue([]).all(s, " +
		"!has(s.serviceAccountToken) && !has(s.clusterTrustBundle) && !has(s.podCertificate))))"
}

// usesSecrets returns an expression: a Pod gets the content of a Secret as files or in its environment, or uses it to pull an image.
func usesSecrets() string {
	return "variables.pod.?imagePullSecrets.orValue([]).size() > 0 || " +
		"variables.pod.?volumes.orValue([]).exists(v, has(v.secret) || has(v.projected)) || variables.containers.exists(c, " +
		"c.?envFrom.orValue([]).exists(e, has(e.secretRef)) || c.?env.orValue([]).exists(e, e.?valueFrom.?secretKeyRef.hasValue()))"
}
