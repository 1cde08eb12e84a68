// Package v1alpha1 holds version v1alpha1 of VmGroup.
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VmGroup is a number of equal virtual machines in a vCenter.
type VmGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   VmGroupSpec   `json:"spec,omitzero"`
	Status VmGroupStatus `json:"status,omitzero"`
}

// VmGroupSpec is what the user wants. The API server has validated it.
type VmGroupSpec struct {
	// CPU is the number of virtual CPUs of each machine, 1 to 4.
	CPU int32 `json:"cpu"`
	// Memory is the memory of each machine, in GiB, 1 to 8.
	Memory int32 `json:"memory"`
	// Template is the virtual machine or template to clone: its name, or its path below the datacenter's folder of machines.
	Template string `json:"template"`
	// Replicas is the number of machines, at least 1.
	Replicas int32 `json:"replicas"`
	// Datacenter is the datacenter's name or path; empty means the one of the Secret, or the only one of the vCenter.
	Datacenter string `json:"datacenter,omitempty"`
	// Folder is where the operator makes the group's own folder: a path below the datacenter's folder of machines. Empty means the one of
	// the Secret, or that folder itself.
	Folder string `json:"folder,omitempty"`
	// ResourcePool is the name or path of the pool of new machines; empty means the one of the Secret, or the template's.
	ResourcePool string `json:"resourcePool,omitempty"`
	// Datastore is the name or path of the datastore of new machines; empty means the one of the Secret, or the template's.
	Datastore string `json:"datastore,omitempty"`
}

// AnnotationAbandon, with the value "true", lets the operator delete a group without its machines. It then sends no request to the vCenter.
const AnnotationAbandon = "vm.codeconnect.vmworld.com/abandon"

// FinalizerMachines is the finalizer of every group that has, or may have, objects in a vCenter.
const FinalizerMachines = "vm.codeconnect.vmworld.com/machines"

// The condition types of the kind. The first three mean the same as for every other kind of this operator.
const (
	ConditionReady       = "Ready"
	ConditionReconciling = "Reconciling"
	ConditionStalled     = "Stalled"
	// ConditionVCenterReachable is True if the vCenter has answered the last request.
	ConditionVCenterReachable = "VCenterReachable"
)

// Phase is the state of a group in one word.
type Phase string

const (
	// PhasePending groups do not match the spec yet.
	PhasePending Phase = "PENDING"
	// PhaseRunning groups match the spec.
	PhaseRunning Phase = "RUNNING"
	// PhaseError groups cannot continue; lastMessage says why.
	PhaseError Phase = "ERROR"
	// PhaseDeleting groups are being deleted, with their machines.
	PhaseDeleting Phase = "DELETING"
)

// VmGroupStatus is what the operator has observed and done.
type VmGroupStatus struct {
	// ObservedGeneration is the metadata.generation that this status describes; -1, by default, before the operator has processed the
	// object.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Phase is the state of the group in one word.
	Phase Phase `json:"phase,omitempty"`
	// CurrentReplicas is the number of the group's machines that are powered on; nil before the first answer of the vCenter.
	CurrentReplicas *int32 `json:"currentReplicas,omitempty"`
	// DesiredReplicas is the last observed spec.replicas. The scale subresource shows it.
	DesiredReplicas int32 `json:"desiredReplicas,omitempty"`
	// LastMessage is what the operator does for the group, or waits for, in a sentence.
	LastMessage string `json:"lastMessage,omitempty"`
	// Conditions is a map by type.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// VCenter is the host of the vCenter that has the machines, VCenterID identifies that vCenter, and Folder is the path of the group's
	// folder there.
	VCenter   string `json:"vCenter,omitempty"`
	VCenterID string `json:"vCenterID,omitempty"`
	Folder    string `json:"folder,omitempty"`
}
