// Package v1 holds version v1 of the MySQL kinds. The documentation of a field for users is its description in the
// definition beside the type (kubectl explain shows it); the comments here are for those who program with it.
package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MySQLCluster is a MySQL primary and its replicas.
type MySQLCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   MySQLClusterSpec   `json:"spec,omitzero"`
	Status MySQLClusterStatus `json:"status,omitzero"`
}

// MySQLClusterSpec is what the user wants. The API server has validated and defaulted it; the operator never writes it.
type MySQLClusterSpec struct {
	// Secret names the Secret, in the cluster's namespace, whose key "password" is root's password.
	Secret string `json:"secret"`
	// FromBackup names the backup the first member starts from; empty starts an empty database. It can be removed later, not set or changed.
	FromBackup string `json:"fromBackup,omitempty"`
	// FromBackupURL is the folder of a backup to start from, for one whose instance is not in this Kubernetes. It can be removed later, not set or changed.
	FromBackupURL string `json:"fromBackupURL,omitempty"`
	// Restore is what it takes to read that backup. It may change as long as the restore is not complete.
	Restore *RestoreSettings `json:"restore,omitempty"`
	// Port is where mysqld listens and the Services answer: 1..65535 without the pod's own ports. Default 3306, immutable.
	Port int32 `json:"port,omitempty"`
	// Replicas is how many members there are, the primary included: 1..9. Default 2.
	Replicas *int32 `json:"replicas,omitempty"`
	// Storage is the size of each member's volume: at least 256Mi, never smaller than before. Default 1Gi.
	Storage resource.Quantity `json:"storage,omitzero"`
	// StorageClassName is the class of the volumes; nil means the cluster's default class. Immutable.
	StorageClassName *string `json:"storageClassName,omitempty"`
	// Image is the MySQL image: all that is asked of it is a mysqld on PATH with its standard plugins. Default mysql:latest.
	Image string `json:"image,omitempty"`
	// Resources are the requests and limits of the mysqld container.
	Resources Resources `json:"resources,omitzero"`
	// Config are further settings of mysqld's [mysqld] section. Settings the operator owns are refused by the API server.
	Config map[string]string `json:"config,omitempty"`
	// TLS says how clients connect.
	TLS TLS `json:"tls,omitzero"`
	// Network says who may reach the members; nil lets everybody, without a NetworkPolicy.
	Network *Network `json:"network,omitempty"`
	// Copies says how new members copy the primary's data.
	Copies Copies `json:"copies,omitzero"`
	// Plugins are files of mysqld's plugin directory that each member loads, beside the operator's own.
	Plugins []string `json:"plugins,omitempty"`
	// Root says whether the operator looks after root@'%'. Default RootManaged.
	Root Root `json:"root,omitempty"`
	// Durability says what becomes of commits when too few replicas are there to acknowledge them.
	Durability Durability `json:"durability,omitzero"`
	// Paused makes the operator look but not touch.
	Paused bool `json:"paused,omitempty"`
}

// Copies is about copies of the primary's data.
type Copies struct {
	// BandwidthLimit is how fast the primary is read at most, in bytes per second: 1Mi to 1Ti. Default 64Mi.
	BandwidthLimit resource.Quantity `json:"bandwidthLimit,omitzero"`
}

// Root is what the operator does about root@'%'.
type Root string

const (
	// RootManaged keeps its password equal to the Secret's.
	RootManaged Root = "Managed"
	// RootAbsent leaves it alone, once there is data.
	RootAbsent Root = "Absent"
)

// Resources are the requests and limits of a container, by resource name ("cpu", "memory", "ephemeral-storage").
type Resources struct {
	Requests corev1.ResourceList `json:"requests,omitempty"`
	Limits   corev1.ResourceList `json:"limits,omitempty"`
}

// TLS is about the connections of clients.
type TLS struct {
	// Required refuses connections over the network without TLS.
	Required bool `json:"required,omitempty"`
}

// Network is who may reach a cluster's members.
type Network struct {
	// AllowFrom may connect to MySQL; empty means everybody.
	AllowFrom []NetworkPeer `json:"allowFrom,omitempty"`
	// MetricsFrom may connect to the agents' port; empty means the operator and the members only.
	MetricsFrom []NetworkPeer `json:"metricsFrom,omitempty"`
}

// NetworkPeer is Pods by labels, or addresses.
type NetworkPeer struct {
	// PodLabels select Pods, in the cluster's namespace unless NamespaceLabels select others.
	PodLabels map[string]string `json:"podLabels,omitempty"`
	// NamespaceLabels select namespaces: all their Pods, or those that PodLabels select.
	NamespaceLabels map[string]string `json:"namespaceLabels,omitempty"`
	// CIDR is a range of addresses, with neither of the others.
	CIDR string `json:"cidr,omitempty"`
}

// WhenReplicasLost is what a primary does when no replica is left that could acknowledge a commit.
type WhenReplicasLost string

const (
	// Continue lets the primary commit without a replica's acknowledgement once the grace period is over. This is recorded in the
	// status before it takes effect.
	Continue WhenReplicasLost = "Continue"
	// Block makes commits wait until a replica can acknowledge them again.
	Block WhenReplicasLost = "Block"
)

// Durability is the user's choice between answering and keeping a second copy.
type Durability struct {
	// WhenReplicasLost defaults to Continue.
	WhenReplicasLost WhenReplicasLost `json:"whenReplicasLost,omitempty"`
	// GracePeriodSeconds is how long commits wait for a lost replica before WhenReplicasLost applies: 1..3600 seconds. Default 10.
	GracePeriodSeconds int32 `json:"gracePeriodSeconds,omitempty"`
}

