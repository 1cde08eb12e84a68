package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster/filelock"
	"github.com/mysql-operator/mysql-operator/devcluster/cluster/machine"
	"github.com/mysql-operator/mysql-operator/devcluster/cluster/plan"
	"github.com/mysql-operator/mysql-operator/devcluster/cluster/render"
)

// elsewhere is the way out where no dev cluster can run.
const elsewhere = "every other command works with any cluster: set KUBECONFIG to its kubeconfig"

// possible tells, in one sentence, what is missing to run the cluster here.
func possible(o Options) error {
	return impossible(runtime.GOOS, os.Geteuid() == 0, o)
}

func impossible(system string, root bool, o Options) error {
	switch {
	case system != "linux":
		return fmt.Errorf("start cluster: a dev cluster needs Linux and this is %s; %s", system, elsewhere)
	case !o.ControlPlaneOnly && !root:
		return errors.New("start cluster: nodes need root, for namespaces, mounts and a network of their own: run it as root or with sudo, or use --control-plane-only; " + elsewhere)
	}
	return nil
}

// networksLock keeps clusters that start at once from choosing the same network.
const networksLock = "/run/devcluster.lock"

// chooseNetwork takes the first network that this machine does not use, by
// making its bridge: from then on everybody sees it in use.
func (l *launcher) chooseNetwork(ctx context.Context) (plan.Network, error) {
	if err := l.install(ctx); err != nil {
		return plan.Network{}, err
	}
	unlock, err := filelock.Acquire(ctx, networksLock, nil)
	if err != nil {
		return plan.Network{}, err
	}
	defer unlock()
	taken, err := machine.PrefixesInUse()
	if err != nil {
		return plan.Network{}, err
	}
	network, err := plan.Choose(taken)
	if err != nil {
		return plan.Network{}, err
	}
	return network, machine.EnsureBridge(ctx, network)
}

func (l *launcher) install(ctx context.Context) error {
	if err := machine.Install(ctx, l.options.Progress); err != nil {
		return fmt.Errorf("%w; %s", err, elsewhere)
	}
	return nil
}

// prepareMachine gives the machine what nodes need.
func (l *launcher) prepareMachine(ctx context.Context) error {
	if l.state.Network == nil {
		return nil
	}
	if err := l.install(ctx); err != nil {
		return err
	}
	if err := machine.EnsureBridge(ctx, *l.state.Network); err != nil {
		return err
	}
	return machine.AllowForwarding(ctx, *l.state.Network)
}

// survey finds out what the nodes' configuration depends on.
func (l *launcher) survey() (render.Machine, error) {
	containerd, err := exec.LookPath("containerd")
	if err != nil {
		return render.Machine{}, fmt.Errorf("find containerd: %w", err)
	}
	snapshotter, err := machine.Snapshotter(l.options.Dir)
	if err != nil {
		return render.Machine{}, err
	}
	return render.Machine{
		Containerd:  containerd,
		CNI:         machine.CNIFolder(),
		Snapshotter: snapshotter,
		OOMScore:    machine.OOMScore(),
		MaxFiles:    machine.MaxFiles(),
	}, nil
}

// removeNetwork removes the cluster's bridge and control groups.
func (f folder) removeNetwork(ctx context.Context) error {
	s, found, err := f.load()
	if err != nil || !found || s.Network == nil {
		return err
	}
	for j := 1; j <= s.Nodes; j++ {
		if err := machine.Unplug(ctx, s.Network.Node(j)); err != nil {
			return err
		}
	}
	if err := machine.ForgetForwarding(ctx, *s.Network); err != nil {
		return err
	}
	if err := machine.RemoveBridge(ctx, *s.Network); err != nil {
		return err
	}
	return machine.RemoveCgroup(ctx, "/"+s.Network.Bridge())
}
