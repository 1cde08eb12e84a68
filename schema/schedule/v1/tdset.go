// Package v1 holds version v1 of TDSet.
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TDSet is a Deployment whose number of replicas depends on the time of day.
type TDSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   TDSetSpec   `json:"spec,omitzero"`
	Status TDSetStatus `json:"status,omitzero"`
}

// TDSetSpec is what the user wants. The API server has validated it.
type TDSetSpec struct {
	// Container is the container of the Deployment's Pods.
	Container Container `json:"container"`
	// Service, if set, requests a Service in front of the Pods.
	Service *Service `json:"service,omitempty"`
	// SchedulingConfig are the intervals. If several apply at a time, the first of them in the list counts.
	SchedulingConfig []Interval `json:"schedulingConfig"`
	// DefaultReplica is the number of replicas while no interval applies.
	DefaultReplica int32 `json:"defaultReplica"`
	// TimeZone is the IANA name of the time zone of hours and days. Empty means UTC.
	TimeZone string `json:"timeZone,omitempty"`
	// IntervalMint is the longest time between two checks, in minutes. There is at least one check every hour.
	IntervalMint *int32 `json:"intervalMint,omitempty"`
	// Replicas, while set, is the number of replicas regardless of the schedule. The scale subresource sets it.
	Replicas *int32 `json:"replicas,omitempty"`
}

// Container is the container of each Pod.
type Container struct {
	// Image is the container's image.
	Image string `json:"image"`
	// Port is the port that the container listens on.
	Port int32 `json:"port"`
}

// Service is the Service in front of the Pods.
type Service struct {
	// Port is the Service's port; 0 means the container's port.
	Port int32 `json:"port,omitempty"`
}

// Interval is a time of day with a number of replicas.
type Interval struct {
	// StartTime is the hour at which it begins, 0 to 23.
	StartTime int32 `json:"startTime"`
	// EndTime is the hour at which it ends, 0 to 24. If it is not after StartTime, it is on the next day; 0 and 24 are midnight.
	EndTime int32 `json:"endTime"`
	// Replica is the number of replicas.
	Replica int32 `json:"replica"`
	// Days are the days on which it begins. An empty list means every day.
	Days []Day `json:"days,omitempty"`
}

// Day is a day of the week.
type Day string

// The days of the week.
const (
	Monday    Day = "Mon"
	Tuesday   Day = "Tue"
	Wednesday Day = "Wed"
	Thursday  Day = "Thu"
	Friday    Day = "Fri"
	Saturday  Day = "Sat"
	Sunday    Day = "Sun"
)

// The condition types of the kind. Ready, Reconciling and Stalled mean the same as for every other kind of this operator.
const (
	// ConditionAvailable: enough Pods are available, according to the Deployment.
	ConditionAvailable = "Available"
	// ConditionProgressing: Pods are being started, replaced or ended.
	ConditionProgressing = "Progressing"
	// ConditionDegraded: the operator cannot do what the spec says; the message says what the user can do.
	ConditionDegraded = "Degraded"

	ConditionReady       = "Ready"
	ConditionReconciling = "Reconciling"
	ConditionStalled     = "Stalled"
)

// TDSetStatus is what the operator has observed and done.
type TDSetStatus struct {
	// ObservedGeneration is the metadata.generation that this status describes; -1, by default, before the operator has processed the
	// object.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions is a map by type.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// CurrentInterval is the interval that applies, such as "09:00-17:00", or "default" while none does.
	CurrentInterval string `json:"currentInterval,omitempty"`
	// ScheduledReplicas is the number of replicas of the schedule now; nil if the schedule cannot be read.
	ScheduledReplicas *int32 `json:"scheduledReplicas,omitempty"`
	// NextChange is the next change of that number; nil if there is none.
	NextChange *Change `json:"nextChange,omitempty"`
	// Replicas is the number of Pods, ReadyReplicas the number of those that are ready.
	Replicas      int32 `json:"replicas"`
	ReadyReplicas int32 `json:"readyReplicas"`
	// Selector selects the Pods, in kubectl's form, for the scale subresource.
	Selector string `json:"selector,omitempty"`
}

// Change is a future change of the number of replicas.
type Change struct {
	// Time is the time of the change.
	Time metav1.Time `json:"time"`
	// Replicas is the number of replicas from then on.
	Replicas int32 `json:"replicas"`
}
