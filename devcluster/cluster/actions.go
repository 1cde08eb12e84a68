package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster/filelock"
	"github.com/mysql-operator/mysql-operator/devcluster/cluster/machine"
	"github.com/mysql-operator/mysql-operator/devcluster/cluster/plan"
	"github.com/mysql-operator/mysql-operator/devcluster/cluster/render"
)

// withCluster runs an action on the cluster in the folder. A lock keeps other launchers from changing the cluster meanwhile.
func withCluster(ctx context.Context, dir string, progress io.Writer, action func(*launcher) error) error {
	o, err := Options{Dir: dir, Progress: progress}.complete()
	if err != nil {
		return err
	}
	f := folder(o.Dir)
	if _, err := f.existing(); err != nil {
		return err
	}
	unlock, err := filelock.Acquire(ctx, f.lock(), func() { fmt.Fprintln(o.Progress, "waiting for another run on this cluster to finish") })
	if err != nil {
		return err
	}
	defer unlock()
	// The other run may have changed the cluster, or taken it down.
	s, err := f.existing()
	if err != nil {
		return err
	}
	b, err := binaries(ctx, o)
	if err != nil {
		return err
	}
	l := &launcher{options: o, folder: f, keeper: f.keeper(), binaries: b, begun: time.Now(), state: s}
	l.cluster = f.rendered(s, b.Kubernetes)
	if err := l.checkNetwork(ctx); err != nil {
		return err
	}
	return action(l)
}

// Load loads the images of a docker-archive, as "docker save" and "buildah push IMAGE docker-archive:FILE" write it, on every node. The
// images get the names in the archive and the extra ones; Load returns their full names. Pods pull them as if from the registry in their
// name, so every imagePullPolicy works.
func Load(ctx context.Context, dir, archive string, extra []string, progress io.Writer) ([]string, error) {
	var loaded []string
	err := withCluster(ctx, dir, progress, func(l *launcher) error {
		if l.state.Network == nil {
			return errors.New("load images: a control plane alone has no nodes to load them on: start a cluster with nodes")
		}
		path, err := filepath.Abs(archive)
		if err != nil {
			return fmt.Errorf("load images: %w", err)
		}
		command := append([]string{l.cluster.Kubernetes, "image-load", "--store=" + l.cluster.Images(), path}, extra...)
		output, err := machine.Output(ctx, "", command...)
		if err != nil {
			return fmt.Errorf("load images: %w", err)
		}
		loaded = strings.Fields(output)
		return l.pullEverywhere(ctx, loaded)
	})
	return loaded, err
}

// pullEverywhere pulls the images on every running node, so that the first pod that uses them does not wait. Nodes that start later pull
// them when needed.
func (l *launcher) pullEverywhere(ctx context.Context, refs []string) error {
	surveyed, err := l.survey()
	if err != nil {
		return err
	}
	return each(l.nodes(surveyed), func(n render.Node) error {
		process, alive, err := l.keeper.Find(n.Name)
		if err != nil || !alive {
			return err
		}
		for _, ref := range refs {
			pull := []string{
				"ctr", "--namespace", "k8s.io", "--address", render.ContainerdSocket, "images", "pull",
				"--hosts-dir", n.RegistryHostsDir(), "--snapshotter", surveyed.Snapshotter, ref,
			}
			if err := machine.Run(ctx, machine.Inside(process.PID, pull...)...); err != nil {
				return fmt.Errorf("load %s on %s: %w", ref, n.Name, err)
			}
		}
		l.say("loaded %s on %s", strings.Join(refs, ", "), n.Name)
		return nil
	})
}

// KillNode kills a node as a power failure would: kubelet, containerd and every process of its pods end at once. Data on disk stays.
// Kubernetes notices after its usual 50 seconds without a heartbeat.
func KillNode(ctx context.Context, dir, name string, progress io.Writer) error {
	return withCluster(ctx, dir, progress, func(l *launcher) error {
		n, err := l.node(name)
		if err != nil {
			return err
		}
		if err := l.keeper.Stop(ctx, name, 0); err != nil {
			return err
		}
		l.say("killed %s", name)
		if err := machine.DisconnectNode(ctx, n.Node); err != nil {
			return err
		}
		if err := machine.RemoveCgroup(ctx, n.Cgroup()); err != nil {
			return err
		}
		return l.routeServices(ctx)
	})
}

