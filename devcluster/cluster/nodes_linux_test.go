package cluster_test

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster"
	"github.com/mysql-operator/mysql-operator/test/sample"
)

// TestNodes takes a cluster with two nodes through its life, from up to down.
//
//nolint:paralleltest // its steps build on each other
func TestNodes(t *testing.T) {
	notInShortMode(t)
	sample.Rotate(t, 0)
	if os.Geteuid() != 0 {
		t.Skip("nodes need root")
	}
	dir := t.TempDir()
	c := up(t, cluster.Options{Dir: dir, Nodes: 2})
	if _, err := cluster.Load(t.Context(), dir, probeArchive(t), []string{"probe"}, t.Output()); err != nil {
		t.Fatal(err)
	}
	c.kubectl(t, "apply", "-f", "testdata/web.yaml")
	c.kubectl(t, "rollout", "status", "statefulset/web", "--timeout=60s")

	t.Run("pods reach each other across nodes, by name and through Services", c.network)
	t.Run("logs and port-forward", c.logsAndForward)
	t.Run("an image that was not loaded is not found, at once", c.missingImage)
	t.Run("a volume grows", c.expansion)
	t.Run("a partition drops packets silently and can be ended", func(t *testing.T) { c.partition(t, dir) })
	t.Run("a killed node starts again with its data", func(t *testing.T) { c.killedNode(t, dir) })
	t.Run("up starts everything after a crash", func(t *testing.T) { c.crash(t, dir) })
	t.Run("the folder of a deleted claim is removed", func(t *testing.T) { c.reclaim(t, dir) })
	t.Run("down leaves nothing", func(t *testing.T) { nothingLeft(t, dir) })
}

func (c running) ask(t *testing.T, pod, url string) (string, error) {
	t.Helper()
	return c.try(t, "exec", pod, "--", "/probe", "get", url)
}

func (c running) network(t *testing.T) {
	nodes := strings.Fields(c.kubectl(t, "get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].spec.nodeName}"))
	if len(nodes) != 2 || nodes[0] == nodes[1] {
		t.Fatalf("the pods are on %v, want one on each node", nodes)
	}
	for _, pair := range [][2]string{{"web-0", "web-1"}, {"web-1", "web-0"}} {
		eventually(t, pair[0]+" reaches "+pair[1], 20*time.Second, func() error {
			got, err := c.ask(t, pair[0], "http://"+pair[1]+".web-pods:8080")
			if err == nil && got != pair[1] {
				err = fmt.Errorf("%q answered", got)
			}
			return err
		})
	}
	// Through the Service a pod reaches the other pod and itself.
	answered := map[string]bool{}
	eventually(t, "both pods answer through the Service", 20*time.Second, func() error {
		got, err := c.ask(t, "web-0", "http://web.default.svc.cluster.local")
		if err != nil {
			return err
		}
		if answered[got] = true; len(answered) < 2 {
			err = fmt.Errorf("only %s so far", got)
		}
		return err
	})
	eventually(t, "a name outside the cluster does not exist", 20*time.Second, func() error {
		out, err := c.ask(t, "web-0", "http://no-such-name.example.com")
		if err == nil || !strings.Contains(err.Error(), "no such host") {
			return fmt.Errorf("%q, %w", out, err)
		}
		return nil
	})
	address := c.kubectl(t, "get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")
	eventually(t, "this machine reaches the Service", 20*time.Second, func() error {
		got, err := get(t, "http://"+address)
		if err == nil && !strings.HasPrefix(got, "web-") {
			err = fmt.Errorf("%q answered", got)
		}
		return err
	})
}

// get sends a request from this machine, without its proxies.
func get(t *testing.T, url string) (string, error) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 2 * time.Second}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return string(content), err
}