// The condition types of every kind. Ready is the answer for people; Reconciling and Stalled are the two that kstatus, Helm and Flux
// look for (https://github.com/kubernetes-sigs/cli-utils, pkg/kstatus): present and True only while they apply.
const (
	ConditionReady       = "Ready"
	ConditionReconciling = "Reconciling"
	ConditionStalled     = "Stalled"
)

// Conditions about tables of other engines than InnoDB, whose rows no copy has: present and True while there are some (of a backup: were), and while
// members lack such rows.
const (
	ConditionNonTransactionalTables = "NonTransactionalTables"
	ConditionIncompleteMembers      = "IncompleteMembers"
)

// Phase is the state of a cluster in one word, for kubectl get. Programs read the conditions instead.
type Phase string

// The phases. The set may grow: a reader must accept others.
const (
	PhasePending   Phase = "Pending"   // accepted, nothing made yet
	PhaseWaiting   Phase = "Waiting"   // something the user must provide is missing; the Ready condition says what
	PhaseCreating  Phase = "Creating"  // the first members are being made
	PhaseRestoring Phase = "Restoring" // the first member's data is being restored from a backup
	PhaseReady     Phase = "Ready"     // primary writable, every replica healthy
	PhaseDegraded  Phase = "Degraded"  // primary writable, a replica is not healthy
	PhaseUpdating  Phase = "Updating"  // primary writable, a change of the spec is being carried out
	PhasePaused    Phase = "Paused"    // the operator looks but does not touch
	PhaseFailed    Phase = "Failed"    // no primary takes writes
	PhaseDeleting  Phase = "Deleting"  // deletion is under way
)

// Role is what a member is in the cluster.
type Role string

// The roles. A member that has none yet carries none.
const (
	RolePrimary Role = "Primary"
	RoleReplica Role = "Replica"
)

// MySQLClusterStatus is what the operator knows, and the record of truth it acts on: Primary, Epoch, Revision, InSync and RequiredAcks are
// written, with a resourceVersion precondition, before the act they allow.
type MySQLClusterStatus struct {
	// ObservedGeneration is the metadata.generation this status is about; -1, by default, before there is one.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions is a map by type: Ready always, others while they apply.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Phase is the state in one word.
	Phase Phase `json:"phase,omitempty"`

	// Primary is the name of the member that may take writes, for example my-cluster-0. Empty before the first one is chosen.
	Primary string `json:"primary,omitempty"`
	// Epoch counts the changes of Primary; it only rises.
	Epoch int64 `json:"epoch,omitempty"`
	// Revision counts the records that were written; it only rises, with every change of one of these fields and with everything else that
	// members are told. 0: nothing is recorded yet.
	Revision int64 `json:"revision,omitempty"`
	// InSync are the members whose acknowledgement counts, the primary included, sorted. Only one of them may become primary.
	InSync []string `json:"inSync,omitempty"`
	// RequiredAcks is how many replicas must acknowledge a commit before the client hears of it.
	RequiredAcks int32 `json:"requiredAcks,omitempty"`

	// Replicas is how many members exist, for the scale subresource.
	Replicas int32 `json:"replicas"`
	// ReadyReplicas is how many of them serve.
	ReadyReplicas int32 `json:"readyReplicas"`
	// ReadySummary is "ready/wanted", for kubectl get.
	ReadySummary string `json:"readySummary,omitempty"`
	// Selector is the label selector of the members' pods, for the scale subresource.
	Selector string `json:"selector,omitempty"`

	// Members are the members, by ordinal.
	Members []Member `json:"members,omitempty"`
	// Endpoints are the addresses clients use.
	Endpoints Endpoints `json:"endpoints,omitzero"`
	// Version is the server version of the primary, for example 9.7.4.
	Version string `json:"version,omitempty"`
	// Image is the image the members run.
	Image string `json:"image,omitempty"`
	// Restore is how the restore went that the cluster began with; nil without one.
	Restore *RestoreStatus `json:"restore,omitempty"`
	// InnoDBOnly says that the cluster began empty, and so refuses tables of which no copy has the rows, and gives tables a primary key. It stays as it is.
	InnoDBOnly bool `json:"innoDBOnly,omitempty"`
}

// Member is one mysqld with its volume.
type Member struct {
	// Name is the name of its pod, for example my-cluster-0.
	Name string `json:"name"`
	// Role is empty while the member has none.
	Role Role `json:"role,omitempty"`
	// State is one word.
	State string `json:"state,omitempty"`
	// Message explains the state and what can be done about it. It contains no times or counters, so that it changes only when the state does.
	Message string `json:"message,omitempty"`
	// GTIDExecuted is the set of transactions the member has, as gtid_executed reports it.
	GTIDExecuted string `json:"gtidExecuted,omitempty"`
	// LagSeconds is how far the replica is behind; nil is unknown or not a replica.
	LagSeconds *int64 `json:"lagSeconds,omitempty"`
	// Version is its server version.
	Version string `json:"version,omitempty"`
	// LacksRowsOf names tables of other engines than InnoDB that it came without the rows of; empty for none, or while nobody knows.
	LacksRowsOf string `json:"lacksRowsOf,omitempty"`
}

// Endpoints are host:port addresses inside the Kubernetes cluster.
type Endpoints struct {
	// Write always leads to the primary.
	Write string `json:"write,omitempty"`
	// Read leads to healthy replicas, or to the primary when there is none.
	Read string `json:"read,omitempty"`
}
