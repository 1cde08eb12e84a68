package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster/atomicfile"
	"github.com/mysql-operator/mysql-operator/devcluster/cluster/daemon"
	"github.com/mysql-operator/mysql-operator/devcluster/cluster/machine"
	"github.com/mysql-operator/mysql-operator/devcluster/cluster/pki"
	"github.com/mysql-operator/mysql-operator/devcluster/cluster/render"
)

// startNodes starts all nodes that do not run, ends partitions, and waits until
// every node is Ready.
func (l *launcher) startNodes(ctx context.Context) error {
	if l.state.Network == nil {
		return nil
	}
	pack := []string{l.cluster.Kubernetes, "image-pack", "--store=" + l.cluster.Images(), "--binary=" + l.binaries.Pause, "--name=" + render.SandboxImage}
	if err := machine.Run(ctx, pack...); err != nil {
		return fmt.Errorf("make the pods' sandbox image: %w", err)
	}
	surveyed, err := l.survey()
	if err != nil {
		return err
	}
	nodes := l.nodes(surveyed)
	for _, n := range nodes {
		if err := l.configureNode(n); err != nil {
			return err
		}
	}
	if err := each(nodes, func(n render.Node) error { return l.bringUp(ctx, n) }); err != nil {
		return err
	}
	return l.routeServices(ctx)
}

// nodes returns all nodes of the cluster.
func (l *launcher) nodes(m render.Machine) []render.Node {
	var list []render.Node
	for j := 1; j <= l.state.Nodes; j++ {
		list = append(list, render.Node{Node: l.state.Network.Node(j), Cluster: l.cluster, Machine: m})
	}
	return list
}

// configureNode writes the node's certificates and configuration.
func (l *launcher) configureNode(n render.Node) error {
	if err := pki.Ensure(l.cluster.PKI(), n.Certificates(), time.Now()); err != nil {
		return err
	}
	if err := l.writeKubeconfig(l.cluster.KubeconfigFile(n.Name), n.Name); err != nil {
		return err
	}
	for path, content := range n.Files() {
		if err := atomicfile.Write(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	for _, dir := range []string{n.Volumes(), filepath.Join(n.Dir(), "log")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make folder of %s: %w", n.Name, err)
		}
	}
	return nil
}

// bringUp starts the node, or ends its partition if it already runs, and waits until it is Ready.
func (l *launcher) bringUp(ctx context.Context, n render.Node) error {
	started, err := l.keeper.Ensure(ctx, l.nodeSpec(ctx, n), 0)
	if err != nil {
		return err
	}
	process, _, err := l.keeper.Find(n.Name)
	if err != nil {
		return err
	}
	if !started {
		if err := errors.Join(machine.ReconnectNode(ctx, *l.state.Network, n.Node), machine.Heal(ctx, process.PID)); err != nil {
			return err
		}
	}
	ready := func(ctx context.Context) error { return l.nodeReady(ctx, n.Name, process.Started) }
	if err := l.await(ctx, n.Name, []string{n.Name}, ready); err != nil {
		return fmt.Errorf("%w%s", err, daemon.Tail(filepath.Join(l.folder.logs(), n.Name+"-kubelet.log")))
	}
	l.say("%s Ready after %s", n.Name, l.elapsed())
	return nil
}

// nodeSpec returns the spec of the node's first process. The launcher connects the node to the network before that process starts others.
func (l *launcher) nodeSpec(ctx context.Context, n render.Node) daemon.Spec {
	files := n.Files()
	inputs := make([]string, 0, len(files))
	for path, content := range files {
		inputs = append(inputs, path+"\n"+content)
	}
	return daemon.Spec{
		Name:       n.Name,
		Args:       []string{l.cluster.Kubernetes, "node", "--config=" + n.ConfigFile()},
		Env:        render.Environment(),
		Inputs:     inputs,
		Log:        filepath.Join(l.folder.logs(), n.Name+".log"),
		OwnMachine: true,
		Ready: func(pid int, input *os.File) error {
			if err := cleanCgroup(ctx, n.Cgroup()); err != nil {
				return err
			}
			if err := machine.ConnectNode(ctx, *l.state.Network, n.Node, pid); err != nil {
				return err
			}
			_, err := input.WriteString("\n")
			return err
		},
	}
}

// cleanCgroup creates the node's control group again. Groups that an earlier run left, without processes, would cost kubelet 3 seconds
// each.
func cleanCgroup(ctx context.Context, group string) error {
	if err := machine.RemoveCgroup(ctx, group); err != nil {
		return err
	}
	return machine.EnsureCgroup(group)
}

// nodeReady returns an error unless the node has reported Ready since it was started. A killed node counts as Ready until Kubernetes misses
// its heartbeat.
func (l *launcher) nodeReady(ctx context.Context, name string, started time.Time) error {
	var node struct {
		Status struct {
			Conditions []condition `json:"conditions"`
		} `json:"status"`
	}
	if err := l.client.Get(ctx, "/api/v1/nodes/"+name, &node); err != nil {
		return err
	}
	for _, c := range node.Status.Conditions {
		if c.Type != "Ready" {
			continue
		}
		// The API server stores whole seconds.
		if c.Status == "True" && !c.LastHeartbeatTime.Before(started.Truncate(time.Second)) {
			return nil
		}
		return fmt.Errorf("%s is not Ready: %s", name, c.Message)
	}
	return fmt.Errorf("%s has not reported yet", name)
}

type condition struct {
	Type              string    `json:"type"`
	Status            string    `json:"status"`
	Message           string    `json:"message"`
	LastHeartbeatTime time.Time `json:"lastHeartbeatTime"`
}

// each calls do for all nodes concurrently and joins the errors.
func each(nodes []render.Node, do func(render.Node) error) error {
	failures := make([]error, len(nodes))
	var all sync.WaitGroup
	for i, n := range nodes {
		all.Go(func() { failures[i] = do(n) })
	}
	all.Wait()
	return errors.Join(failures...)
}

// node finds a node of the cluster by name.
func (l *launcher) node(name string) (render.Node, error) {
	if l.state.Network == nil {
		return render.Node{}, errors.New("find node: the cluster is a control plane alone")
	}
	surveyed, err := l.survey()
	if err != nil {
		return render.Node{}, err
	}
	var known []string
	for _, n := range l.nodes(surveyed) {
		if n.Name == name {
			return n, nil
		}
		known = append(known, n.Name)
	}
	return render.Node{}, fmt.Errorf("find node %q: the cluster has %s", name, strings.Join(known, ", "))
}