func (c running) logsAndForward(t *testing.T) {
	if got := c.kubectl(t, "logs", "web-1"); got != "serving as web-1" {
		t.Errorf("logs: %q", got)
	}
	ctx, stop := context.WithCancel(t.Context())
	// Any free port of this machine, because another clone's test may run at the same time. kubectl prints the port.
	forward := exec.CommandContext(ctx, c.Kubectl, "--kubeconfig", c.Kubeconfig, "port-forward", "--address=127.0.0.1", "web-1", ":8080")
	output, err := forward.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := forward.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { stop(); _ = forward.Wait() }()
	said, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatalf("kubectl port-forward ended: %v", err)
	}
	local, _, found := strings.Cut(strings.TrimPrefix(said, "Forwarding from "), " -> ")
	if !found {
		t.Fatalf("kubectl port-forward said %q", said)
	}
	eventually(t, "port-forward", 20*time.Second, func() error {
		got, err := get(t, "http://"+local)
		if err == nil && got != "web-1" {
			err = fmt.Errorf("%q answered", got)
		}
		return err
	})
}

func (c running) missingImage(t *testing.T) {
	c.kubectl(t, "run", "lost", "--image=registry.example.com/no-such-project/nothing:1")
	eventually(t, "the pod reports the missing image", 20*time.Second, func() error {
		reason, err := c.try(t, "get", "pod", "lost", "-o", "jsonpath={.status.containerStatuses[0].state.waiting.reason}")
		if err == nil && reason != "ErrImagePull" && reason != "ImagePullBackOff" {
			err = fmt.Errorf("it waits because of %q", reason)
		}
		return err
	})
	c.kubectl(t, "delete", "pod", "lost", "--force")
}

func (c running) expansion(t *testing.T) {
	c.kubectl(t, "patch", "pvc", "data-web-0", "-p", `{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`)
	c.kubectl(t, "wait", "pvc/data-web-0", "--for=jsonpath={.status.capacity.storage}=2Gi", "--timeout=20s")
}

func (c running) partition(t *testing.T, dir string) {
	t.Helper()
	if err := cluster.PartitionNode(t.Context(), dir, c.nodeOf(t, "web-1"), []string{c.nodeOf(t, "web-0")}, t.Output()); err != nil {
		t.Fatal(err)
	}
	address := c.kubectl(t, "get", "pod", "web-1", "-o", "jsonpath={.status.podIP}")
	if out, err := c.ask(t, "web-0", "http://"+address+":8080"); err == nil || !strings.Contains(err.Error(), "deadline") {
		t.Errorf("across the partition: %q, %v; want no answer", out, err)
	}
	if err := cluster.HealNode(t.Context(), dir, c.nodeOf(t, "web-1"), t.Output()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other node answers again", 20*time.Second, func() error {
		_, err := c.ask(t, "web-0", "http://"+address+":8080")
		return err
	})
}

func (c running) nodeOf(t *testing.T, pod string) string {
	t.Helper()
	return c.kubectl(t, "get", "pod", pod, "-o", "jsonpath={.spec.nodeName}")
}

func (c running) killedNode(t *testing.T, dir string) {
	t.Helper()
	node := c.nodeOf(t, "web-1")
	address := c.kubectl(t, "get", "pod", "web-1", "-o", "jsonpath={.status.podIP}")
	if err := cluster.KillNode(t.Context(), dir, node, t.Output()); err != nil {
		t.Fatal(err)
	}
	if out, err := c.ask(t, "web-0", "http://"+address+":8080"); err == nil {
		t.Errorf("a pod of a dead node answers %q", out)
	}
	if err := cluster.StartNode(t.Context(), dir, node, t.Output()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod is back with what it wrote before", 60*time.Second, func() error {
		starts, err := c.ask(t, "web-0", "http://web-1.web-pods:8080/starts")
		if err == nil && strings.Count(starts, "started") < 2 {
			err = fmt.Errorf("it has %q", starts)
		}
		return err
	})
}

// crash leaves the state after a power failure of the whole machine: files, but no process, bridge or control group.
func (c running) crash(t *testing.T, dir string) {
	t.Helper()
	killAll(t, dir)
	bridge := fmt.Sprintf("devcluster%d", index(t, dir))
	if output, err := exec.CommandContext(t.Context(), "ip", "link", "del", bridge).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	if _, err := cluster.Up(t.Context(), cluster.Options{Dir: dir, Progress: t.Output()}); err != nil {
		t.Fatal(err)
	}
	c.kubectl(t, "rollout", "status", "statefulset/web", "--timeout=90s")
	eventually(t, "the pods are back, with what they wrote before", 60*time.Second, func() error {
		starts, err := c.ask(t, "web-0", "http://web-1.web-pods:8080/starts")
		if err == nil && strings.Count(starts, "started") < 3 {
			err = fmt.Errorf("it has %q", starts)
		}
		return err
	})
}

