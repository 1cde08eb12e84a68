// Package v1 holds version v1 of ConfigMonitor.
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ConfigMonitor restarts Pods when the data of a ConfigMap changes.
type ConfigMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   ConfigMonitorSpec   `json:"spec,omitzero"`
	Status ConfigMonitorStatus `json:"status,omitzero"`
}

// ConfigMonitorSpec is what the user wants. The API server has validated it.
type ConfigMonitorSpec struct {
	// ConfigMap names the ConfigMap to watch, in the monitor's namespace.
	ConfigMap string `json:"configMap,omitempty"`
	// ConfigMapLower is the other spelling of the same field. One of the two is set, or both with the same value.
	ConfigMapLower string `json:"configmap,omitempty"`
	// PodSelector are labels, at least one. The operator restarts Pods that have all of them.
	PodSelector map[string]string `json:"podSelector"`
}

// ConfigMapName returns the name of the ConfigMap to watch, from either spelling.
func (s ConfigMonitorSpec) ConfigMapName() string {
	if s.ConfigMap != "" {
		return s.ConfigMap
	}
	return s.ConfigMapLower
}

// The condition types of the kind; their meaning is the same as for every other kind of this operator.
const (
	ConditionReady       = "Ready"
	ConditionReconciling = "Reconciling"
	ConditionStalled     = "Stalled"
)

// ConfigMonitorStatus is what the operator has observed and done.
type ConfigMonitorStatus struct {
	// ObservedGeneration is the metadata.generation that this status describes; -1, by default, before the operator has processed the
	// object.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions is a map by type.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// ObservedConfigMap names the ConfigMap that ObservedHash is about.
	ObservedConfigMap string `json:"observedConfigMap,omitempty"`
	// ObservedHash is the sha256, in hexadecimal, of the data and binaryData that the Pods were last restarted with. It changes only when a
	// restart is complete. While one is in progress, it is uncertain which data the Pods have.
	ObservedHash string `json:"observedHash,omitempty"`
	// LastRestart is the last restart that this monitor caused, or the one in progress; nil if there was none.
	LastRestart *Restart `json:"lastRestart,omitempty"`
}

// Restart says what the operator restarts, when and why. The operator writes it before it restarts anything, so that it can continue after
// a crash.
type Restart struct {
	// Time is when the restart was decided.
	Time metav1.Time `json:"time"`
	// CompletionTime is when the last workload was done; nil while the restart is in progress.
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// ConfigMapResourceVersion is the version of the ConfigMap that caused it.
	ConfigMapResourceVersion string `json:"configMapResourceVersion,omitempty"`
	// Generation is the monitor's metadata.generation when the restart was decided. It identifies the podSelector that chose the workloads.
	Generation int64 `json:"generation,omitempty"`
	// Hash is the sha256 of the data that caused it.
	Hash string `json:"hash,omitempty"`
	// Reason is one word that says why.
	Reason string `json:"reason,omitempty"`
	// Workloads are the workloads that ran when the restart was decided, and how each is restarted. Later ones already have the new data.
	Workloads []RestartedWorkload `json:"workloads,omitempty"`
}

// RestartedWorkload is one object that the operator restarts, or does not restart.
type RestartedWorkload struct {
	// Kind is Deployment, StatefulSet, DaemonSet or Pod.
	Kind string `json:"kind"`
	// Name is its name, in the monitor's namespace.
	Name string `json:"name"`
	// UID distinguishes it from a later object of the same name.
	UID types.UID `json:"uid,omitempty"`
	// Owner is the "Kind/name" of the object that makes the next Pod. It is empty for other kinds, and for a Pod that nothing replaces.
	Owner string `json:"owner,omitempty"`
	// Action is what the operator did last.
	Action Action `json:"action"`
	// Time is when the action last changed.
	Time metav1.Time `json:"time,omitzero"`
	// Message is a sentence that says what the operator waits for, or why it does not restart the workload. It may be empty.
	Message string `json:"message,omitempty"`
}

// Action is what the operator did with a workload.
type Action string

const (
	// ActionPending workloads are not restarted yet.
	ActionPending Action = "Pending"
	// ActionRolling workloads are replacing their Pods.
	ActionRolling Action = "Rolling"
	// ActionRolled workloads have replaced their Pods, and all are available.
	ActionRolled Action = "Rolled"
	// ActionEvicting Pods are ending, or their replacement is not ready yet.
	ActionEvicting Action = "Evicting"
	// ActionReplaced Pods have ended, and their replacements are ready.
	ActionReplaced Action = "Replaced"
	// ActionGone workloads were deleted by another client before they were restarted.
	ActionGone Action = "Gone"
	// ActionLeftAlone workloads are not restarted; the message says why.
	ActionLeftAlone Action = "LeftAlone"
	// ActionAbandoned workloads were not restarted, because a user changed which ConfigMap the monitor watches.
	ActionAbandoned Action = "Abandoned"
)
