// Package v1 holds version v1 of ConfigMonitor.
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ConfigMonitor restarts pods when the data of a ConfigMap changes.
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
	// ConfigMapLower is the other spelling of the same field: one of the two is set, or both alike.
	ConfigMapLower string `json:"configmap,omitempty"`
	// PodSelector are the labels, all of them, of the pods to restart. At least one.
	PodSelector map[string]string `json:"podSelector"`
}

// ConfigMapName returns the name of the ConfigMap to watch, whichever spelling it was given in.
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

// ConfigMonitorStatus is what the operator has seen and done.
type ConfigMonitorStatus struct {
	// ObservedGeneration is the metadata.generation this status is about; -1, by default, before there is one.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions is a map by type.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// ObservedConfigMap names the ConfigMap that ObservedHash is about.
	ObservedConfigMap string `json:"observedConfigMap,omitempty"`
	// ObservedHash is the sha256, in hexadecimal, of the data and binaryData the pods were last brought in line with. It changes only when
	// a restart is complete: what the pods run with while one is under way is uncertain.
	ObservedHash string `json:"observedHash,omitempty"`
	// LastRestart is the last restart this monitor caused, or the one under way; nil if there was none.
	LastRestart *Restart `json:"lastRestart,omitempty"`
}

// Restart tells what is restarted, when and why. It is written before anything is restarted, so that it is carried on after a crash.
type Restart struct {
	// Time is when the restart was decided.
	Time metav1.Time `json:"time"`
	// CompletionTime is when the last workload was done; nil while the restart is under way.
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// ConfigMapResourceVersion is the version of the ConfigMap that caused it.
	ConfigMapResourceVersion string `json:"configMapResourceVersion,omitempty"`
	// Generation is the monitor's metadata.generation when it was decided: it says which podSelector chose the workloads.
	Generation int64 `json:"generation,omitempty"`
	// Hash is the sha256 of the data that caused it.
	Hash string `json:"hash,omitempty"`
	// Reason is one word for why.
	Reason string `json:"reason,omitempty"`
	// Workloads are what is restarted and how: what ran when the restart was decided. What was made later has the new data already.
	Workloads []RestartedWorkload `json:"workloads,omitempty"`
}

// RestartedWorkload is one object that is restarted, or is not and why.
type RestartedWorkload struct {
	// Kind is Deployment, StatefulSet, DaemonSet or Pod.
	Kind string `json:"kind"`
	// Name is its name, in the monitor's namespace.
	Name string `json:"name"`
	// UID tells it from another of the same name that came after it.
	UID types.UID `json:"uid,omitempty"`
	// Owner is the "Kind/name" of what makes the next Pod; empty for what is no Pod and for a Pod nothing makes again.
	Owner string `json:"owner,omitempty"`
	// Action is what was done last.
	Action Action `json:"action"`
	// Time is when the action last changed.
	Time metav1.Time `json:"time,omitzero"`
	// Message is a sentence on what it waits for or why it was left alone; empty if there is nothing to say.
	Message string `json:"message,omitempty"`
}

// Action is what was done with a workload.
type Action string

const (
	// ActionPending workloads are to be restarted.
	ActionPending Action = "Pending"
	// ActionRolling workloads are replacing their Pods.
	ActionRolling Action = "Rolling"
	// ActionRolled workloads have replaced their Pods, and all are available.
	ActionRolled Action = "Rolled"
	// ActionEvicting Pods are ending, or their replacement is not ready yet.
	ActionEvicting Action = "Evicting"
	// ActionReplaced Pods are gone, and others are ready in their place.
	ActionReplaced Action = "Replaced"
	// ActionGone workloads were deleted by somebody else before they were restarted.
	ActionGone Action = "Gone"
	// ActionLeftAlone workloads are not restarted; the message says why.
	ActionLeftAlone Action = "LeftAlone"
	// ActionAbandoned workloads were not restarted, because the monitor was told to watch another ConfigMap.
	ActionAbandoned Action = "Abandoned"
)
