package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster/filelock"
	"github.com/mysql-operator/mysql-operator/devcluster/cluster/machine"
	"github.com/mysql-operator/mysql-operator/devcluster/cluster/plan"
	"github.com/mysql-operator/mysql-operator/devcluster/cluster/render"
)

// alternativeHint says what a user can do on a machine where no dev cluster can run.
const alternativeHint = "every other command works with any cluster: set KUBECONFIG to its kubeconfig"

// checkMachine returns an error with the missing requirement if the cluster cannot run here.
func checkMachine(o Options) error {
	return checkRequirements(runtime.GOOS, os.Geteuid() == 0, o)
}

func checkRequirements(system string, root bool, o Options) error {
	switch {
	case system != "linux":
		return fmt.Errorf("start cluster: a dev cluster needs Linux and this is %s; %s", system, alternativeHint)
	case !o.ControlPlaneOnly && !root:
		return errors.New("start cluster: nodes need root, for namespaces, mounts and a network of their own: run it as root or with sudo, or use --control-plane-only; " + alternativeHint)
	}
	return nil
}

// networksLock keeps clusters that start at the same time from choosing the same network.
const networksLock = "/run/devcluster.lock"

// claimNetwork gives a new cluster the first network that this machine does not use, by creating its bridge, which other clusters can see.
// It saves the choice first, so that Down finds the remains of an interrupted start.
func (l *launcher) claimNetwork(ctx context.Context, ports plan.Ports) error {
	if err := l.install(ctx); err != nil {
		return err
	}
	unlock, err := filelock.Acquire(ctx, networksLock, nil)
	if err != nil {
		return err
	}
	defer unlock()
	taken, err := machine.PrefixesInUse()
	if err != nil {
		return err
	}
	network, err := plan.Choose(taken)
	if err != nil {
		return err
	}
	if err := l.settle(newState(l.options, ports, &network)); err != nil {
		return err
	}
	return machine.EnsureBridge(ctx, network, l.options.Dir)
}

func (l *launcher) install(ctx context.Context) error {
	if err := machine.Install(ctx, l.options.Progress); err != nil {
		return fmt.Errorf("%w; %s", err, alternativeHint)
	}
	return nil
}

// prepareMachine installs programs and sets up the network for the nodes.
func (l *launcher) prepareMachine(ctx context.Context) error {
	if l.state.Network == nil {
		return nil
	}
	if err := l.install(ctx); err != nil {
		return err
	}
	unlock, err := filelock.Acquire(ctx, networksLock, nil)
	if err != nil {
		return err
	}
	defer unlock()
	if err := machine.EnsureBridge(ctx, *l.state.Network, l.options.Dir); err != nil {
		return err
	}
	return machine.AllowForwarding(ctx, *l.state.Network)
}

// checkNetwork returns an error if another cluster now has the network of this cluster's nodes.
func (l *launcher) checkNetwork(ctx context.Context) error {
	if l.state.Network == nil {
		return nil
	}
	found, err := machine.OwnershipOf(ctx, *l.state.Network)
	if err != nil {
		return err
	}
	if found.Foreign(l.options.Dir) {
		return fmt.Errorf("check the cluster in %s: its network belongs to the cluster in %s, which was started while this one was not running: take one of the two down", l.options.Dir, found.Owner)
	}
	return nil
}

// survey returns the properties of this machine that the nodes' configuration depends on.
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

// removeNetworks removes the cluster's interfaces, routes and firewall rules from this machine, and its control groups.
func (f folder) removeNetworks(ctx context.Context, progress io.Writer) error {
	s, _, err := f.load()
	if errors.Is(err, errDamaged) {
		fmt.Fprintf(progress, "%v: removing the networks that are marked as its own\n", err)
		s = state{}
	} else if err != nil {
		return err
	}
	for _, n := range plan.Networks() {
		found, err := machine.OwnershipOf(ctx, n)
		if err != nil {
			return err
		}
		recorded := s.Network != nil && *s.Network == n
		switch {
		case recorded && found.Foreign(string(f)):
			fmt.Fprintf(progress, "keeping %s: it now belongs to the cluster in %s\n", n.Bridge(), found.Owner)
		case recorded || found.Owned(string(f)):
			if err := removeNetwork(ctx, n); err != nil {
				return err
			}
		}
	}
	return nil
}

func removeNetwork(ctx context.Context, n plan.Network) error {
	for j := 1; j <= plan.MaxNodes; j++ {
		if err := machine.DisconnectNode(ctx, n.Node(j)); err != nil {
			return err
		}
	}
	if err := machine.ForgetForwarding(ctx, n); err != nil {
		return err
	}
	// The bridge, which names the owner, is removed last.
	if err := machine.RemoveCgroup(ctx, "/"+n.Bridge()); err != nil {
		return err
	}
	return machine.RemoveBridge(ctx, n)
}
