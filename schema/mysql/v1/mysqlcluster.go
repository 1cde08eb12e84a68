// Package v1 holds version v1 of the MySQL kinds. The documentation of a field for users is its description in the
// definition next to the type, which kubectl explain shows. The comments here are for programmers.
package v1

import (
	"time"

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
	// FromBackup names the MySQLBackupInstance whose data the cluster starts with. Empty: the cluster starts empty, unless FromBackupURL is
	// set. It can be removed later, but not set or changed.
	FromBackup string `json:"fromBackup,omitempty"`
	// FromBackupURL is the folder of a backup whose data the cluster starts with, for a backup without an instance in this namespace. It can
	// be removed later, but not set or changed.
	FromBackupURL string `json:"fromBackupURL,omitempty"`
	// Restore says how to read that backup. It may change until the restore is complete.
	Restore *RestoreSettings `json:"restore,omitempty"`
	// Port is where mysqld listens and the Services answer: 1..65535, except for the ports reserved in the Pod. Default 3306, immutable.
	Port int32 `json:"port,omitempty"`
	// Replicas is the number of members, the primary included: 1..9. Default 2.
	Replicas *int32 `json:"replicas,omitempty"`
	// Storage is the size of each member's volume: at least 256Mi, never smaller than before. Default 1Gi.
	Storage resource.Quantity `json:"storage,omitzero"`
	// StorageClassName is the class of the volumes; nil means the default class of the Kubernetes cluster. Immutable.
	StorageClassName *string `json:"storageClassName,omitempty"`
	// Image is the MySQL image. It needs only mysqld on its PATH and the usual plugins. Default mysql:latest.
	Image string `json:"image,omitempty"`
	// Resources are the requests and limits of the mysqld container.
	Resources Resources `json:"resources,omitzero"`
	// Config holds more settings of mysqld's [mysqld] section. The API server refuses settings that the operator controls.
	Config map[string]string `json:"config,omitempty"`
	// TLS is about the connections of clients.
	TLS TLS `json:"tls,omitzero"`
	// Network says who may connect to the members. nil: everyone may, and the operator creates no NetworkPolicy.
	Network *Network `json:"network,omitempty"`
	// Copies says how the primary's data is copied to other members.
	Copies Copies `json:"copies,omitzero"`
	// Plugins are files of mysqld's plugin directory that each member loads, in addition to the operator's own.
	Plugins []string `json:"plugins,omitempty"`
	// Root decides whether the operator manages root@'%'. Default RootManaged.
	Root Root `json:"root,omitempty"`
	// Durability says what happens to commits when too few replicas are connected to acknowledge them.
	Durability Durability `json:"durability,omitzero"`
	// Failover says when another member takes over from the primary.
	Failover Failover `json:"failover,omitzero"`
	// Paused means that the operator changes nothing in the cluster.
	Paused bool `json:"paused,omitempty"`
}

// Copies says how a member's data is copied to other members.
type Copies struct {
	// BandwidthLimit is the maximum speed at which a member is read, in bytes per second: 1Mi to 1Ti. Default 64Mi.
	BandwidthLimit resource.Quantity `json:"bandwidthLimit,omitzero"`
}

// Root says what the operator does with root@'%'.
type Root string

