// Package v1 holds version v1 of PulsarConsumer.
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PulsarConsumer runs programs that consume a topic of Apache Pulsar.
type PulsarConsumer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   PulsarConsumerSpec   `json:"spec"`
	Status PulsarConsumerStatus `json:"status,omitzero"`
}

// PulsarConsumerSpec is what the user wants. The API server has validated it.
type PulsarConsumerSpec struct {
	// ServerAddress is the service URL of Pulsar: pulsar://host:6650, or pulsar+ssl://host:6651 for TLS; several hosts by commas.
	ServerAddress string `json:"serverAddress"`
	// Topic is the topic to consume: its short name, or tenant/namespace/name, with or without persistent:// before it.
	Topic string `json:"topic"`
	// SubscriptionName names the subscription that all replicas share.
	SubscriptionName string `json:"subscriptionName"`
	// Replicas is how many consumers run, 0 to 1000.
	Replicas int32 `json:"replicas"`
	// Image is a consumer of the user's own; empty means the operator's image, which logs and acknowledges. That is also known by the last
	// part of its name, mysql-operator of registry.example.com/db/mysql-operator:v1, whatever the registry, the tag and the digest.
	Image string `json:"image,omitempty"`
	// Secret names a Secret with what Pulsar asks for: the keys token, ca.crt, tls.crt and tls.key, each if needed. Empty means nothing.
	Secret string `json:"secret,omitempty"`
}

// PulsarConsumerStatus is what the operator has seen and done.
type PulsarConsumerStatus struct {
	// ObservedGeneration is the metadata.generation this status is about; -1, by default, before there is one.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions is a map by type.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Server, Topic and Subscription are what the Deployment was last told; empty until it is.
	Server       string `json:"server,omitempty"`
	Topic        string `json:"topic,omitempty"`
	Subscription string `json:"subscription,omitempty"`
	// Replicas is how many Pods the Deployment has, ReadyReplicas how many of them are ready.
	Replicas      int32 `json:"replicas"`
	ReadyReplicas int32 `json:"readyReplicas"`
	// Selector selects these Pods, in kubectl's form, for autoscalers.
	Selector string `json:"selector,omitempty"`
}
