package deploy

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	// MetricsPort is where the operator in a Deployment serves its metrics.
	MetricsPort = 8080
	// HealthPort is where the operator answers probes.
	HealthPort = 8081
	// AlarmPort is where the operator takes the alarms of clusters' members.
	AlarmPort = 8443

	// operatorUser is the numeric user of the image, so that runAsNonRoot can be checked.
	operatorUser = 65532
)

// Operator returns the operator's Deployment. One replica reconciles. The other one waits for the Lease, on another node if there is one: a
// failover must not wait until Kubernetes replaces the operator's Pod. The Deployment meets the Pod Security Standard "restricted".
func Operator(account Account, image string, arguments []string) []any {
	replicas := int32(2)
	return []any{&appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: meta(account.Namespace, Name),
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels()},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels()},
				Spec:       podSpec(account, image, arguments),
			},
		},
	}}
}

func podSpec(account Account, image string, arguments []string) corev1.PodSpec {
	nonRoot, user, mounted, links := true, int64(operatorUser), true, false
	return corev1.PodSpec{
		ServiceAccountName: account.Name,
		// The operator needs the token for the API server, whatever the default of its account is. Its other Pods get no token.
		AutomountServiceAccountToken: &mounted,
		EnableServiceLinks:           &links,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: &nonRoot, RunAsUser: &user, RunAsGroup: &user,
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{container(image, arguments)},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: labels()},
		}},
	}
}

func container(image string, arguments []string) corev1.Container {
	no, yes := false, true
	return corev1.Container{
		Name: Name, Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
		Args: append([]string{"run"}, arguments...),
		Ports: []corev1.ContainerPort{
			{Name: "metrics", ContainerPort: MetricsPort},
			{Name: "health", ContainerPort: HealthPort},
			{Name: "alarms", ContainerPort: AlarmPort},
		},
		LivenessProbe:  probe("/healthz", 20),
		ReadinessProbe: probe("/readyz", 5),
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
		},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}

func probe(path string, everySeconds int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:   corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("health")}},
		PeriodSeconds:  everySeconds,
		TimeoutSeconds: 3,
	}
}
