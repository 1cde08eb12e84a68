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

// portAttempts is how often Up tries other ports for a new control plane, if another program takes a port between its choice and its use.
const portAttempts = 3

// errPortTaken means that a component found its port in use.
var errPortTaken = errors.New("port already in use")

// launcher is one run of Up, or of another action on a cluster.
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

// Up starts a cluster, or completes an existing one: it starts dead components, adds missing ones, and leaves running ones alone. It
// returns when the control plane is ready and every node is Ready.
func Up(ctx context.Context, o Options) (*Cluster, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	if err := checkMachine(o); err != nil {
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

// binaries builds Kubernetes if needed, and links kubectl in the same folder.
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
		l.say("another program has taken a port, choosing other ports")
		if err := l.folder.remove(ctx, l.options.Progress); err != nil {
			return err
		}
	}
}

// decide reads the state of an existing cluster, or creates that of a new one.
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

// settle sets the state of this cluster and saves it.
func (l *launcher) settle(s state) error {
	l.state = s
	l.cluster = l.folder.rendered(s, l.binaries.Kubernetes)
	return l.folder.save(s)
}

// plan settles the state of a new cluster and removes the logs of an earlier one.
func (l *launcher) plan(ctx context.Context) error {
	if err := l.folder.removeLogs(); err != nil {
		return err
	}
	ports, err := plan.ChoosePorts(startingPoint(l.options.Dir), func(port int) bool { return portFree(ctx, port) })
	if err != nil {
		return err
	}
	if l.options.ControlPlaneOnly {
		return l.settle(newState(l.options, ports, nil))
	}
	// Only this cluster uses its address, so the usual port is free there.
	ports.API = 6443
	return l.claimNetwork(ctx, ports)
}

// startingPoint returns a number that differs between clusters that start at the same time.
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

// start starts everything in the order of its dependencies.
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

// result returns the values that callers of Up need to use the cluster.
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

// await calls ask until it succeeds. It fails after readyLimit, or as soon as one of the programs has ended, with the reason.
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

// dead returns an error about the first of the programs that no longer runs.
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
