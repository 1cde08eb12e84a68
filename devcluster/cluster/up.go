package cluster

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster/api"
	"github.com/mysql-operator/mysql-operator/devcluster/cluster/build"
	"github.com/mysql-operator/mysql-operator/devcluster/cluster/daemon"
	"github.com/mysql-operator/mysql-operator/devcluster/cluster/filelock"
	"github.com/mysql-operator/mysql-operator/devcluster/cluster/plan"
	"github.com/mysql-operator/mysql-operator/devcluster/cluster/render"
)

// portAttempts is how often a new control plane may find a port taken by
// another program between choosing it and listening on it.
const portAttempts = 3

// errPortTaken means that a component found its port in use.
var errPortTaken = errors.New("port already in use")

// launcher is one run of Up.
type launcher struct {
	options  Options
	folder   folder
	keeper   daemon.Keeper
	binaries build.Binaries
	begun    time.Time

	state   state
	cluster render.Cluster
	client  *api.Client
}

// Up starts a cluster, or completes one that is there: what died is started
// again, what is missing is added, what runs is left alone. It returns when the
// control plane is ready and every node is Ready.
func Up(ctx context.Context, o Options) (*Cluster, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	if err := possible(o); err != nil {
		return nil, err
	}
	binaries, err := binaries(ctx, o)
	if err != nil {
		return nil, err
	}
	f := folder(o.Dir)
	unlock, err := filelock.Acquire(ctx, f.lock(), func() { fmt.Fprintln(o.Progress, "waiting for another run on this cluster to finish") })
	if err != nil {
		return nil, fmt.Errorf("start cluster: %w", err)
	}
	defer unlock()
	l := &launcher{options: o, folder: f, keeper: f.keeper(), binaries: binaries, begun: time.Now()}
	if err := l.run(ctx); err != nil {
		return nil, err
	}
	return l.result(), nil
}

// binaries builds Kubernetes if need be and puts kubectl beside it.
func binaries(ctx context.Context, o Options) (build.Binaries, error) {
	root, err := repository()
	if err != nil {
		return build.Binaries{}, err
	}
	out := filepath.Join(root, ".dev", "bin")
	b, err := build.Ensure(ctx, filepath.Join(root, "devcluster", "kubernetes"), out, o.Progress)
	if err != nil {
		return b, err
	}
	link := filepath.Join(out, "kubectl")
	if target, err := os.Readlink(link); err == nil && target == filepath.Base(b.Kubernetes) {
		return b, nil
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return b, fmt.Errorf("link kubectl: %w", err)
	}
	if err := os.Symlink(filepath.Base(b.Kubernetes), link); err != nil && !errors.Is(err, fs.ErrExist) {
		return b, fmt.Errorf("link kubectl: %w", err)
	}
	return b, nil
}

func (l *launcher) run(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		isNew, err := l.decide(ctx)
		if err != nil {
			return err
		}
		err = l.start(ctx)
		if err == nil || !isNew || attempt == portAttempts || !errors.Is(err, errPortTaken) {
			return err
		}
		l.say("a port was taken by another program meanwhile, choosing others")
		if err := l.folder.remove(ctx, l.options.Progress); err != nil {
			return err
		}
	}
}

// decide reads the cluster's state or makes that of a new one.
func (l *launcher) decide(ctx context.Context) (isNew bool, err error) {
	s, found, err := l.folder.load()
	if err != nil {
		return false, err
	}
	if !found {
		return true, l.plan(ctx)
	}
	if err := s.agree(l.options, l.options.Dir); err != nil {
		return false, err
	}
	return false, l.settle(s.changed(l.options))
}

// settle takes the state for this cluster's, and writes it down.
func (l *launcher) settle(s state) error {
	l.state = s
	l.cluster = l.folder.rendered(s, l.binaries.Kubernetes)
	return l.folder.save(s)
}

// plan settles the state of a new cluster and clears away an earlier one's logs.
func (l *launcher) plan(ctx context.Context) error {
	if err := l.folder.removeLogs(); err != nil {
		return err
	}
	ports, err := plan.ChoosePorts(startingPoint(l.options.Dir), func(port int) bool { return portFree(ctx, port) })
	if err != nil {
		return err
	}
	if l.options.ControlPlaneOnly {
		return l.settle(fresh(l.options, ports, nil))
	}
	// The cluster's own address is its alone, so the usual port is free there.
	ports.API = 6443
	return l.claimNetwork(ctx, ports)
}

// startingPoint differs between clusters started at once.
func startingPoint(dir string) uint32 {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(dir + strconv.Itoa(os.Getpid()) + time.Now().String()))
	return sum.Sum32()
}

func portFree(ctx context.Context, port int) bool {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

// start brings everything up, in the order in which it depends on each other.
func (l *launcher) start(ctx context.Context) error {
	if err := l.prepareMachine(ctx); err != nil {
		return err
	}
	if err := l.configure(); err != nil {
		return err
	}
	if err := l.startControlPlane(ctx); err != nil {
		return err
	}
	l.say("control plane ready in %s", l.elapsed())
	if err := l.startNodes(ctx); err != nil {
		return err
	}
	l.say("KUBECONFIG=%s", l.folder.kubeconfig())
	return nil
}

// result is what callers of Up need to use the cluster.
func (l *launcher) result() *Cluster {
	return &Cluster{
		Dir:        l.options.Dir,
		Kubeconfig: l.folder.kubeconfig(),
		AuditLog:   l.cluster.AuditLog,
		Kubectl:    filepath.Join(filepath.Dir(l.binaries.Kubernetes), "kubectl"),
	}
}

func (l *launcher) say(format string, args ...any) {
	fmt.Fprintf(l.options.Progress, format+"\n", args...)
}

func (l *launcher) elapsed() string {
	return time.Since(l.begun).Round(100 * time.Millisecond).String()
}

// await asks until the answer is yes. It gives up after readyLimit, or as soon
// as one of the programs it depends on has ended, and then tells why.
func (l *launcher) await(ctx context.Context, what string, programs []string, ask func(context.Context) error) error {
	limit := fmt.Errorf("not within %s", readyLimit)
	ctx, cancel := context.WithTimeoutCause(ctx, readyLimit, limit)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		answer := ask(ctx)
		if answer == nil {
			return nil
		}
		if err := l.dead(programs); err != nil {
			return fmt.Errorf("wait for %s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w: %w; logs are in %s", what, context.Cause(ctx), answer, l.folder.logs())
		case <-tick.C:
		}
	}
}

// dead tells about the first of the programs that no longer runs.
func (l *launcher) dead(programs []string) error {
	for _, name := range programs {
		p, alive, err := l.keeper.Find(name)
		if err != nil {
			return err
		}
		if alive {
			continue
		}
		tail := daemon.Tail(p.Log)
		if strings.Contains(tail, "address already in use") {
			return fmt.Errorf("%s ended: %w%s", name, errPortTaken, tail)
		}
		return fmt.Errorf("%s ended%s", name, tail)
	}
	return nil
}
