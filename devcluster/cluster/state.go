package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster/atomicfile"
	"github.com/mysql-operator/mysql-operator/devcluster/cluster/daemon"
	"github.com/mysql-operator/mysql-operator/devcluster/cluster/plan"
	"github.com/mysql-operator/mysql-operator/devcluster/cluster/render"
)

// state has the decisions that were made when the cluster was created and must not change while it exists. It is saved before any component
// starts.
type state struct {
	Ports             plan.Ports    `json:"ports"`
	Network           *plan.Network `json:"network,omitempty"` // nil: a control plane alone
	Nodes             int           `json:"nodes"`
	ControllerManager bool          `json:"controllerManager"`
	Scheduler         bool          `json:"scheduler"`
	Audit             bool          `json:"audit"`
}

// folder is a cluster's folder; its methods return the paths in it.
type folder string

func (f folder) files() string      { return filepath.Join(string(f), "cluster") }
func (f folder) logs() string       { return filepath.Join(string(f), "logs") }
func (f folder) kubeconfig() string { return filepath.Join(string(f), "kubeconfig") }
func (f folder) auditLog() string   { return filepath.Join(string(f), "audit.log") }
func (f folder) lock() string       { return filepath.Join(string(f), "cluster.lock") }
func (f folder) stateFile() string  { return filepath.Join(f.files(), "state.json") }
func (f folder) keeper() daemon.Keeper {
	return daemon.Keeper{Dir: filepath.Join(f.files(), "run")}
}

// errDamaged means that the state file does not have the format that save writes.
var errDamaged = errors.New("it is damaged: take the cluster down and start it again")

// load reads the cluster's state; false if there is no cluster.
func (f folder) load() (state, bool, error) {
	var s state
	content, err := os.ReadFile(f.stateFile())
	if errors.Is(err, fs.ErrNotExist) {
		return s, false, nil
	}
	if err != nil {
		return s, false, fmt.Errorf("read cluster state: %w", err)
	}
	if err := json.Unmarshal(content, &s); err != nil {
		return s, false, fmt.Errorf("read cluster state %s: %w (%w)", f.stateFile(), errDamaged, err)
	}
	return s, true, nil
}

// errNoCluster means that the folder holds no cluster.
var errNoCluster = errors.New(`no cluster here: start one with "go run ./devcluster up"`)

// existing reads the state of a cluster, and returns an error if there is none.
func (f folder) existing() (state, error) {
	s, found, err := f.load()
	if err == nil && !found {
		err = fmt.Errorf("find the cluster in %s: %w", string(f), errNoCluster)
	}
	return s, err
}

func (f folder) save(s state) error {
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("write cluster state: %w", err)
	}
	return atomicfile.Write(f.stateFile(), content, 0o644)
}

// rendered returns the cluster in the form that its components' configuration needs.
func (f folder) rendered(s state, kubernetes string) render.Cluster {
	c := render.Cluster{Files: f.files(), Logs: f.logs(), Kubernetes: kubernetes, Ports: s.Ports, Network: s.Network}
	if s.Audit {
		c.AuditLog = f.auditLog()
	}
	return c
}

// agree checks that the options fit the existing cluster.
func (s state) agree(o Options, dir string) error {
	alone := s.Network == nil
	switch {
	case alone && !o.ControlPlaneOnly:
		return fmt.Errorf("start cluster: the existing one in %s is a control plane alone: take it down first, or use another folder", dir)
	case !alone && o.ControlPlaneOnly:
		return fmt.Errorf("start cluster: the existing one in %s has nodes: take it down first, or use another folder", dir)
	}
	return nil
}

// changed returns the state with the additions of the options.
func (s state) changed(o Options) state {
	s.Nodes = max(s.Nodes, o.Nodes)
	s.ControllerManager = s.ControllerManager || !o.WithoutControllerManager
	s.Scheduler = s.Scheduler || o.WithScheduler
	return s
}

// newState returns the state of a new cluster.
func newState(o Options, ports plan.Ports, network *plan.Network) state {
	s := state{Ports: ports, Network: network, ControllerManager: !o.WithoutControllerManager, Scheduler: o.WithScheduler || network != nil, Audit: !o.WithoutAuditLog}
	if network != nil {
		s.Nodes = max(o.Nodes, 1)
	}
	return s
}
