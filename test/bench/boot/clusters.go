package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
	"github.com/mysql-operator/mysql-operator/test/bench/standin"
	"github.com/mysql-operator/mysql-operator/test/bench/testbed"
)

const (
	// clustersNamespace holds the clusters; all share the user's one Secret.
	clustersNamespace = "bench"
	rootSecret        = "root"
	// clustersLimit bounds how long the clusters may take to be Ready. No MySQL starts here, so they should take seconds.
	clustersLimit = 5 * time.Minute
	// tend is how often new Pods are looked for.
	tend = 250 * time.Millisecond
)

func clusterKind() (schema.Kind, error) {
	kinds, err := schema.Select([]string{"MySQLCluster"})
	if err != nil {
		return schema.Kind{}, err
	}
	return kinds[0], nil
}

// makeClusters applies what a user applies. The operator makes their Secrets, Services and StatefulSets, and Kubernetes' own controllers
// make the Pods and claims of those.
func (b bench) makeClusters(ctx context.Context, o options) error {
	kind, err := clusterKind()
	if err != nil {
		return err
	}
	if _, err := b.Kubectl.Run(ctx, "create", "namespace", clustersNamespace); err != nil {
		return err
	}
	if _, err := b.Kubectl.Run(ctx, "create", "secret", "generic", rootSecret, "--namespace", clustersNamespace, "--from-literal=password=bench-Passw0rd"); err != nil {
		return err
	}
	for i := range o.clusters {
		object := &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": fmt.Sprintf("cluster-%d", i), "namespace": clustersNamespace},
			// No provisioner runs here. With a storage class that no provisioner serves, the claims are as quiet as bound ones.
			"spec": map[string]any{"secret": rootSecret, "replicas": int64(o.members), "storageClassName": "bench"},
		}}
		object.SetGroupVersionKind(kind.GVK())
		if _, err := b.Admin.Resource(kind.GVR()).Namespace(clustersNamespace).Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create MySQLCluster %s: %w", object.GetName(), err)
		}
	}
	return nil
}

// awaitClusters has members stand in for each Pod that appears, and returns when the operator finds every cluster as it should be.
func (b bench) awaitClusters(ctx context.Context, o options, members *standin.Members) error {
	kind, err := clusterKind()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, clustersLimit)
	defer cancel()
	for {
		if err := members.Tend(ctx, clustersNamespace); err != nil {
			return err
		}
		list, err := b.Admin.Resource(kind.GVR()).Namespace(clustersNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("look at the clusters: %w", err)
		}
		ready, worst, err := countReady(list.Items, o.members)
		if err != nil {
			return err
		}
		if ready == o.clusters {
			return nil
		}
		if err := testbed.Pause(ctx, tend); err != nil {
			return fmt.Errorf("wait for the clusters to be Ready and durable: %w: %d of %d are; %s", err, ready, o.clusters, worst)
		}
	}
}

// countReady counts the clusters that have nothing left to do; of the others it tells what the last one says.
func countReady(objects []unstructured.Unstructured, members int) (ready int, worst string, err error) {
	for i := range objects {
		var cluster v1.MySQLCluster
		if err := schema.Decode(&objects[i], &cluster); err != nil {
			return 0, "", err
		}
		isReady := meta.IsStatusConditionTrue(cluster.Status.Conditions, v1.ConditionReady)
		if isReady && len(cluster.Status.InSync) == members && int(cluster.Status.RequiredAcks) == members/2 {
			ready++
			continue
		}
		worst = cluster.Name + " says nothing yet"
		if said := meta.FindStatusCondition(cluster.Status.Conditions, v1.ConditionReady); said != nil {
			worst = fmt.Sprintf("%s: %s: %s", cluster.Name, said.Reason, said.Message)
		}
	}
	return ready, worst, nil
}
