package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Operator starts the operator as the README says.
type Operator struct {
	// Image is the operator's image, Namespace its namespace, Kinds its --kinds; empty means the default.
	Image, Namespace, Kinds string
	// Binary is the same operator as a program on this machine, which prints its manifests.
	Binary string
}

// OperatorFromEnvironment returns an Operator with the image that make passes in IMG and the binary that make built.
func OperatorFromEnvironment(namespace string) Operator {
	image := os.Getenv("IMG")
	if image == "" {
		image = "mysql-operator:latest"
	}
	return Operator{Image: image, Namespace: namespace, Binary: "bin/mysql-operator"}
}

// Manifests returns the manifests that an administrator applies first: the service account, its permissions, or the policies that restrict
// it.
func (o Operator) Manifests(ctx context.Context, what string) (string, error) {
	arguments := []string{"manifests", what, "--namespace", o.Namespace, "--image", o.Image}
	if o.Kinds != "" {
		arguments = append(arguments, "--kinds", o.Kinds)
	}
	output, err := exec.CommandContext(ctx, o.Binary, arguments...).Output()
	if err != nil {
		return "", fmt.Errorf("mysql-operator manifests %s: %w", what, err)
	}
	return string(output), nil
}

// Run starts the operator with kubectl run under its service account, and waits until it is ready. It replaces an operator that already
// runs, so that the current image runs.
func (o Operator) Run(ctx context.Context, kubectl Kubectl) error {
	for _, part := range []string{"rbac", "policy"} {
		manifest, err := o.Manifests(ctx, part)
		if err != nil {
			return err
		}
		if _, err := kubectl.Apply(ctx, manifest); err != nil {
			return err
		}
	}
	if _, err := kubectl.Run(ctx, "delete", "pod", "mysql-operator", "--namespace", o.Namespace, "--ignore-not-found"); err != nil {
		return err
	}
	arguments := []string{"run", "mysql-operator", "--namespace", o.Namespace, "--image=" + o.Image, "--overrides=" + o.overrides()}
	if o.Kinds != "" {
		arguments = append(arguments, "--env=MYSQL_OPERATOR_KINDS="+o.Kinds)
	}
	if _, err := kubectl.Run(ctx, arguments...); err != nil {
		return err
	}
	return o.waitReady(ctx, kubectl)
}

// overrides sets the service account, for which kubectl run has no flag.
func (o Operator) overrides() string {
	content, _ := json.Marshal(map[string]any{"spec": map[string]any{"serviceAccountName": "mysql-operator"}})
	return string(content)
}

// waitReady asks the Pod itself, through the API server: definitions that an earlier operator registered are served even if this one does
// not run.
func (o Operator) waitReady(ctx context.Context, kubectl Kubectl) error {
	quiet := kubectl
	quiet.Echo = nil
	err := Wait(ctx, "the operator to be ready", 2*time.Minute, func(ctx context.Context) (bool, string) {
		seen, err := quiet.Run(ctx, "get", "--raw", "/api/v1/namespaces/"+o.Namespace+"/pods/mysql-operator:8081/proxy/readyz")
		return err == nil, strings.TrimSpace(seen)
	})
	if err != nil {
		logs, _ := quiet.Run(ctx, "logs", "mysql-operator", "--namespace", o.Namespace, "--tail=20")
		return fmt.Errorf("%w\nlogs of the operator:\n%s", err, logs)
	}
	return nil
}

// Deployed returns the operators that run as a Deployment, as NAMESPACE/NAME. No other operator may be started in addition to them: the
// Lease that keeps two operators apart exists once per namespace.
func Deployed(ctx context.Context, kubectl Kubectl) ([]string, error) {
	kubectl.Echo = nil
	seen, err := kubectl.Run(ctx, "get", "deployments", "--all-namespaces", "--selector=app.kubernetes.io/name=mysql-operator",
		"--output", `jsonpath={range .items[?(@.spec.replicas!=0)]}{.metadata.namespace}/{.metadata.name}{"\n"}{end}`)
	return strings.Fields(seen), err
}