const (
	// RootManaged keeps its password equal to the Secret's.
	RootManaged Root = "Managed"
	// RootAbsent means that the operator does not change the account once the members have data.
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

// Network says who may connect to a cluster's members.
type Network struct {
	// AllowFrom may connect to MySQL; empty means everyone.
	AllowFrom []NetworkPeer `json:"allowFrom,omitempty"`
	// MetricsFrom may connect to the agents' port; empty means the operator and the members only.
	MetricsFrom []NetworkPeer `json:"metricsFrom,omitempty"`
}

// NetworkPeer is Pods by labels, or addresses.
type NetworkPeer struct {
	// PodLabels select Pods, in the cluster's namespace unless NamespaceLabels select other namespaces.
	PodLabels map[string]string `json:"podLabels,omitempty"`
	// NamespaceLabels select namespaces: all their Pods, or those that PodLabels select.
	NamespaceLabels map[string]string `json:"namespaceLabels,omitempty"`
	// CIDR is a range of addresses. It excludes PodLabels and NamespaceLabels.
	CIDR string `json:"cidr,omitempty"`
}

// WhenReplicasLost says what a primary does when too few replicas are connected to acknowledge a commit.
type WhenReplicasLost string

const (
	// Continue means that the primary commits with the acknowledgements of the replicas that are left, or without any, once the grace period
	// is over. The operator records this in the status before it takes effect.
	Continue WhenReplicasLost = "Continue"
	// Block means that commits wait until enough replicas can acknowledge them again.
	Block WhenReplicasLost = "Block"
)

// Durability is the user's choice between commits that return and commits that replicas have.
type Durability struct {
	// WhenReplicasLost depends on the number of members if it is empty (For).
	WhenReplicasLost WhenReplicasLost `json:"whenReplicasLost,omitempty"`
	// GracePeriodSeconds is how long commits wait for a lost replica before WhenReplicasLost applies: 1..3600 seconds. Default 10.
	GracePeriodSeconds int32 `json:"gracePeriodSeconds,omitempty"`
	// Survives is what acknowledged commits survive on replicas. Default SurvivesProcess.
	Survives Survives `json:"survives,omitempty"`
}

// Survives says what acknowledged commits survive on the replicas that have them.
type Survives string

const (
	// SurvivesProcess means that a replica acknowledges what its operating system has. The failure of its machine can remove that.
	SurvivesProcess Survives = "Process"
	// SurvivesPower means that a replica acknowledges what its disk has (manual, "sync_relay_log").
	SurvivesPower Survives = "Power"
)

// For returns what the primary of so many members does when replicas are lost. By default, commits of three members and more wait, because
// these are there to survive the loss of a member. With two members, a single loss would stop all writes.
func (d Durability) For(members int) WhenReplicasLost {
	switch {
	case d.WhenReplicasLost != "":
		return d.WhenReplicasLost
	case members >= 3:
		return Block
	}
	return Continue
}

// WhenPrimaryUnreachable says what happens if nothing answers for the primary.
type WhenPrimaryUnreachable string

const (
	// Replace means that a replica takes over. So that there are never two primaries, the primary stops by itself if it is connected neither
	// to enough replicas nor to the operator.
	Replace WhenPrimaryUnreachable = "Replace"
	// Wait means that the cluster waits for the primary, or for a user who asks to replace it.
	Wait WhenPrimaryUnreachable = "Wait"
)

// WhenPrimaryCrashes says what happens if mysqld of the primary crashes, and enough replicas are left to acknowledge writes.
type WhenPrimaryCrashes string

const (
	// ReplaceCrashed means that a replica takes over at once.
	ReplaceCrashed WhenPrimaryCrashes = "Replace"
	// Restart means that the primary gets NotReadySeconds to be back.
	Restart WhenPrimaryCrashes = "Restart"
)

// Failover is the user's choice of when another member takes over.
type Failover struct {
	// WhenPrimaryUnreachable defaults to Replace.
	WhenPrimaryUnreachable WhenPrimaryUnreachable `json:"whenPrimaryUnreachable,omitempty"`
	// WhenPrimaryCrashes defaults to ReplaceCrashed.
	WhenPrimaryCrashes WhenPrimaryCrashes `json:"whenPrimaryCrashes,omitempty"`
	// NotReadySeconds is for how long mysqld of the primary may not be ready before a replica takes over: 3..3600 seconds. Default 10.
	NotReadySeconds int32 `json:"notReadySeconds,omitempty"`
	// UnreachableSeconds is for how long the primary may not answer, and replicas may get nothing from it, before a replica takes over:
	// 2..3600 seconds. Default 2.
	UnreachableSeconds int32 `json:"unreachableSeconds,omitempty"`
}

// The condition types of every kind. Ready is the answer for people; Reconciling and Stalled are the two that kstatus, Helm and Flux
// look for (https://github.com/kubernetes-sigs/cli-utils, pkg/kstatus): present and True only while they apply.
const (
	ConditionReady       = "Ready"
	ConditionReconciling = "Reconciling"
	ConditionStalled     = "Stalled"
)

// Conditions about tables of other engines than InnoDB, whose rows no copy has. NonTransactionalTables is present and True while there are
// such tables, or, for a backup, if there were. IncompleteMembers is present and True while such rows are missing from members.
const (
	ConditionNonTransactionalTables = "NonTransactionalTables"
	ConditionIncompleteMembers      = "IncompleteMembers"
)

// Phase is the state of a cluster in one word, for kubectl get. Programs read the conditions instead.
type Phase string

// The phases. The set may grow: a reader must accept others.
const (
	PhasePending   Phase = "Pending"   // accepted, nothing is created yet
	PhaseWaiting   Phase = "Waiting"   // something the user must provide is missing; the Ready condition says what
	PhaseCreating  Phase = "Creating"  // the first members are being created
	PhaseRestoring Phase = "Restoring" // the first member's data is being restored from a backup
	PhaseReady     Phase = "Ready"     // primary writable, every replica healthy
	PhaseDegraded  Phase = "Degraded"  // primary writable, a replica is not healthy
	PhaseUpdating  Phase = "Updating"  // primary writable, a change of the spec is in progress
	PhasePaused    Phase = "Paused"    // the operator changes nothing
	PhaseFailed    Phase = "Failed"    // no primary takes writes
	PhaseDeleting  Phase = "Deleting"  // deletion is in progress
)

// Role is what a member is in the cluster.
type Role string

// The roles. The role of a member that has none yet is empty.
const (
	RolePrimary Role = "Primary"
	RoleReplica Role = "Replica"
)

// MySQLClusterStatus is what the operator knows. Primary, FormerPrimary, Epoch, Revision, InSync, Joining, RequiredAcks and
// LeaseMilliseconds are the record: the operator writes them, with a resourceVersion precondition, before it does what they allow.
type MySQLClusterStatus struct {
	// ObservedGeneration is the metadata.generation that this status describes; -1, by default, before the operator has processed the object.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are a map by type: Ready is always there, others while they apply.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Phase is the state in one word.
	Phase Phase `json:"phase,omitempty"`

	// Primary is the name of the member that may take writes, for example my-cluster-0. Empty before the first one is chosen, and while
	// FormerPrimary is replaced.
	Primary string `json:"primary,omitempty"`
	// FormerPrimary names a primary that is replaced, until another member is chosen.
	FormerPrimary string `json:"formerPrimary,omitempty"`
	// ForcedEpoch is the last epoch in which a user made a member the primary that may lack acknowledged commits; 0 for none.
	ForcedEpoch int64 `json:"forcedEpoch,omitempty"`
	// Epoch counts the changes of Primary; it only rises.
	Epoch int64 `json:"epoch,omitempty"`
	// Revision counts the records that were written. It only rises: with every change of one of these fields, and of anything else in the
	// members' assignments. 0: nothing is recorded yet.
	Revision int64 `json:"revision,omitempty"`
	// InSync are the members whose acknowledgement counts, the primary included, sorted. Each acknowledged commit is on the primary and on at
	// least RequiredAcks others of them. Only one of them may become primary.
	InSync []string `json:"inSync,omitempty"`
	// Joining names the replicas that may follow the primary and must not acknowledge yet. The primary refuses all others.
	Joining []string `json:"joining,omitempty"`
	// RequiredAcks is how many replicas must acknowledge a commit before it returns to the client.
	RequiredAcks int32 `json:"requiredAcks,omitempty"`
	// LeaseMilliseconds is for how long the primary may be connected neither to RequiredAcks replicas nor to the operator before it stops by
	// itself. 0: it does not stop.
	LeaseMilliseconds int32 `json:"leaseMilliseconds,omitempty"`
	// LeastAcks is for how many replicas commits wait even if more are lost (Block).
	LeastAcks int32 `json:"leastAcks,omitempty"`

	// Takeovers are the latest times at which a member was to take over from the primary, in order, at most eight.
	Takeovers []Takeover `json:"takeovers,omitempty"`

	// Replicas is the number of members that exist, for the scale subresource.
	Replicas int32 `json:"replicas"`
	// ReadyReplicas is the number of members that serve clients.
	ReadyReplicas int32 `json:"readyReplicas"`
	// ReadySummary is "ready/wanted", for kubectl get.
	ReadySummary string `json:"readySummary,omitempty"`
	// Selector is the label selector of the members' Pods, for the scale subresource.
	Selector string `json:"selector,omitempty"`

	// Members are the members, by ordinal.
	Members []Member `json:"members,omitempty"`
	// Endpoints are the addresses clients use.
	Endpoints Endpoints `json:"endpoints,omitzero"`
	// Version is the server version of the primary, for example 9.7.4.
	Version string `json:"version,omitempty"`
	// Image is the image the members run.
	Image string `json:"image,omitempty"`
	// Restore is the state of the restore that the cluster started with; nil without one.
	Restore *RestoreStatus `json:"restore,omitempty"`
	// InnoDBOnly reports whether the cluster started empty. By default it then refuses tables whose rows no copy has, and gives tables a
	// primary key. The value stays.
	InnoDBOnly bool `json:"innoDBOnly,omitempty"`
}

// HadPrimary reports whether the cluster has, or has had, a primary.
func (s MySQLClusterStatus) HadPrimary() bool { return s.Primary != "" || s.FormerPrimary != "" }

// Takeover is one time at which a member was to take over from the primary.
type Takeover struct {
	// Epoch is the epoch of the next primary.
	Epoch int64 `json:"epoch"`
	// From is the former primary, To the next one; empty until it is chosen. Both are the same if no other member could take over.
	From string `json:"from"`
	To   string `json:"to,omitempty"`
	// Message says why.
	Message string `json:"message,omitempty"`
	// FailureTime is when the former primary was last heard by a member; nil if that is not known. StartTime is when the operator began,
	// CompletionTime when it saw the next primary take writes; nil before that.
	FailureTime    *MicroTime `json:"failureTime,omitempty"`
	StartTime      MicroTime  `json:"startTime"`
	CompletionTime *MicroTime `json:"completionTime,omitempty"`
	// Unacknowledged are the GTIDs of the transactions that only the former primary had, and that no client was told had succeeded. Its volume
	// keeps a copy of them. It is empty if there are none, or until the former primary is back.
	Unacknowledged string `json:"unacknowledged,omitempty"`
	// Kept are the GTIDs of the transactions that the next primary had when a user made it the primary: all others may be lost. It is empty
	// unless a user did so. Lost are the GTIDs that the operator had seen on other members, and that the next primary lacked. Both are cut
	// at 4 KiB.
	Kept string `json:"kept,omitempty"`
	Lost string `json:"lost,omitempty"`
}

// Durations says how long a complete takeover took, and for how long clients could not write, if that is known.
func (t Takeover) Durations() string {
	if t.CompletionTime == nil {
		return ""
	}
	text := ""
	if took := t.CompletionTime.Sub(t.StartTime.Time); took >= 0 { // the next operator's clock may be behind
		text = " in " + took.Round(100*time.Millisecond).String()
	}
	if t.FailureTime == nil {
		return text
	}
	if without := t.CompletionTime.Sub(t.FailureTime.Time); without >= 0 {
		text += ", after " + without.Round(100*time.Millisecond).String() + " without writes"
	}
	return text
}

// Member is one mysqld with its volume.
type Member struct {
	// Name is the name of its Pod, for example my-cluster-0.
	Name string `json:"name"`
	// Role is empty while the member has no role.
	Role Role `json:"role,omitempty"`
	// State is one word.
	State string `json:"state,omitempty"`
	// Message explains the state, and what the user can do. It contains no times or counters, so that it changes only when the state changes.
	Message string `json:"message,omitempty"`
	// GTIDExecuted is the set of transactions the member has, as gtid_executed reports it.
	GTIDExecuted string `json:"gtidExecuted,omitempty"`
	// LagSeconds is how far the replica is behind the primary; nil means unknown, or not a replica.
	LagSeconds *int64 `json:"lagSeconds,omitempty"`
	// Version is its server version.
	Version string `json:"version,omitempty"`
	// LacksRowsOf names tables of other engines than InnoDB whose rows are missing from the member's copy; empty for none, or while unknown.
	LacksRowsOf string `json:"lacksRowsOf,omitempty"`
}

// Endpoints are host:port addresses inside the Kubernetes cluster.
type Endpoints struct {
	// Write always leads to the primary.
	Write string `json:"write,omitempty"`
	// Read leads to healthy replicas, or to the primary if no replica is healthy.
	Read string `json:"read,omitempty"`
}
