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

// nodes returns the names of the nodes.
func (b *bench) nodes(ctx context.Context) ([]string, error) {
	seen, err := b.objects.Fields(ctx, schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, "", metav1.ListOptions{}, "{.items[*].metadata.name}")
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	return strings.Fields(seen), nil
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
	names, err := b.nodes(ctx)
	if err != nil {
		return nil, err
	}
	count := len(names)
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

// prepare brings the leading operator to where a fault needs it. It returns what prevents the fault from hitting what it is meant to hit;
// empty if nothing does.
func (b *bench) prepare(ctx context.Context, one fault) (obstacle string, err error) {
	if one.operator == anywhere {
		return "", nil
	}
	primary, _, err := b.record(ctx)
	if err != nil {
		return "", err
	}
	own, err := b.pods(ctx)
	if err != nil {
		return "", err
	}
	operators, err := b.operators(ctx)
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(own, func(other pod) bool { return other.name == primary })
	if at < 0 {
		return "", fmt.Errorf("look for the node of %s: there is no such Pod", primary)
	}
	if obstacle := obstacleFor(one, own[at], own, operators); obstacle != "" {
		return obstacle, nil
	}
	return "", b.moveLeader(ctx, one, own[at].node)
}

// fits reports whether an operator on a node is where the fault needs the leading one.
func (f fault) fits(operator, primary string) bool {
	switch f.operator {
	case elsewhere:
		return operator != primary
	case beside:
		return operator == primary
	case anywhere:
	}
	return true
}

// obstacleFor returns why the end of a primary's node would not only end what the fault says; empty if it would.
func obstacleFor(one fault, primary pod, own, operators []pod) string {
	for _, other := range own {
		if other.name != primary.name && other.node == primary.node {
			return fmt.Sprintf("%s is on the same node as %s", other.name, primary.name)
		}
	}
	if !slices.ContainsFunc(operators, func(other pod) bool { return other.node != primary.node }) {
		return fmt.Sprintf("no operator is on another node than %s: start two with make dev-up", primary.name)
	}
	if !slices.ContainsFunc(operators, func(other pod) bool { return one.fits(other.node, primary.node) }) {
		return "no operator is on the node of " + primary.name
	}
	return ""
}

// leadsFor is for how long an operator has led before its node fails: the others must have seen and asked it.
const leadsFor = 8 * time.Second

// moveLeader deletes the Pod of the leading operator until another one leads where the fault needs it, and has done so for some time. A Pod
// that ends gives the Lease up.
func (b *bench) moveLeader(ctx context.Context, one fault, primary string) error {
	var deleted, leads string
	var since time.Time
	return kube.Wait(ctx, "another operator to lead", operatorLimit, func(ctx context.Context) (bool, string) {
		leading, err := b.leadingOperator(ctx)
		if err != nil {
			return false, err.Error() // for a moment, none leads
		}
		if leading.name != leads {
			leads, since = leading.name, time.Now()
		}
		if one.fits(leading.node, primary) {
			return time.Since(since) >= leadsFor, leading.name + " has led only for a moment"
		}
		if leading.name != deleted {
			deleted = leading.name
			if _, err := b.kubectl.Run(ctx, "delete", "pod", leading.name, inNamespace, b.operatorHome, "--wait=false"); err != nil {
				return false, err.Error()
			}
		}
		return false, fmt.Sprintf("%s leads on %s", leading.name, leading.node)
	})
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

// killNodeAndDNS cuts the power of a member's node, and stops the DNS of the cluster for as long: no name resolves.
func (b *bench) killNodeAndDNS(ctx context.Context, victim string) (struck, error) {
	dns, err := cluster.DNSPID(ctx, filepath.Dir(b.kubectl.Config))
	if err != nil {
		return struck{end: endsByItself}, err
	}
	if err := syscall.Kill(dns, syscall.SIGSTOP); err != nil {
		return struck{end: endsByItself}, fmt.Errorf("stop the cluster's DNS: process %d: %w", dns, err)
	}
	hit, err := b.killNode(ctx, victim)
	return struck{hit.at, func() error { return errors.Join(syscall.Kill(dns, syscall.SIGCONT), hit.end()) }}, err
}
