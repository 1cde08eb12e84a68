//go:build !without_vcenter

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mysql-operator/mysql-operator/schema"
	"github.com/mysql-operator/mysql-operator/test/kube"
	"github.com/mysql-operator/mysql-operator/test/vcsim"
)

const (
	namespace = "bench"
	// conditionReady is the condition that all kinds have.
	conditionReady = "Ready"
	// makeLimit bounds how long the objects may take to be as they say. Nothing starts here, so they should take seconds, but for machines,
	// which are cloned one after the other.
	makeLimit = 10 * time.Minute
)

func core(resource string) apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Version: "v1", Resource: resource}
}

// specOf is what object i of a kind says: the smallest that gives the operator something to look after. The Pod that a MyCustomResource
// names is the one of the MySQLCluster of its number.
func specOf(kind string, i int) (map[string]any, error) {
	cluster := fmt.Sprintf("mysqlcluster-%d", i)
	specs := map[string]map[string]any{
		"MySQLCluster":        {"secret": "root", "replicas": int64(1), "storageClassName": "bench"},
		"MySQLBackupSchedule": {"cluster": cluster, "time": "0 3 1 1 *"},
		"MySQLBackupInstance": {"cluster": cluster},
		"ConfigMonitor":       {"configmap": fmt.Sprintf("settings-%d", i), "podSelector": map[string]any{"app": fmt.Sprintf("app-%d", i)}},
		"TDSet": {
			"container": map[string]any{"image": "crccheck/hello-world", "port": int64(8000)}, "defaultReplica": int64(1),
			"schedulingConfig": []any{map[string]any{"startTime": int64(9), "endTime": int64(17), "replica": int64(2)}},
		},
		"PulsarConsumer":   {"serverAddress": "pulsar://pulsar:6650", "topic": "t", "subscriptionName": "s", "replicas": int64(1)},
		"VmGroup":          {"cpu": int64(1), "memory": int64(1), "replicas": int64(1), "template": vcsim.Template},
		"MyCustomResource": {"name": cluster + "-0"},
	}
	spec, known := specs[kind]
	if !known {
		return nil, fmt.Errorf("make objects: there is no %s here yet: add one to specOf", kind)
	}
	return spec, nil
}

// makeObjects applies what users apply.
func (b bench) makeObjects(ctx context.Context, count int, at *vCenter) error {
	if err := b.makeSurroundings(ctx, count, at); err != nil {
		return err
	}
	for _, kind := range b.kinds {
		for i := range count {
			spec, err := specOf(kind.Kind, i)
			if err != nil {
				return err
			}
			object := &unstructured.Unstructured{Object: map[string]any{
				"metadata": map[string]any{"name": fmt.Sprintf("%s-%d", strings.ToLower(kind.Kind), i), "namespace": namespace}, "spec": spec,
			}}
			object.SetGroupVersionKind(kind.GVK())
			if _, err := b.Admin.Resource(kind.GVR()).Namespace(namespace).Create(ctx, object, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("create %s %s: %w", kind.Kind, object.GetName(), err)
			}
		}
	}
	return nil
}

// makeSurroundings makes what the objects name.
func (b bench) makeSurroundings(ctx context.Context, count int, at *vCenter) error {
	if _, err := b.Kubectl.Run(ctx, "create", "namespace", namespace); err != nil {
		return err
	}
	if _, err := b.Kubectl.Run(ctx, "create", "secret", "generic", "root", "--namespace", namespace, "--from-literal=password=bench-Passw0rd"); err != nil {
		return err
	}
	if _, err := b.Kubectl.Run(ctx, "create", "secret", "generic", "vc-creds", "--namespace", namespace, "--from-literal=VC_USER="+vcsim.User,
		"--from-literal=VC_PASS="+vcsim.Password, "--from-literal=VC_HOST="+at.Host, "--from-literal=VC_CA="+at.Authorities); err != nil {
		return err
	}
	for i := range count {
		settings := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": fmt.Sprintf("settings-%d", i)}, "data": map[string]any{"a": "b"},
		}}
		if _, err := b.Admin.Resource(core("configmaps")).Namespace(namespace).Create(ctx, settings, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create a ConfigMap: %w", err)
		}
	}
	return nil
}

// awaitObjects lets members stand in for the Pods of MySQLClusters. It returns when the operator has seen every object, and when
// MySQLClusters, VmGroups and MyCustomResources are as their specs say. The other kinds wait for Pods, which no kubelet runs here.
func (b bench) awaitObjects(ctx context.Context) error {
	return kube.Wait(ctx, "the objects to be as they say", makeLimit, func(ctx context.Context) (bool, string) {
		if err := b.members.Tend(ctx, namespace); err != nil {
			return false, err.Error()
		}
		for _, kind := range b.kinds {
			list, err := b.Admin.Resource(kind.GVR()).Namespace(namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, err.Error()
			}
			for i := range list.Items {
				if missing, err := unfinished(kind, list.Items[i]); err != nil || missing != "" {
					return false, fmt.Sprintf("%s %s: %s %v", kind.Kind, list.Items[i].GetName(), missing, err)
				}
			}
		}
		return true, ""
	})
}

// unfinished says what an object lacks; empty for nothing.
func unfinished(kind schema.Kind, object unstructured.Unstructured) (string, error) {
	var seen struct {
		Status struct {
			ObservedGeneration int64              `json:"observedGeneration"`
			Conditions         []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := schema.Decode(&object, &seen); err != nil {
		return "", err
	}
	if seen.Status.ObservedGeneration != object.GetGeneration() {
		return "not seen yet", nil
	}
	complete := slices.Contains([]string{"MySQLCluster", "VmGroup", "MyCustomResource"}, kind.Kind)
	if !complete || meta.IsStatusConditionTrue(seen.Status.Conditions, conditionReady) {
		return "", nil
	}
	if said := meta.FindStatusCondition(seen.Status.Conditions, conditionReady); said != nil {
		return said.Reason + ": " + said.Message, nil
	}
	return "has no condition " + conditionReady, nil
}

// awaitQuiet returns when nothing has been written to any of the objects for some time: Kubernetes' own controllers take a while for this
// many.
func (b bench) awaitQuiet(ctx context.Context, settle time.Duration) (map[string]string, error) {
	var last map[string]string
	var since time.Time
	err := kube.Wait(ctx, "the objects to be left alone", makeLimit, func(ctx context.Context) (bool, string) {
		now, err := b.versions(ctx)
		if err != nil {
			return false, err.Error()
		}
		if !maps.Equal(last, now) {
			last, since = now, time.Now()
		}
		return time.Since(since) >= settle, fmt.Sprintf("the last write was %s ago", time.Since(since).Round(time.Second))
	})
	return last, err
}

// versions are the resource versions of all objects of the kinds, by kind and name.
func (b bench) versions(ctx context.Context) (map[string]string, error) {
	found := map[string]string{}
	for _, kind := range b.kinds {
		list, err := b.Admin.Resource(kind.GVR()).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("look at the objects: %w", err)
		}
		for i := range list.Items {
			found[kind.Kind+"/"+list.Items[i].GetName()] = list.Items[i].GetResourceVersion()
		}
	}
	return found, nil
}
