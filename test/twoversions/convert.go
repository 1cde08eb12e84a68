package twoversions

import (
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/crds/conversion"
	v1 "github.com/mysql-operator/mysql-operator/schema/magalix/v1"
)

// Domain is the prefix of this build's annotations.
const Domain = "twoversions.test"

// Registry converts ConfigMonitors.
func Registry() (*conversion.Registry, error) {
	return conversion.NewRegistry(Domain, conversion.Kind{
		GroupKind: apischema.GroupKind{Group: "magalix.com", Kind: "ConfigMonitor"},
		Hub:       "v2",
		Spokes:    []conversion.Spoke{{Version: "v1", ToHub: conversion.Typed(fromV1), FromHub: conversion.Typed(toV1)}},
		ListKeys:  map[string][]string{"status.conditions": {"type"}, "status.lastRestart.workloads": {"kind", "name"}, "status.restart.workloads": {"kind", "name"}},
	})
}

func fromV1(from v1.ConfigMonitor) (ConfigMonitor, error) {
	to := ConfigMonitor{ObjectMeta: from.ObjectMeta}
	to.Spec.Source.Name = from.Spec.ConfigMapName()
	to.Spec.Targets.Selector.MatchLabels = from.Spec.PodSelector
	to.Status = Status{
		ObservedGeneration: from.Status.ObservedGeneration,
		Conditions:         from.Status.Conditions,
		Observed:           Observed{Source: from.Status.ObservedConfigMap, Hash: from.Status.ObservedHash},
	}
	if was := from.Status.LastRestart; was != nil {
		restart := Restart{Began: was.Time, Ended: was.CompletionTime, Generation: was.Generation, Hash: was.Hash, Reason: was.Reason}
		for _, one := range was.Workloads {
			restart.Workloads = append(restart.Workloads, Workload{Kind: one.Kind, Name: one.Name, UID: string(one.UID), Action: one.Action, Time: one.Time, Message: one.Message})
		}
		to.Status.Restart = &restart
	}
	return to, nil
}

func toV1(from ConfigMonitor) (v1.ConfigMonitor, error) {
	to := v1.ConfigMonitor{ObjectMeta: from.ObjectMeta}
	to.Spec.ConfigMap = from.Spec.Source.Name
	to.Spec.PodSelector = from.Spec.Targets.Selector.MatchLabels
	to.Status = v1.ConfigMonitorStatus{
		ObservedGeneration: from.Status.ObservedGeneration,
		Conditions:         from.Status.Conditions,
		ObservedConfigMap:  from.Status.Observed.Source,
		ObservedHash:       from.Status.Observed.Hash,
	}
	if was := from.Status.Restart; was != nil {
		restart := v1.Restart{Time: was.Began, CompletionTime: was.Ended, Generation: was.Generation, Hash: was.Hash, Reason: was.Reason}
		for _, one := range was.Workloads {
			restart.Workloads = append(restart.Workloads, v1.RestartedWorkload{Kind: one.Kind, Name: one.Name, UID: types.UID(one.UID), Action: one.Action, Time: one.Time, Message: one.Message})
		}
		to.Status.LastRestart = &restart
	}
	return to, nil
}
