package kube

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Account is the service account that the operator runs under, in any namespace.
const Account = "mysql-operator"

// EnsureOperator uses the operator that runs if it is the version that was built last. Otherwise, it starts that version. With keep, it
// uses an operator of any version. It returns the namespace of the operator.
func EnsureOperator(ctx context.Context, kubectl Kubectl, wanted Operator, keep bool, out io.Writer) (namespace string, err error) {
	namespace, pod, err := findOperator(ctx, kubectl)
	if err != nil {
		return "", err
	}
	if pod != "" {
		built, err := exec.CommandContext(ctx, wanted.Binary, "version").Output()
		if err != nil && !keep {
			return "", fmt.Errorf("ask the binary that was built for its version: %w", err)
		}
		running, err := kubectl.Run(ctx, "exec", pod, "--namespace", namespace, "--", "/mysql-operator", "version")
		if err != nil {
			return "", err
		}
		same := strings.TrimSpace(running) == strings.TrimSpace(string(built)) && !strings.Contains(running, "-dirty")
		if same || keep {
			fmt.Fprintf(out, "operator: the one that runs: %s", running)
			return namespace, nil
		}
	}
	if err := DeleteDeployedOperators(ctx, kubectl); err != nil {
		return "", err
	}
	fmt.Fprintf(out, "operator: starting %s\n", wanted.Image)
	return wanted.Namespace, wanted.Run(ctx, kubectl)
}

// findOperator returns a Pod of the operator that is Ready; empty if there is none.
func findOperator(ctx context.Context, kubectl Kubectl) (namespace, pod string, err error) {
	objects, err := kubectl.Objects()
	if err != nil {
		return "", "", err
	}
	seen, err := objects.Fields(ctx, schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "", metav1.ListOptions{FieldSelector: "spec.serviceAccountName=" + Account},
		`{range .items[*]}{.metadata.namespace} {.metadata.name} {.status.conditions[?(@.type=="Ready")].status} {.metadata.deletionTimestamp}{"\n"}{end}`)
	if err != nil {
		return "", "", fmt.Errorf("look for the operator: %w", err)
	}
	for line := range strings.Lines(seen) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[2] == "True" { // one that ends has four
			return fields[0], fields[1], nil
		}
	}
	return "", "", nil
}
