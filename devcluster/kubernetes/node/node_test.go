package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The launcher, in another module, writes these keys; its test reads them back.
func TestReadConfig(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "node.json")
	const content = `{
  "hostname": "node-1",
  "temporary": ["/run"],
  "binds": {"/var/log": "/d/log"},
  "sysctls": {"net.ipv4.ip_forward": "1"},
  "processes": [{"name": "kubelet", "args": ["/k8s", "kubelet"], "env": ["HOME=/"], "log": "/l", "needs": "/run/s.sock"}]
}`
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readConfig(file)
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Hostname:  "node-1",
		Temporary: []string{"/run"},
		Binds:     map[string]string{"/var/log": "/d/log"},
		Sysctls:   map[string]string{"net.ipv4.ip_forward": "1"},
		Processes: []Process{{Name: "kubelet", Args: []string{"/k8s", "kubelet"}, Env: []string{"HOME=/"}, Log: "/l", Needs: "/run/s.sock"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Outside its own namespaces it would mount over the machine's folders.
func TestRunRefusesToBeAnOrdinaryProcess(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "node.json")
	if err := os.WriteFile(file, []byte(`{"temporary":["/run"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Run([]string{"--config", file}); err == nil || !strings.Contains(err.Error(), "process 1") {
		t.Errorf("error %v, want one that says that it must be process 1", err)
	}
}