// StartNode starts a node that was killed, with its pods' volumes unchanged. It returns when the node is Ready.
func StartNode(ctx context.Context, dir, name string, progress io.Writer) error {
	return withCluster(ctx, dir, progress, func(l *launcher) error {
		n, err := l.node(name)
		if err != nil {
			return err
		}
		if err := l.connect(); err != nil {
			return err
		}
		if err := l.configureNode(n); err != nil {
			return err
		}
		if err := l.bringUp(ctx, n); err != nil {
			return err
		}
		return l.routeServices(ctx)
	})
}

// PartitionNode cuts the network between a node, with its pods, and the given other nodes. If none are given, it cuts the node off from
// everything, including the control plane. Packets are dropped without an error. It replaces an earlier partition of the node.
func PartitionNode(ctx context.Context, dir, name string, from []string, progress io.Writer) error {
	return withCluster(ctx, dir, progress, func(l *launcher) error {
		var others []plan.Node
		for _, other := range from {
			n, err := l.node(other)
			if err != nil {
				return err
			}
			others = append(others, n.Node)
		}
		pid, err := l.running(name)
		if err != nil {
			return err
		}
		return machine.Partition(ctx, pid, others)
	})
}

// HealNode ends a node's partition.
func HealNode(ctx context.Context, dir, name string, progress io.Writer) error {
	return withCluster(ctx, dir, progress, func(l *launcher) error {
		pid, err := l.running(name)
		if err != nil {
			return err
		}
		return machine.Heal(ctx, pid)
	})
}

// NodePID returns the process number, on this machine, of a node's first process. Tools that join its namespaces see the node from inside.
func NodePID(ctx context.Context, dir, name string) (int, error) {
	var pid int
	err := withCluster(ctx, dir, nil, func(l *launcher) (err error) {
		pid, err = l.running(name)
		return err
	})
	return pid, err
}

// DNSPID returns the process number of the cluster's DNS, which runs on this machine, beside the API server.
func DNSPID(ctx context.Context, dir string) (int, error) {
	var pid int
	err := withCluster(ctx, dir, nil, func(l *launcher) error {
		process, alive, err := l.keeper.Find(dnsComponent)
		if err == nil && !alive {
			err = fmt.Errorf("find %s: it is not running: start the cluster again with up", dnsComponent)
		}
		pid = process.PID
		return err
	})
	return pid, err
}

// Inside returns the command line that runs a command in a node's namespaces, as if on the node.
func Inside(ctx context.Context, dir, node string, command []string) ([]string, error) {
	pid, err := NodePID(ctx, dir, node)
	if err != nil {
		return nil, err
	}
	return machine.Inside(pid, command...), nil
}

// running returns the number of the first process of a node, or an error if the node does not run.
func (l *launcher) running(name string) (int, error) {
	if _, err := l.node(name); err != nil {
		return 0, err
	}
	process, alive, err := l.keeper.Find(name)
	if err != nil {
		return 0, err
	}
	if !alive {
		return 0, fmt.Errorf("find %s: it is not running: start it with start-node", name)
	}
	return process.PID, nil
}

// routeServices routes cluster IPs from this machine through the first node that runs.
func (l *launcher) routeServices(ctx context.Context) error {
	for j := 1; j <= l.state.Nodes; j++ {
		n := l.state.Network.Node(j)
		if _, alive, err := l.keeper.Find(n.Name); err != nil || alive {
			return errors.Join(err, machine.RouteServices(ctx, *l.state.Network, n))
		}
	}
	return nil
}

// Kubectl returns the command line of a kubectl for the cluster in the folder, and the environment it needs.
func Kubectl(ctx context.Context, dir string, args []string) (command, environ []string, err error) {
	o, err := Options{Dir: dir, Progress: os.Stderr}.complete()
	if err != nil {
		return nil, nil, err
	}
	kubeconfig, err := Kubeconfig(o.Dir)
	if err != nil {
		return nil, nil, err
	}
	b, err := binaries(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	link := filepath.Join(filepath.Dir(b.Kubernetes), "kubectl")
	return append([]string{link}, args...), append(os.Environ(), "KUBECONFIG="+kubeconfig), nil
}
