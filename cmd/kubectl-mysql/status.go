package main

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mysql-operator/mysql-operator/cmd/internal/cli"
	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// topology is what a user sees of a cluster.
type topology struct {
	Namespace string                `json:"namespace"`
	Name      string                `json:"name"`
	Failover  v1.Failover           `json:"failover"`
	Status    v1.MySQLClusterStatus `json:"status"`
	Pods      []pod                 `json:"pods,omitempty"`
	// Faults are the conditions that are not as they should be.
	Faults []metav1.Condition `json:"faults,omitempty"`
	// Unseen is what could not be read, and why.
	Unseen []string `json:"unseen,omitempty"`
}

// pod is what a user sees of a member's Pod.
type pod struct {
	Name     string `json:"name"`
	Node     string `json:"node,omitempty"`
	State    string `json:"state"`
	Restarts int32  `json:"restarts"`
}

func runStatus(ctx context.Context, p cli.Process) error {
	o := options{}
	words, err := o.parse("status", p)
	if err != nil {
		return err
	}
	if len(words) > 1 {
		return cli.BadUsage("status takes one NAME, or none for all clusters of the namespace")
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cluster, err := o.connect()
	if err != nil {
		return err
	}
	found, err := cluster.topologies(ctx, words)
	if err != nil {
		return err
	}
	if o.output == outputJSON {
		return printJSON(p.Out, found)
	}
	if len(found) == 0 {
		_, err = fmt.Fprintf(p.Out, "no MySQLCluster in namespace %s\n", cluster.namespace)
		return err
	}
	return printTopologies(p.Out, found)
}

// topologies reads these clusters, or all of the namespace if there are no names.
func (c connection) topologies(ctx context.Context, names []string) ([]topology, error) {
	clusters := c.api.Resource(schema.Kinds()[0].GVR()).Namespace(c.namespace)
	var objects []unstructured.Unstructured
	for _, name := range names {
		object, err := clusters.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("read MySQLCluster %s/%s: %w", c.namespace, name, err)
		}
		objects = append(objects, *object)
	}
	if len(names) == 0 {
		list, err := clusters.List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list MySQLClusters in namespace %s: %w", c.namespace, err)
		}
		objects = list.Items
	}
	all := make([]topology, 0, len(objects))
	for i := range objects {
		var cluster v1.MySQLCluster
		if err := schema.Decode(&objects[i], &cluster); err != nil {
			return nil, err
		}
		all = append(all, c.topology(ctx, cluster))
	}
	return all, nil
}

// topology also reads the Pods, if the user may.
func (c connection) topology(ctx context.Context, cluster v1.MySQLCluster) topology {
	found := topology{Namespace: cluster.Namespace, Name: cluster.Name, Failover: cluster.Spec.Failover, Status: cluster.Status}
	for _, condition := range cluster.Status.Conditions {
		isGood := slices.Contains([]string{v1.ConditionReady, "Durable", "FailoverReady"}, condition.Type)
		if isGood != (condition.Status == metav1.ConditionTrue) {
			found.Faults = append(found.Faults, condition)
		}
	}
	if cluster.Status.Selector == "" {
		return found // it has no Pods yet
	}
	list, err := c.api.Resource(pods()).Namespace(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: cluster.Status.Selector})
	if err != nil {
		why := "cannot list pods: "
		if apierrors.IsForbidden(err) {
			why = "without permission to list pods: "
		}
		found.Unseen = append(found.Unseen, why+err.Error())
		return found
	}
	for i := range list.Items {
		var one corev1.Pod
		if err := schema.Decode(&list.Items[i], &one); err != nil {
			found.Unseen = append(found.Unseen, err.Error())
			continue
		}
		found.Pods = append(found.Pods, podOf(one))
	}
	return found
}

func pods() apischema.GroupVersionResource { return corev1.SchemeGroupVersion.WithResource("pods") }

func podOf(one corev1.Pod) pod {
	found := pod{Name: one.Name, Node: one.Spec.NodeName, State: string(one.Status.Phase)}
	for _, condition := range one.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			found.State = "Ready"
		}
	}
	if one.DeletionTimestamp != nil {
		found.State = "Terminating"
	}
	for _, container := range one.Status.ContainerStatuses {
		found.Restarts += container.RestartCount
	}
	return found
}

// condition returns the condition of this type; nil if there is none.
func (t topology) condition(name string) *metav1.Condition {
	return meta.FindStatusCondition(t.Status.Conditions, name)
}
