package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster"
)

// notInShortMode is for tests that start a real cluster. If Kubernetes has not been built yet, they build it, which takes minutes: a test
// that skipped instead would test nothing on a new machine.
func notInShortMode(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a real cluster: not in short mode")
	}
}

func TestControlPlaneOnly(t *testing.T) {
	t.Parallel()
	notInShortMode(t)
	dir := t.TempDir()
	c := up(t, cluster.Options{Dir: dir, ControlPlaneOnly: true})

	c.kubectl(t, "create", "namespace", "shop")
	c.kubectl(t, "create", "configmap", "prices", "--namespace=shop")
	// Only with the controller manager does this succeed.
	c.kubectl(t, "delete", "namespace", "shop", "--timeout=30s")

	if c.Kubeconfig != filepath.Join(dir, "kubeconfig") {
		t.Errorf("kubeconfig at %s", c.Kubeconfig)
	}
	writes := auditedWrites(t, c.AuditLog, "configmaps", "prices")
	if len(writes) == 0 || writes[0] != "create" {
		t.Errorf("the audit log has %v for the ConfigMap that was created", writes)
	}
	if again := up(t, cluster.Options{Dir: dir, ControlPlaneOnly: true}); again.Kubeconfig != c.Kubeconfig {
		t.Errorf("a second start moved the kubeconfig to %s", again.Kubeconfig)
	}
	if _, err := cluster.Up(t.Context(), cluster.Options{Dir: dir, Nodes: 1}); err == nil {
		t.Error("a control plane alone was turned into a cluster with nodes")
	}
}

// A component that died is started again, without loss of data.
func TestUpHeals(t *testing.T) {
	t.Parallel()
	notInShortMode(t)
	dir := t.TempDir()
	o := cluster.Options{Dir: dir, ControlPlaneOnly: true, WithoutControllerManager: true}
	c := up(t, o)
	c.kubectl(t, "create", "configmap", "kept", "--namespace=kube-system")
	killAll(t, dir)
	c = up(t, o)
	c.kubectl(t, "get", "configmap", "kept", "--namespace=kube-system")
	for _, line := range status(t, dir) {
		if line.State != "running" {
			t.Errorf("%s is %s", line.Name, line.State)
		}
	}
}

func TestDownWithoutClusterIsFine(t *testing.T) {
	t.Parallel()
	if err := cluster.Down(t.Context(), t.TempDir(), nil); err != nil {
		t.Error(err)
	}
}

// running is a cluster that a test started.
type running struct{ *cluster.Cluster }

// up starts a cluster that is taken down at the end of the test.
func up(t *testing.T, o cluster.Options) running {
	t.Helper()
	o.Progress = t.Output()
	t.Cleanup(func() {
		// The test's own context has already ended.
		if err := cluster.Down(context.WithoutCancel(t.Context()), o.Dir, t.Output()); err != nil {
			t.Errorf("take cluster down: %v", err)
		}
	})
	c, err := cluster.Up(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return running{c}
}

// killAll kills every program of the cluster and waits until all have ended: a killed process still exists for a moment.
func killAll(t *testing.T, dir string) {
	t.Helper()
	for _, line := range status(t, dir) {
		if line.PID <= 0 { // kill(2) would signal the test's own process group
			t.Fatalf("%s is %s before it is killed; its log is %s", line.Name, line.State, line.Log)
		}
		process, err := os.FindProcess(line.PID)
		if err != nil {
			t.Fatalf("find %s: %v", line.Name, err)
		}
		if err := process.Kill(); err != nil {
			t.Fatalf("kill %s: %v", line.Name, err)
		}
	}
	eventually(t, "every program has ended", 30*time.Second, func() error {
		for _, line := range status(t, dir) {
			if line.State != "dead" {
				return fmt.Errorf("%s is %s", line.Name, line.State)
			}
		}
		return nil
	})
}

func status(t *testing.T, dir string) []cluster.Line {
	t.Helper()
	lines, err := cluster.Status(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// kubectl runs kubectl, which must succeed.
func (c running) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	output, err := c.try(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

// try runs kubectl, which may fail.
func (c running) try(t *testing.T, args ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), c.Kubectl, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "NO_PROXY=*")
	output, err := command.Output()
	if failure := (*exec.ExitError)(nil); errors.As(err, &failure) {
		err = fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, failure.Stderr)
	}
	return strings.TrimSpace(string(output)), err
}

// auditedWrites returns the verbs of the writes to an object, oldest first.
func auditedWrites(t *testing.T, log, resource, name string) []string {
	t.Helper()
	content, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var verbs []string
	for line := range strings.Lines(string(content)) {
		if !strings.HasSuffix(line, "\n") {
			continue // the API server is still writing it
		}
		var event struct {
			Verb      string `json:"verb"`
			ObjectRef struct {
				Resource string `json:"resource"`
				Name     string `json:"name"`
			} `json:"objectRef"`
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("audit log: %v", err)
		}
		if event.ObjectRef.Resource == resource && event.ObjectRef.Name == name {
			verbs = append(verbs, event.Verb)
		}
	}
	return verbs
}

// eventually calls ask until it returns no error, for at most the limit.
func eventually(t *testing.T, what string, limit time.Duration, ask func() error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %v", what, limit, err)
		}
		<-tick.C
	}
}
