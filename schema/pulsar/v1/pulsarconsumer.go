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
	// ServerAddress is the service URL of Pulsar: pulsar://host:6650, or pulsar+ssl://host:6651 for TLS; several hosts separated by commas.
	ServerAddress string `json:"serverAddress"`
	// Topic is the topic to consume: its short name, or tenant/namespace/name, with or without the prefix persistent://.
	Topic string `json:"topic"`
	// SubscriptionName names the subscription that all replicas share.
	SubscriptionName string `json:"subscriptionName"`
	// Replicas is the number of consumers, 0 to 1000.
	Replicas int32 `json:"replicas"`
	// Image is the user's own consumer; empty means the operator's image, which logs and acknowledges messages. The operator recognizes its
	// own image by the last part of the name, such as mysql-operator in registry.example.com/db/mysql-operator:v1. Registry, tag and digest
	// do not matter.
	Image string `json:"image,omitempty"`
	// Secret names a Secret with Pulsar's credentials: the keys token, ca.crt, tls.crt and tls.key, each if needed. Empty means none.
	Secret string `json:"secret,omitempty"`
}

// PulsarConsumerStatus is what the operator has observed and done.
type PulsarConsumerStatus struct {
	// ObservedGeneration is the metadata.generation that this status describes; -1, by default, before the operator has processed the
	// object.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions is a map by type.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Server, Topic and Subscription are the values last applied to the Deployment; empty before that.
	Server       string `json:"server,omitempty"`
	Topic        string `json:"topic,omitempty"`
	Subscription string `json:"subscription,omitempty"`
	// Replicas is the number of Pods of the Deployment, ReadyReplicas the number of those that are ready.
	Replicas      int32 `json:"replicas"`
	ReadyReplicas int32 `json:"readyReplicas"`
	// Selector selects these Pods, in kubectl's form, for autoscalers.
	Selector string `json:"selector,omitempty"`
}
