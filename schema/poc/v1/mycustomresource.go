// Package v1 holds version v1 of MyCustomResource.
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MyCustomResource reports whether a Pod of some name exists.
type MyCustomResource struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   MyCustomResourceSpec   `json:"spec,omitzero"`
	Status MyCustomResourceStatus `json:"status,omitzero"`
}

// MyCustomResourceSpec is what the user wants. The API server has validated it.
type MyCustomResourceSpec struct {
	// Name is the name of the Pod to look for.
	Name string `json:"name"`
	// Namespace is the namespace to look in; empty means all namespaces.
	Namespace string `json:"namespace,omitempty"`
}

// The condition types of the kind; their meaning is the same as for every other kind of this operator.
const (
	ConditionReady   = "Ready"
	ConditionStalled = "Stalled"
)

// MyCustomResourceStatus is what the operator has observed.
type MyCustomResourceStatus struct {
	// Healthy is true while the Pod exists. In the API it is absent instead of false.
	Healthy bool `json:"Healthy,omitempty"`
	// Conditions is a map by type.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// ObservedGeneration is the metadata.generation that this status describes; -1, by default, before the operator has processed the
	// object.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}
