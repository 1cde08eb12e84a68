package cluster

import (
	"context"
	"errors"
	"os"
	"runtime"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster/plan"
)

// elsewhere is the way out where no dev cluster can run.
const elsewhere = "every other target works with any cluster: set KUBECONFIG to its kubeconfig"

// possible tells, in one sentence, what is missing to run the cluster here.
func possible(o Options) error {
	switch {
	case runtime.GOOS != "linux":
		return errors.New("start cluster: a dev cluster needs Linux, and this is " + runtime.GOOS + "; " + elsewhere)
	case !o.ControlPlaneOnly && os.Geteuid() != 0:
		return errors.New("start cluster: nodes need root, for namespaces, mounts and network: run it with sudo, or use --control-plane-only; " + elsewhere)
	}
	return nil
}

func (l *launcher) chooseNetwork() (plan.Network, error)     { return plan.Network{}, errors.New("todo") }
func (l *launcher) prepareMachine(ctx context.Context) error { return nil }
func (l *launcher) startNodes(ctx context.Context) error     { return nil }
func (f folder) removeNetwork(ctx context.Context) error     { return nil }
