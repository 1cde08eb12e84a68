package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/cmd/internal/cli"
	"github.com/mysql-operator/mysql-operator/schema"
)

// runExplain runs `mysql-operator explain failover` in the operator's Pod. If the user may not, it shows what the status says.
func runExplain(ctx context.Context, p cli.Process) error {
	o := options{}
	words, err := o.parse("explain", p)
	if err != nil {
		return err
	}
	if len(words) != 1 {
		return cli.BadUsage("explain needs the NAME of a cluster")
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cluster, err := o.connect()
	if err != nil {
		return err
	}
	answer, failed := cluster.askOperator(ctx, o, words[0])
	if failed == nil {
		_, err = p.Out.Write(answer)
		return err
	}
	found, err := cluster.topologies(ctx, words)
	if err != nil {
		return errors.Join(failed, err)
	}
	return explainFromStatus(p.Out, o, found[0], failed)
}

// askOperator returns what the operator prints.
func (c connection) askOperator(ctx context.Context, o options, name string) ([]byte, error) {
	if err := c.mayExec(ctx, o.operatorNamespace); err != nil {
		return nil, err
	}
	pod, err := c.operatorPod(ctx, o.operatorNamespace)
	if err != nil {
		return nil, err
	}
	return c.exec(ctx, pod, []string{"/" + operatorName, "explain", "failover", c.namespace + "/" + name, "--output", o.output})
}

// operatorPod finds a Pod of the operator: of its Deployment, or one of `kubectl run`.
func (c connection) operatorPod(ctx context.Context, namespace string) (unstructured.Unstructured, error) {
	for _, label := range []string{operatorLabel, "run"} {
		options := metav1.ListOptions{LabelSelector: label + "=" + operatorName, FieldSelector: "status.phase=Running"}
		found, err := c.api.Resource(pods()).Namespace(namespace).List(ctx, options)
		if err != nil {
			return unstructured.Unstructured{}, fmt.Errorf("find the operator's Pod: %w", err)
		}
		if len(found.Items) > 0 {
			return found.Items[0], nil
		}
	}
	return unstructured.Unstructured{}, fmt.Errorf("find the operator's Pod: none with the label %s=%s runs in namespace %s: name its namespace with --operator-namespace", operatorLabel, operatorName, namespace)
}

// mayExec asks whether the user may run programs in the operator's Pods. Whoever may has the operator's permissions.
func (c connection) mayExec(ctx context.Context, namespace string) error {
	review, err := schema.Encode(authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "create", Resource: "pods", Subresource: "exec"},
	}})
	if err != nil {
		return err
	}
	asked := &unstructured.Unstructured{Object: review}
	asked.SetGroupVersionKind(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"))
	answer, err := c.api.Resource(authorizationv1.SchemeGroupVersion.WithResource("selfsubjectaccessreviews")).Create(ctx, asked, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("ask for permission to run explain in the operator's Pod: %w", err)
	}
	if allowed, _, _ := unstructured.NestedBool(answer.Object, "status", "allowed"); !allowed {
		return fmt.Errorf("without permission to create pods/exec in namespace %s, where the operator runs", namespace)
	}
	return nil
}

// explainFromStatus shows what the operator has written about a takeover, and what only it sees.
func explainFromStatus(out io.Writer, o options, t topology, failed error) error {
	t.Unseen = append(t.Unseen, "the operator was not asked: "+failed.Error(),
		"so this does not show what the members report now: whether they answer, what they have received, and what is left of the lease")
	if o.output == outputJSON {
		return printJSON(out, t)
	}
	if err := printTopology(out, t); err != nil {
		return err
	}
	if ready := t.condition("FailoverReady"); ready != nil && ready.Status == metav1.ConditionTrue {
		fmt.Fprintf(out, "  FailoverReady is %s, %s: %s\n", ready.Status, ready.Reason, ready.Message)
	}
	_, err := fmt.Fprintf(out, "  spec.failover: notReadySeconds %d, unreachableSeconds %d, whenPrimaryUnreachable %s, whenPrimaryCrashes %s\n",
		t.Failover.NotReadySeconds, t.Failover.UnreachableSeconds, t.Failover.WhenPrimaryUnreachable, t.Failover.WhenPrimaryCrashes)
	return err
}
