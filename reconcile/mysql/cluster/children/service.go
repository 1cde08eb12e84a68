package children

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

const mysqlPortName = "mysql"

// WriteService leads to the primary alone. It selects the primary by its Pod's name, so that one write changes the route, and clients can
// never reach two primaries through it.
func WriteService(n Names, cluster v1.MySQLCluster, primary string) *corev1ac.ServiceApplyConfiguration {
	return service(n, n.Cluster, cluster, map[string]string{LabelPod: primary})
}

// ReadService leads to the replicas that serve, or to the primary if there is none.
func ReadService(n Names, cluster v1.MySQLCluster, primary string, fromPrimary bool) *corev1ac.ServiceApplyConfiguration {
	if fromPrimary {
		return service(n, n.ReadService(), cluster, map[string]string{LabelPod: primary})
	}
	return service(n, n.ReadService(), cluster, map[string]string{LabelRole: RoleReplica})
}

func service(n Names, name string, cluster v1.MySQLCluster, who map[string]string) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service(name, n.Namespace).WithLabels(n.Labels()).WithSpec(corev1ac.ServiceSpec().
		WithType(corev1.ServiceTypeClusterIP).
		WithSelector(merged(n.Labels(), who)).
		WithPorts(mysqlPort(cluster)))
}

// PodsService gives every member its own DNS name, ready or not: members find each other by it before they are ready.
func PodsService(n Names, cluster v1.MySQLCluster) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service(n.PodsService(), n.Namespace).WithLabels(n.Labels()).WithSpec(corev1ac.ServiceSpec().
		WithType(corev1.ServiceTypeClusterIP).
		WithClusterIP(corev1.ClusterIPNone).
		WithPublishNotReadyAddresses(true).
		WithSelector(n.Labels()).
		WithPorts(mysqlPort(cluster)))
}

func mysqlPort(cluster v1.MySQLCluster) *corev1ac.ServicePortApplyConfiguration {
	return corev1ac.ServicePort().WithName(mysqlPortName).WithProtocol(corev1.ProtocolTCP).
		WithPort(cluster.Spec.Port).WithTargetPort(intstr.FromString(mysqlPortName))
}
