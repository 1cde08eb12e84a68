// Package v1 holds version v1 of ConfigMonitor.
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	// ObservedGeneration is the metadata.generation this status is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions is a map by type.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// ObservedHash is the sha256, in hexadecimal, of the data and binaryData the pods were last brought in line with.
	ObservedHash string `json:"observedHash,omitempty"`
	// LastRestart is the last restart this monitor caused; nil if there was none.
	LastRestart *Restart `json:"lastRestart,omitempty"`
}

// Restart tells what was restarted, when and why.
type Restart struct {
	// Time is when the restart was decided.
	Time metav1.Time `json:"time"`
	// ConfigMapResourceVersion is the version of the ConfigMap that caused it.
	ConfigMapResourceVersion string `json:"configMapResourceVersion,omitempty"`
	// Hash is the sha256 of the data that caused it.
	Hash string `json:"hash,omitempty"`
	// Reason is one word for why.
	Reason string `json:"reason,omitempty"`
	// Workloads are what was restarted and how.
	Workloads []RestartedWorkload `json:"workloads,omitempty"`
}

// RestartedWorkload is one object that was restarted, or was not and why.
type RestartedWorkload struct {
	// Kind is Deployment, StatefulSet, DaemonSet or Pod.
	Kind string `json:"kind"`
	// Name is its name, in the monitor's namespace.
	Name string `json:"name"`
	// Action is one word for what was done.
	Action string `json:"action"`
}
