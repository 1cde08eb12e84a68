package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster"
	nodes "github.com/mysql-operator/mysql-operator/devcluster/cluster/machine"
	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/test/kube"
)

// startLimit bounds how long a node may take to be Ready.
const startLimit = 5 * time.Minute

func podKind() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "pods"}
}

// pod is where a Pod runs.
type pod struct{ name, address, node string }

// podsOf lists Pods that run, in all namespaces if none is given.
func (b *bench) podsOf(ctx context.Context, namespace string, options metav1.ListOptions) ([]pod, error) {
	seen, err := b.objects.Fields(ctx, podKind(), namespace, options, `{range .items[*]}{.metadata.name} {.status.podIP} {.spec.nodeName}{"\n"}{end}`)
	if err != nil {
		return nil, fmt.Errorf("list Pods: %w", err)
	}
	var found []pod
	for line := range strings.Lines(seen) {
		if fields := strings.Fields(line); len(fields) == 3 {
			found = append(found, pod{fields[0], fields[1], fields[2]})
		}
	}
	return found, nil
}

// operators are the Pods of the operator.
func (b *bench) operators(ctx context.Context) ([]pod, error) {
	found, err := b.podsOf(ctx, "", metav1.ListOptions{FieldSelector: "spec.serviceAccountName=" + kube.Account})
	if err == nil && len(found) == 0 {
		err = errors.New("look for the operator: no Pod of it runs")
	}
	return found, err
}

// leadingOperator is the Pod that holds the operators' Lease.
func (b *bench) leadingOperator(ctx context.Context) (pod, error) {
	kind := schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	holder, err := b.objects.Field(ctx, kind, b.operatorHome, reconcile.LeaseName, "{.spec.holderIdentity}")
	if err != nil {
		return pod{}, fmt.Errorf("read the operators' Lease: %w", err)
	}
	found, err := b.operators(ctx)
	if err != nil {
		return pod{}, err
	}
	name, _, _ := strings.Cut(holder, "_") // the Pod's UID follows
	at := slices.IndexFunc(found, func(one pod) bool { return one.name == name })
	if at < 0 {
		return pod{}, fmt.Errorf("look for the operator that leads: the Lease names %q, and there are %v", holder, found)
	}
	return found[at], nil
}

// pods are those of the cluster.
func (b *bench) pods(ctx context.Context) ([]pod, error) {
	return b.podsOf(ctx, b.namespace, metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + b.cluster})
}

func (b *bench) nodeOf(ctx context.Context, name string) (string, error) {
	return b.read(ctx, "pods", name, "{.spec.nodeName}")
}

// countNodes returns how many nodes there are.
func (b *bench) countNodes(ctx context.Context) (int, error) {
	seen, err := b.objects.Fields(ctx, schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, "", metav1.ListOptions{}, "{.items[*].metadata.name}")
	if err != nil {
		return 0, fmt.Errorf("list nodes: %w", err)
	}
	return len(strings.Fields(seen)), nil
}

// placement tells where the members run, and where the operator does.
func (b *bench) placement(ctx context.Context, out io.Writer) error {
	own, err := b.pods(ctx)
	if err != nil {
		return err
	}
	operators, err := b.operators(ctx)
	if err != nil {
		return err
	}
	for _, one := range slices.Concat(own, operators) {
		fmt.Fprintf(out, "on %s: %s\n", one.node, one.name)
	}
	return nil
}

// suitable leaves out faults for which there are too few nodes, with a message.
func (b *bench) suitable(ctx context.Context, faults []fault, out io.Writer) ([]fault, error) {
	count, err := b.countNodes(ctx)
	if err != nil {
		return nil, err
	}
	kept := slices.DeleteFunc(slices.Clone(faults), func(one fault) bool {
		isLacking := one.nodes > count
		if isLacking {
			fmt.Fprintf(out, "without the fault %s: it needs %d nodes, and there are %d: start them with make cluster NODES=%d\n", one.name, one.nodes, count, one.nodes)
		}
		return isLacking
	})
	if len(kept) == 0 {
		return nil, errors.New("choose faults: none is possible with so few nodes")
	}
	return kept, nil
}

// obstacleNow is obstacle for the primary of the moment.
func (b *bench) obstacleNow(ctx context.Context, one fault) (string, error) {
	primary, _, err := b.record(ctx)
	if err != nil {
		return "", err
	}
	return b.obstacle(ctx, one, primary)
}

// obstacle returns why a fault would not only hit the primary, but also what must replace it; empty if that is not so.
func (b *bench) obstacle(ctx context.Context, one fault, victim string) (string, error) {
	if one.nodes == 0 {
		return "", nil
	}
	node, err := b.nodeOf(ctx, victim)
	if err != nil {
		return "", err
	}
	own, err := b.pods(ctx)
	if err != nil {
		return "", err
	}
	for _, other := range own {
		if other.name != victim && other.node == node {
			return fmt.Sprintf("%s is on the same node as %s", other.name, victim), nil
		}
	}
	operators, err := b.operators(ctx)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(operators, func(one pod) bool { return one.node != node }) {
		return fmt.Sprintf("every operator is on the node of %s: run two with make dev-up", victim), nil
	}
	return "", nil
}

// killNode cuts the power of a member's node. Its network ends first: a node without power closes no connections, and the kernel of killed
// processes would.
func (b *bench) killNode(ctx context.Context, victim string) (struck, error) {
	none := struck{end: endsByItself}
	node, err := b.nodeOf(ctx, victim)
	if err != nil {
		return none, err
	}
	folder := filepath.Dir(b.kubectl.Config)
	first, err := cluster.NodePID(ctx, folder, node)
	if err != nil {
		return none, err
	}
	hit := struck{at: time.Now(), end: func() error {
		ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), startLimit, fmt.Errorf("%s does not start within %s", node, startLimit))
		defer cancel()
		return cluster.StartNode(ctx, folder, node, io.Discard)
	}}
	if err := nodes.Partition(ctx, first, nil); err != nil {
		return hit, err
	}
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		return hit, fmt.Errorf("kill %s: process %d: %w", node, first, err)
	}
	return hit, cluster.KillNode(ctx, folder, node, io.Discard)
}
