// Package v1 holds version v1 of TDSet.
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TDSet is a Deployment whose replicas follow the hours of the day.
type TDSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   TDSetSpec   `json:"spec,omitzero"`
	Status TDSetStatus `json:"status,omitzero"`
}

// TDSetSpec is what the user wants. The API server has validated it.
type TDSetSpec struct {
	// Container is what the Deployment runs.
	Container Container `json:"container"`
	// Service, if there is one, asks for a Service that leads to the Pods.
	Service *Service `json:"service,omitempty"`
	// SchedulingConfig are the intervals. Where several hold at a time, the first of them in the list counts.
	SchedulingConfig []Interval `json:"schedulingConfig"`
	// DefaultReplica is how many replicas run while no interval holds.
	DefaultReplica int32 `json:"defaultReplica"`
	// TimeZone is the IANA name of the zone whose clocks hours and days are read from. Empty means UTC.
	TimeZone string `json:"timeZone,omitempty"`
	// IntervalMint is the longest time between two checks, in minutes. There is one every hour at least.
	IntervalMint *int32 `json:"intervalMint,omitempty"`
	// Replicas, while set, is how many run whatever the schedule says. It is what the scale subresource sets.
	Replicas *int32 `json:"replicas,omitempty"`
}

// Container is what each Pod runs.
type Container struct {
	// Image is the container's image.
	Image string `json:"image"`
	// Port is where it listens.
	Port int32 `json:"port"`
}

// Service is the Service in front of the Pods.
type Service struct {
	// Port is where the Service listens; 0 means the container's port.
	Port int32 `json:"port,omitempty"`
}

// Interval is a time of day at which a number of replicas runs.
type Interval struct {
	// StartTime is the hour at which it begins, 0 to 23.
	StartTime int32 `json:"startTime"`
	// EndTime is the hour at which it has ended, 0 to 24. If it is not after StartTime, it is of the next day; 0 and 24 are midnight.
	EndTime int32 `json:"endTime"`
	// Replica is how many replicas run.
	Replica int32 `json:"replica"`
	// Days are the days on which it begins. None means every day.
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
	// ConditionAvailable: enough Pods serve, as the Deployment has it.
	ConditionAvailable = "Available"
	// ConditionProgressing: Pods are being started, replaced or ended.
	ConditionProgressing = "Progressing"
	// ConditionDegraded: something keeps the TDSet from what its spec says; the message says what to do.
	ConditionDegraded = "Degraded"

	ConditionReady       = "Ready"
	ConditionReconciling = "Reconciling"
	ConditionStalled     = "Stalled"
)

// TDSetStatus is what the operator has seen and done.
type TDSetStatus struct {
	// ObservedGeneration is the metadata.generation this status is about; -1, by default, before there is one.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions is a map by type.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// CurrentInterval is the interval that holds, such as "09:00-17:00", or "default" while none does.
	CurrentInterval string `json:"currentInterval,omitempty"`
	// ScheduledReplicas is how many replicas the schedule says now; nil if it cannot be read.
	ScheduledReplicas *int32 `json:"scheduledReplicas,omitempty"`
	// NextChange is when the schedule says another number; nil if it never does.
	NextChange *Change `json:"nextChange,omitempty"`
	// Replicas is how many Pods there are, ReadyReplicas how many of them serve.
	Replicas      int32 `json:"replicas"`
	ReadyReplicas int32 `json:"readyReplicas"`
	// Selector selects the Pods, in kubectl's form, for the scale subresource.
	Selector string `json:"selector,omitempty"`
}

// Change is a change to come.
type Change struct {
	// Time is when.
	Time metav1.Time `json:"time"`
	// Replicas is how many will run from then on.
	Replicas int32 `json:"replicas"`
}
