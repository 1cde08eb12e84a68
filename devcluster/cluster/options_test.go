package cluster

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster/plan"
)

func TestComplete(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		options Options
		says    string // part of the error, empty for none
	}{
		"no options":                       {options: Options{}},
		"three nodes":                      {options: Options{Nodes: 3}},
		"more nodes than addresses":        {options: Options{Nodes: 16}, says: "from 1 to 15"},
		"a negative number":                {options: Options{Nodes: -1}, says: "from 1 to 15"},
		"no nodes, and three":              {options: Options{ControlPlaneOnly: true, Nodes: 3}, says: "drop one"},
		"nodes without controller manager": {options: Options{WithoutControllerManager: true}, says: "control plane alone"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.options.Dir = t.TempDir()
			_, err := tc.options.complete()
			switch {
			case tc.says == "" && err != nil:
				t.Error(err)
			case tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)):
				t.Errorf("error %v, want one that says %q", err, tc.says)
			}
		})
	}
}

func TestImpossible(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		system  string
		root    bool
		options Options
		says    string
	}{
		"Linux and root":             {system: "linux", root: true},
		"a control plane needs none": {system: "linux", options: Options{ControlPlaneOnly: true}},
		"nodes do":                   {system: "linux", says: "need root"},
		"another system":             {system: "darwin", root: true, says: "needs Linux and this is darwin"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := checkRequirements(tc.system, tc.root, tc.options)
			if tc.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), "KUBECONFIG") {
				t.Errorf("error %v, want one that says %q and the way out", err, tc.says)
			}
		})
	}
}

func TestState(t *testing.T) {
	t.Parallel()
	network := &plan.Network{}
	tests := map[string]struct {
		there   state
		options Options
		want    state
		refused bool
	}{
		"asked for nothing new, nothing changes": {
			there: state{Network: network, Nodes: 3, ControllerManager: true, Scheduler: true}, options: Options{},
			want: state{Network: network, Nodes: 3, ControllerManager: true, Scheduler: true},
		},
		"nodes are added": {
			there: state{Network: network, Nodes: 1, ControllerManager: true, Scheduler: true}, options: Options{Nodes: 3},
			want: state{Network: network, Nodes: 3, ControllerManager: true, Scheduler: true},
		},
		"a cluster is never shrunk": {
			there: state{Network: network, Nodes: 3, ControllerManager: true, Scheduler: true}, options: Options{Nodes: 1},
			want: state{Network: network, Nodes: 3, ControllerManager: true, Scheduler: true},
		},
		"a control plane alone gets what it was started without": {
			there: state{}, options: Options{ControlPlaneOnly: true, WithScheduler: true},
			want: state{ControllerManager: true, Scheduler: true},
		},
		"a control plane alone never gets nodes": {there: state{}, options: Options{Nodes: 1}, refused: true},
		"a cluster with nodes never loses them":  {there: state{Network: network}, options: Options{ControlPlaneOnly: true}, refused: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := tc.there.agree(tc.options, "/d")
			if (err != nil) != tc.refused {
				t.Fatalf("refused: %v", err)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tc.want, tc.there.changed(tc.options)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFreshState(t *testing.T) {
	t.Parallel()
	ports := plan.Ports{API: 1, EtcdClient: 2, EtcdPeer: 3}
	network := &plan.Network{Index: 4}
	got := []state{
		newState(Options{}, ports, network),
		newState(Options{ControlPlaneOnly: true, WithoutControllerManager: true, WithoutAuditLog: true}, ports, nil),
	}
	want := []state{
		{Ports: ports, Network: network, Nodes: 1, ControllerManager: true, Scheduler: true, Audit: true},
		{Ports: ports},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Kubeconfig must not return the kubeconfig of a real cluster: users of a dev cluster may break it.
func TestKubeconfigIsThatOfADevCluster(t *testing.T) {
	t.Parallel()
	f := folder(t.TempDir())
	if err := os.WriteFile(f.kubeconfig(), []byte("of a real cluster"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Kubeconfig(string(f)); !errors.Is(err, errNoCluster) {
		t.Errorf("%q, %v; want no cluster", got, err)
	}
	if err := f.save(state{}); err != nil {
		t.Fatal(err)
	}
	if got, err := Kubeconfig(string(f)); err != nil || got != f.kubeconfig() {
		t.Errorf("%q, %v; want %s", got, err, f.kubeconfig())
	}
}
