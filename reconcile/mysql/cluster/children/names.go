package children

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

const (
	// Prefix begins the names of the operator's own labels and annotations.
	Prefix = "cr.mysqloperator.grtl.github.com/"

	// LabelRole is the role of a Pod's member; the read Service selects by it.
	LabelRole = Prefix + "role"
	// RolePrimary is the role of the member that takes writes.
	RolePrimary = "primary"
	// RoleReplica is the role of each other member.
	RoleReplica = "replica"
	// RoleFormerPrimary is the role of a former primary that may not know that it is none any more, or still refuses clients.
	RoleFormerPrimary = "former-primary"

	labelName = "app.kubernetes.io/name"
	// LabelInstance, on each child, is the cluster's name.
	LabelInstance = "app.kubernetes.io/instance"
	// LabelManagedBy, on each child, is ManagedBy.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ManagedBy is the operator's name.
	ManagedBy = "mysql-operator"
	// LabelPod is set by the StatefulSet controller on each of its Pods.
	LabelPod = "statefulset.kubernetes.io/pod-name"

	// LabelClusterUID, on the Secret with the CAs of a cluster, is the cluster's UID.
	LabelClusterUID = Prefix + "cluster-uid"

	// Selector selects everything that the operator creates for clusters.
	Selector = LabelManagedBy + "=" + ManagedBy + "," + labelName + "=mysql"
)

// Names are the names of everything that belongs to one cluster. The StatefulSet, the Service for writes, the PodDisruptionBudget, the
// NetworkPolicy and the ServiceAccount have the cluster's own name.
type Names struct{ Namespace, Cluster string }

// NamesOf returns the names for a cluster.
func NamesOf(cluster v1.MySQLCluster) Names {
	return Names{Namespace: cluster.Namespace, Cluster: cluster.Name}
}

// NamespacedName identifies the cluster resource.
func (n Names) NamespacedName() types.NamespacedName {
	return types.NamespacedName{Namespace: n.Namespace, Name: n.Cluster}
}

// Key identifies the cluster among those of all namespaces.
func (n Names) Key() string { return n.Namespace + "/" + n.Cluster }

// Member is the name of a member, and of its Pod.
func (n Names) Member(ordinal int) string { return fmt.Sprintf("%s-%d", n.Cluster, ordinal) }

// Claim is the name of a member's PersistentVolumeClaim.
func (n Names) Claim(ordinal int) string { return "data-" + n.Member(ordinal) }

// ReadService is the name of the Service for reading.
func (n Names) ReadService() string { return n.Cluster + "-read" }

// PodsService is the name of the Service that gives each member its own DNS name.
func (n Names) PodsService() string { return n.Cluster + "-pods" }

// ConfigMap is the name of the ConfigMap with the settings that all members share.
func (n Names) ConfigMap() string { return n.Cluster + "-config" }

// TrustMap is the name of the ConfigMap with the CAs that clients should trust.
func (n Names) TrustMap() string { return n.Cluster + "-ca-cert" }

// AccountsSecret is the name of the Secret with the passwords of the operator's own MySQL accounts.
func (n Names) AccountsSecret() string { return n.Cluster + "-accounts" }

// CertificateSecret is the name of the Secret with the members' certificate.
func (n Names) CertificateSecret() string { return n.Cluster + "-tls" }

// AuthoritySecret is the name of the Secret with the cluster's CAs and their keys, in the operator's own namespace.
func (n Names) AuthoritySecret() string { return agent.AuthoritySecret(n.Namespace, n.Cluster) }

// RestoreJob is the name of the Job that restores a backup to the first member's volume.
func (n Names) RestoreJob() string { return transfer.JobName(n.Cluster, "restore") }

// VersionJob is the name of the Job that asks the cluster's image for its version.
func (n Names) VersionJob() string { return transfer.JobName(n.Cluster, "version") }

// Host is a member's DNS name.
func (n Names) Host(member string) string {
	return member + "." + n.PodsService() + "." + n.Namespace + ".svc"
}

// ServiceHost is the DNS name of one of the cluster's Services.
func (n Names) ServiceHost(service string) string { return service + "." + n.Namespace + ".svc" }

// Ordinal reads a member's number from its name; ok is false for a name that is not a member's.
func (n Names) Ordinal(member string) (ordinal int, ok bool) {
	number, found := strings.CutPrefix(member, n.Cluster+"-")
	if !found {
		return 0, false
	}
	ordinal, err := strconv.Atoi(number)
	return ordinal, err == nil && ordinal >= 0 && strconv.Itoa(ordinal) == number
}

// Labels are on everything that belongs to the cluster; they also select its Pods.
func (n Names) Labels() map[string]string {
	return map[string]string{labelName: "mysql", LabelInstance: n.Cluster, LabelManagedBy: ManagedBy}
}

// Selector selects everything with Labels.
func (n Names) Selector() string {
	return Selector + "," + LabelInstance + "=" + n.Cluster
}

func merged(sets ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, set := range sets {
		maps.Copy(all, set)
	}
	return all
}
