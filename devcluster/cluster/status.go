package cluster

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster/api"
	"github.com/mysql-operator/mysql-operator/devcluster/cluster/machine"
	"github.com/mysql-operator/mysql-operator/devcluster/cluster/render"
)

// Line is one row of a cluster's status.
type Line struct {
	Name  string
	State string // running, dead, or for nodes the state that the API server has
	PID   int
	Since time.Time
	Log   string
}

// Kubeconfig returns the path of the administrator's kubeconfig of the cluster in the folder, or an error if there is none.
func Kubeconfig(dir string) (string, error) {
	o, err := Options{Dir: dir}.complete()
	if err != nil {
		return "", err
	}
	// Any folder may contain a file of that name.
	if _, err := folder(o.Dir).existing(); err != nil {
		return "", err
	}
	path := folder(o.Dir).kubeconfig()
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("find kubeconfig: the start of the cluster did not finish: run up again: %w", err)
	}
	return path, nil
}

// Status describes every program of the cluster in the folder. It changes nothing and does not wait.
func Status(ctx context.Context, dir string) ([]Line, error) {
	o, err := Options{Dir: dir}.complete()
	if err != nil {
		return nil, err
	}
	f := folder(o.Dir)
	s, err := f.existing()
	if err != nil {
		return nil, err
	}
	l := &launcher{options: o, folder: f, keeper: f.keeper(), state: s, cluster: f.rendered(s, "")}
	connectErr := l.connect()
	var lines []Line
	for _, name := range s.programs(l.cluster) {
		line, err := l.line(name)
		if err != nil {
			return nil, err
		}
		switch {
		case line.State != "running":
		case name == "kube-apiserver" && connectErr == nil && l.client.Ready(ctx) != nil:
			line.State = "running, not ready"
		case strings.HasPrefix(name, "node-") && connectErr == nil:
			line.State = l.nodeState(ctx, name, line)
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// programs returns the names of all programs of the cluster.
func (s state) programs(c render.Cluster) []string {
	list := append(names(s.servers(c)), names(s.clients(c))...)
	for j := 1; s.Network != nil && j <= s.Nodes; j++ {
		list = append(list, s.Network.Node(j).Name)
	}
	return list
}

func (l *launcher) line(name string) (Line, error) {
	process, alive, err := l.keeper.Find(name)
	if err != nil {
		return Line{}, err
	}
	if !alive {
		return Line{Name: name, State: "dead", Log: process.Log}, nil
	}
	return Line{Name: name, State: "running", PID: process.PID, Since: process.Started, Log: process.Log}, nil
}

func (l *launcher) nodeState(ctx context.Context, name string, line Line) string {
	state := "Ready"
	if err := l.nodeReady(ctx, name, line.Since); err != nil {
		state = "NotReady"
	}
	if cut, err := machine.Partitioned(ctx, line.PID); err == nil && cut {
		state += ", partitioned"
	}
	return state
}

// connect creates the launcher's client for the API server of an existing cluster.
func (l *launcher) connect() error {
	client, err := api.New(l.cluster.APIAddress().String(), l.cluster.PKI())
	l.client = client
	return err
}
