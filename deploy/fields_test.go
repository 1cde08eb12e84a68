package deploy

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
)

// decisions hold, for each field that the operator may write, "checked" if a policy limits it, or else why an attacker with the operator's
// token gains nothing by it. The operator may decide about fields that affect only the Pod, or the object, itself.
func decisions() map[reflect.Type]map[string]string {
	const checked, itself, size = "checked", "about itself only", "costs what a quota bounds"
	of := func(decision string, fields string) map[string]string {
		all := map[string]string{}
		for field := range strings.FieldsSeq(fields) {
			all[field] = decision
		}
		return all
	}
	join := func(sets ...map[string]string) map[string]string {
		all := map[string]string{}
		for _, one := range sets {
			maps.Copy(all, one)
		}
		return all
	}
	return map[reflect.Type]map[string]string{
		reflect.TypeFor[corev1.PodSpec](): join(
			of(checked, "volumes initContainers containers automountServiceAccountToken nodeName hostNetwork hostPID hostIPC shareProcessNamespace "+
				"securityContext imagePullSecrets affinity tolerations priorityClassName priority runtimeClassName resourceClaims serviceAccountName "+
				"nodeSelector schedulerName hostname subdomain setHostnameAsFQDN"),
			of(itself, "restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds readinessGates enableServiceLinks os schedulingGates "+
				"evictionResponders schedulingGroup"),
			of("which names its own containers look up, and where", "dnsPolicy dnsConfig hostAliases"),
			of("the host name that its containers see, which is not in the DNS", "hostnameOverride"),
			of("it spreads Pods over nodes that would accept them anyway", "topologySpreadConstraints"),
			of(size, "resources overhead"),
			of("the API server allows none in templates", "ephemeralContainers"),
			of("the former name, which the API server keeps equal", "serviceAccount"),
			of("a user namespace of its own only isolates the Pod better", "hostUsers"),
			of("without a priority it only makes the Pod wait", "preemptionPolicy"),
		),
		reflect.TypeFor[corev1.Affinity](): of(checked, "nodeAffinity podAffinity podAntiAffinity"),
		reflect.TypeFor[corev1.Container](): join(
			of(checked, "ports envFrom env livenessProbe readinessProbe startupProbe lifecycle securityContext"),
			of(itself, "name image command args workingDir restartPolicy restartPolicyRules resizePolicy terminationMessagePath terminationMessagePolicy stdin stdinOnce tty imagePullPolicy"),
			of(size, "resources"),
			of("of the Pod's volumes, which are checked", "volumeMounts volumeDevices"),
		),
		reflect.TypeFor[corev1.PodSecurityContext](): join(
			of(checked, "seLinuxOptions windowsOptions runAsUser runAsNonRoot sysctls seccompProfile appArmorProfile"),
			of("of the Pod's own volumes", "runAsGroup supplementalGroups supplementalGroupsPolicy fsGroup fsGroupChangePolicy seLinuxChangePolicy"),
		),
		reflect.TypeFor[corev1.SecurityContext](): join(
			of(checked, "capabilities privileged seLinuxOptions windowsOptions runAsUser runAsNonRoot allowPrivilegeEscalation procMount seccompProfile appArmorProfile"),
			of(itself, "runAsGroup readOnlyRootFilesystem"),
		),
		reflect.TypeFor[appsv1.StatefulSetSpec](): join(
			of(checked, "selector template serviceName volumeClaimTemplates persistentVolumeClaimRetentionPolicy"),
			of(itself, "podManagementPolicy updateStrategy revisionHistoryLimit minReadySeconds ordinals"), of(size, "replicas"),
		),
		reflect.TypeFor[appsv1.DeploymentSpec](): join(
			of(checked, "selector template"),
			of(itself, "strategy minReadySeconds revisionHistoryLimit paused progressDeadlineSeconds"), of(size, "replicas"),
		),
		reflect.TypeFor[batchv1.JobSpec](): join(
			of(checked, "manualSelector template"),
			of("the API server makes it, without manualSelector", "selector"),
			of(itself, "activeDeadlineSeconds podFailurePolicy successPolicy backoffLimit backoffLimitPerIndex maxFailedIndexes "+
				"ttlSecondsAfterFinished completionMode suspend podReplacementPolicy managedBy scheduling"),
			of(size, "parallelism completions"),
		),
		reflect.TypeFor[corev1.ServiceSpec](): join(
			of(checked, "selector type externalIPs"),
			of("Services of type ClusterIP have none", "loadBalancerIP loadBalancerSourceRanges externalName externalTrafficPolicy healthCheckNodePort allocateLoadBalancerNodePorts loadBalancerClass"),
			of(itself, "ports clusterIP clusterIPs sessionAffinity publishNotReadyAddresses sessionAffinityConfig ipFamilies ipFamilyPolicy internalTrafficPolicy trafficDistribution"),
		),
		reflect.TypeFor[corev1.PersistentVolumeClaimSpec](): join(
			of(checked, "selector volumeName dataSource dataSourceRef volumeAttributesClassName"),
			of(itself, "accessModes volumeMode storageClassName"), of(size, "resources"),
		),
		reflect.TypeFor[corev1.ServiceAccount](): join(
			of(checked, "metadata secrets imagePullSecrets"), of("Pods set that they get none", "automountServiceAccountToken"),
		),
		reflect.TypeFor[corev1.Secret]():                    join(of(checked, "metadata type"), of(itself, "immutable data stringData")),
		reflect.TypeFor[policyv1.PodDisruptionBudgetSpec](): join(of(checked, "selector"), of(itself, "minAvailable maxUnavailable unhealthyPodEvictionPolicy")),
		reflect.TypeFor[networkingv1.NetworkPolicySpec]():   join(of(checked, "podSelector"), of(itself, "ingress egress policyTypes")),
		reflect.TypeFor[corev1.VolumeProjection]():          of(checked, "secret downwardAPI configMap serviceAccountToken clusterTrustBundle podCertificate"),
	}
}

// TestEveryFieldIsDecided fails when a release of Kubernetes has a new field without a decision, and when no policy contains a field whose
// decision is "checked".
func TestEveryFieldIsDecided(t *testing.T) {
	t.Parallel()
	rules := []string{}
	limits := Limits{Account: Account{Namespace: "a", Name: "b"}, ReadsSecrets: true, PlainPods: true}
	for _, one := range []policyRules{limits.contents(), limits.workloads()} {
		for _, variable := range one.variables {
			rules = append(rules, variable.Expression)
		}
		for _, rule := range one.rules {
			rules = append(rules, rule.Expression)
		}
	}
	text := strings.Join(rules, "\n")
	for kind, decided := range decisions() {
		fields := jsonFields(kind)
		for _, field := range fields {
			switch decision := decided[field]; {
			case decision == "":
				t.Errorf("%s.%s: decide what an attacker with the operator's token gains by it", kind.Name(), field)
			case decision == "checked" && !strings.Contains(text, field):
				t.Errorf("no policy checks %s.%s", kind.Name(), field)
			}
		}
		for field := range decided {
			if !slices.Contains(fields, field) {
				t.Errorf("%s has no field %s", kind.Name(), field)
			}
		}
	}
}

// jsonFields are the names of a type's fields in documents.
func jsonFields(of reflect.Type) []string {
	names := []string{}
	for field := range of.Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	return names
}
