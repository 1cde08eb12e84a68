package deploy

import (
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// workloads are what Pods are made of: they pass the Pod Security Standard "restricted", and get no credentials of Kubernetes, neither by
// themselves nor as a volume. A template that somebody else made, and that stays as it is, is not the operator's affair.
func (l Limits) workloads() restraint {
	unchanged := "(oldObject != null && object.spec.template.spec == oldObject.spec.template.spec) || "
	apart := ""
	if l.PlainPods {
		apart = "request.resource.resource == 'deployments' || "
	}
	check := func(expression, message string) admissionv1.Validation {
		return validation(unchanged+"("+expression+")", message)
	}
	secrets := []admissionv1.Validation{}
	if l.ReadsSecrets {
		// Else a Pod would read for the operator what it may not read itself.
		secrets = append(secrets, check("!("+usesSecrets()+") || "+
			"authorizer.group('').resource('secrets').namespace(request.namespace).check('get').allowed()",
			"the operator makes Pods with Secrets only in namespaces where it may read Secrets"))
	}
	return restraint{
		name: "workloads",
		on:   append(onWrites("apps", "statefulsets", "deployments", "daemonsets"), onWrites("batch", "jobs")...),
		variables: []admissionv1.Variable{
			{Name: "pod", Expression: "object.spec.template.spec"},
			{Name: "containers", Expression: "object.spec.template.spec.containers + object.spec.template.spec.?initContainers.orValue([])"},
		},
		rules: append(secrets, []admissionv1.Validation{
			check(ofPod("!variables.pod.?hostNetwork.orValue(false)", "!variables.pod.?hostPID.orValue(false)",
				"!variables.pod.?hostIPC.orValue(false)", "!variables.pod.?securityContext.?seLinuxOptions.hasValue()",
				ofContainers("!c.?securityContext.?privileged.orValue(false)", "!c.?securityContext.?seLinuxOptions.hasValue()", "c.?ports.orValue([]).all(p, p.?hostPort.orValue(0) == 0)",
					"c.?securityContext.?procMount.orValue('Default') == 'Default'", "c.?securityContext.?capabilities.?add.orValue([]).size() == 0")),
				"the operator makes no Pods that reach the node"),
			check(volumes(), "the operator's Pods mount Secrets, ConfigMaps, claims and empty folders only, and no service account's token"),
			check(apart+"variables.pod.?automountServiceAccountToken.orValue(true) == false", "the operator's Pods get no service account's token"),
			check(apart+ofPod("variables.pod.?securityContext.?runAsNonRoot.orValue(false)",
				"variables.pod.?securityContext.?runAsUser.orValue(1) != 0",
				"variables.pod.?securityContext.?seccompProfile.?type.orValue('') == 'RuntimeDefault'",
				"variables.pod.?securityContext.?sysctls.orValue([]).all(s, s.name == 'net.ipv4.ip_unprivileged_port_start')",
				"variables.pod.?securityContext.?appArmorProfile.?type.orValue('RuntimeDefault') == 'RuntimeDefault'"),
				"the operator's Pods are restricted (Pod Security Standards)"),
			check(apart+ofContainers("c.?securityContext.?allowPrivilegeEscalation.orValue(true) == false",
				"'ALL' in c.?securityContext.?capabilities.?drop.orValue([])",
				"c.?securityContext.?runAsNonRoot.orValue(true)", "c.?securityContext.?runAsUser.orValue(1) != 0",
				"c.?securityContext.?seccompProfile.?type.orValue('RuntimeDefault') == 'RuntimeDefault'",
				"c.?securityContext.?appArmorProfile.?type.orValue('RuntimeDefault') == 'RuntimeDefault'"),
				"the containers of the operator's Pods are restricted (Pod Security Standards)"),
		}...),
	}
}

func ofPod(conditions ...string) string { return "(" + strings.Join(conditions, " && ") + ")" }

func ofContainers(conditions ...string) string {
	return "variables.containers.all(c, " + strings.Join(conditions, " && ") + ")"
}

// volumes is an expression: every volume is of a kind that the operator uses.
func volumes() string {
	return "variables.pod.?volumes.orValue([]).all(v, has(v.secret) || has(v.configMap) || has(v.emptyDir) || " +
		"has(v.persistentVolumeClaim) || has(v.downwardAPI) || " +
		"(has(v.projected) && v.projected.?sources.orValue([]).all(s, " +
		"!has(s.serviceAccountToken) && !has(s.clusterTrustBundle) && !has(s.podCertificate))))"
}

// usesSecrets is an expression: a Pod gets a Secret's content as files or in its environment.
func usesSecrets() string {
	return "variables.pod.?volumes.orValue([]).exists(v, has(v.secret) || has(v.projected)) || variables.containers.exists(c, " +
		"c.?envFrom.orValue([]).exists(e, has(e.secretRef)) || c.?env.orValue([]).exists(e, e.?valueFrom.?secretKeyRef.hasValue()))"
}