// index returns the number of the cluster's address plan.
func index(t *testing.T, dir string) int {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "cluster", "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	var state struct {
		Network struct {
			Index int `json:"index"`
		} `json:"network"`
	}
	if err := json.Unmarshal(content, &state); err != nil {
		t.Fatal(err)
	}
	return state.Network.Index
}

func (c running) reclaim(t *testing.T, dir string) {
	t.Helper()
	volume := c.kubectl(t, "get", "pvc", "data-web-1", "-o", "jsonpath={.spec.volumeName}")
	kept := c.kubectl(t, "get", "pvc", "data-web-0", "-o", "jsonpath={.spec.volumeName}")
	path := c.kubectl(t, "get", "pv", volume, "-o", "jsonpath={.spec.local.path}")
	c.kubectl(t, "delete", "statefulset", "web")
	c.kubectl(t, "delete", "pvc", "data-web-1", "--timeout=30s")
	c.kubectl(t, "wait", "pv/"+volume, "--for=delete", "--timeout=30s")
	if _, err := os.Stat(path); err == nil {
		t.Errorf("%s is still there", path)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "cluster", "volumes", "*", kept, "starts")); len(left) != 1 {
		t.Errorf("the other claim's data is at %v", left)
	}
}

// nothingLeft takes the cluster in the folder down, and checks that none of its mounts, processes, interfaces, routes and control groups is
// left.
func nothingLeft(t *testing.T, dir string) {
	t.Helper()
	i := index(t, dir)
	if err := cluster.Down(t.Context(), dir, t.Output()); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("devcluster%d", i)
	for _, pattern := range []string{
		"/sys/class/net/" + name,
		fmt.Sprintf("/sys/class/net/devc%dn*", i),
		"/sys/fs/cgroup/" + name,
		"/sys/fs/cgroup/*/" + name,
		filepath.Join(dir, "cluster"),
		filepath.Join(dir, "kubeconfig"),
	} {
		if left, _ := filepath.Glob(pattern); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
	for _, file := range []string{"/proc/mounts", "/proc/net/route"} {
		table, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(table), dir) || strings.Contains(string(table), name) {
			t.Errorf("%s still has entries of the cluster", file)
		}
	}
	for _, process := range processesNaming(t, dir) {
		t.Errorf("process left: %s", process)
	}
}

func processesNaming(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err == nil && bytes.Contains(content, []byte(dir)) {
			found = append(found, string(bytes.ReplaceAll(content, []byte{0}, []byte{' '})))
		}
	}
	return found
}

// probeArchive returns a docker-archive, as "docker save" writes it, with one static binary.
func probeArchive(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "probe")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./testdata/probe")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build probe: %v\n%s", err, output)
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	layer := tarOf(t, file{"probe", content})
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "config": map[string]any{"Entrypoint": []string{"/probe"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	if err != nil {
		t.Fatal(err)
	}
	manifest := []byte(`[{"Config":"config.json","RepoTags":["example.com/team/probe:1"],"Layers":["layer.tar"]}]`)
	archive := filepath.Join(dir, "probe.tar")
	if err := os.WriteFile(archive, tarOf(t, file{"layer.tar", layer}, file{"config.json", config}, file{"manifest.json", manifest}), 0o600); err != nil {
		t.Fatal(err)
	}
	return archive
}

type file struct {
	name    string
	content []byte
}

func tarOf(t *testing.T, files ...file) []byte {
	t.Helper()
	var out bytes.Buffer
	writer := tar.NewWriter(&out)
	for _, f := range files {
		if err := writer.WriteHeader(&tar.Header{Name: f.name, Mode: 0o755, Size: int64(len(f.content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Write(f.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
