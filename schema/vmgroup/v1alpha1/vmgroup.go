// Package v1alpha1 holds version v1alpha1 of VmGroup.
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VmGroup is a number of like virtual machines in a vCenter.
type VmGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   VmGroupSpec   `json:"spec,omitzero"`
	Status VmGroupStatus `json:"status,omitzero"`
}

// VmGroupSpec is what the user wants. The API server has validated it.
type VmGroupSpec struct {
	// CPU is how many virtual CPUs each machine has, 1 to 4.
	CPU int32 `json:"cpu"`
	// Memory is how much memory each machine has, in GiB, 1 to 8.
	Memory int32 `json:"memory"`
	// Template is the virtual machine or template to clone: its name, or its path below the datacenter's folder of machines.
	Template string `json:"template"`
	// Replicas is how many machines there are to be, at least 1.
	Replicas int32 `json:"replicas"`
	// Datacenter is the datacenter's name or path; empty means the one of the Secret, or the only one there is.
	Datacenter string `json:"datacenter,omitempty"`
	// Folder is where the group's own folder is made: a path below the datacenter's folder of machines; empty means the one of the
	// Secret, or that folder itself.
	Folder string `json:"folder,omitempty"`
	// ResourcePool is the name or path of the pool of new machines; empty means the one of the Secret, or the template's.
	ResourcePool string `json:"resourcePool,omitempty"`
	// Datastore is the name or path of the datastore of new machines; empty means the one of the Secret, or the template's.
	Datastore string `json:"datastore,omitempty"`
}

// AnnotationAbandon, with the value "true", lets a group that is being deleted go without its machines: the vCenter is not asked.
const AnnotationAbandon = "vm.codeconnect.vmworld.com/abandon"

// FinalizerMachines is on every group that has, or may have, something in a vCenter.
const FinalizerMachines = "vm.codeconnect.vmworld.com/machines"

// The condition types of the kind. The first three mean the same as for every other kind of this operator.
const (
	ConditionReady       = "Ready"
	ConditionReconciling = "Reconciling"
	ConditionStalled     = "Stalled"
	// ConditionVCenterReachable is True when the vCenter has answered the last question.
	ConditionVCenterReachable = "VCenterReachable"
)

// Phase is the state of a group in a word.
type Phase string

const (
	// PhasePending groups are on the way to what the spec says.
	PhasePending Phase = "PENDING"
	// PhaseRunning groups are as the spec says.
	PhaseRunning Phase = "RUNNING"
	// PhaseError groups cannot go on; lastMessage says why.
	PhaseError Phase = "ERROR"
	// PhaseDeleting groups are being deleted, with their machines.
	PhaseDeleting Phase = "DELETING"
)

// VmGroupStatus is what the operator has seen and done.
type VmGroupStatus struct {
	// ObservedGeneration is the metadata.generation this status is about; -1, by default, before there is one.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Phase is the state of the group in a word.
	Phase Phase `json:"phase,omitempty"`
	// CurrentReplicas is how many of the group's machines are powered on; nil before the vCenter was asked.
	CurrentReplicas *int32 `json:"currentReplicas,omitempty"`
	// DesiredReplicas is spec.replicas as it was seen last. The scale subresource shows it.
	DesiredReplicas int32 `json:"desiredReplicas,omitempty"`
	// LastMessage is what the group does or waits for, in a sentence.
	LastMessage string `json:"lastMessage,omitempty"`
	// Conditions is a map by type.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// VCenter is the host of the vCenter that has the machines, VCenterID what tells that vCenter from others, and Folder the path of the
	// group's folder there.
	VCenter   string `json:"vCenter,omitempty"`
	VCenterID string `json:"vCenterID,omitempty"`
	Folder    string `json:"folder,omitempty"`
}
