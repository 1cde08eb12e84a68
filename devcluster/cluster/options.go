// Package cluster runs real Kubernetes clusters on one machine, for development and tests, without a container engine, an image registry or
// a network.
//
// The control plane's components run as ordinary processes. Each node is a process tree in its own namespaces, as if on a machine of its
// own. A bridge connects the nodes:
//
//	machine: etcd · kube-apiserver · kube-controller-manager · kube-scheduler
//	         CoreDNS · volume provisioner · image registry         10.250.I.1
//	            │ bridge devclusterI
//	            ├── node-1   containerd · kubelet · kube-proxy     10.250.I.11
//	            ├── node-2   pods 10.251.…/24, each with a veth    10.250.I.12
//	            └── node-3   pair of its own                       10.250.I.13
//
// A cluster lives in a folder, and several clusters can run in different folders. A control plane alone does not need root and listens only
// on loopback.
package cluster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster/plan"
)

// Options describe the cluster that Up starts. The zero value is the default cluster: one node, in the folder .dev of the repository, with
// an audit log.
type Options struct {
	// Dir is the cluster's folder. Default: .dev in the repository.
	Dir string
	// Nodes is the number of nodes, up to plan.MaxNodes. Default: the current number, 1 for a new cluster. Up never removes nodes.
	Nodes int
	// ControlPlaneOnly starts no node. It does not need root.
	ControlPlaneOnly bool
	// WithoutControllerManager does not start kube-controller-manager, in a control plane alone: nothing is garbage-collected, no namespace
	// can be deleted, and namespaces get no service account. It saves a second and some memory.
	WithoutControllerManager bool
	// WithScheduler adds kube-scheduler to a control plane alone, for simulated nodes.
	WithScheduler bool
	// WithoutAuditLog turns off the audit log, DIR/audit.log.
	WithoutAuditLog bool
	// Progress receives lines about the progress. Default: none.
	Progress io.Writer
}

// Cluster is a cluster that was started.
type Cluster struct {
	Dir string
	// Kubeconfig is the administrator's kubeconfig.
	Kubeconfig string
	// AuditLog is the API server's audit log, one JSON object per write; empty if there is none.
	AuditLog string
	// Kubectl is a kubectl of the cluster's release.
	Kubectl string
}

// complete fills in the defaults and checks the options.
func (o Options) complete() (Options, error) {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if o.Dir == "" {
		root, err := repository()
		if err != nil {
			return o, err
		}
		o.Dir = filepath.Join(root, ".dev")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return o, fmt.Errorf("find folder %s: %w", o.Dir, err)
	}
	o.Dir = dir
	switch {
	case o.Nodes < 0 || o.Nodes > plan.MaxNodes:
		return o, fmt.Errorf("start cluster: %d nodes: the number must be from 1 to %d", o.Nodes, plan.MaxNodes)
	case o.ControlPlaneOnly && o.Nodes > 0:
		return o, errors.New("start cluster: a control plane alone has no nodes: drop one of the two options")
	case !o.ControlPlaneOnly && (o.WithoutControllerManager || o.WithScheduler):
		return o, errors.New("start cluster: a cluster with nodes has every component: these options belong to a control plane alone")
	}
	return o, nil
}

var moduleLine = regexp.MustCompile(`(?m)^module github\.com/mysql-operator/mysql-operator$`)

// repository finds the root of this repository, from the working folder up. It contains the source of Kubernetes' nested module.
func repository() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && moduleLine.Match(content) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find the repository: no go.mod of mysql-operator in %s or above: run this inside a clone", start)
		}
	}
}
