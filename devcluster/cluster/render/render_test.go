package render

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster/plan"
)

func alone() Cluster {
	return Cluster{Files: "/d/cluster", Logs: "/d/logs", Kubernetes: "/bin/k8s", Ports: plan.Ports{API: 20000, EtcdClient: 20001, EtcdPeer: 20002}}
}

func withNodes() Cluster {
	c := alone()
	c.Network = &plan.Network{Index: 2}
	c.Ports.API = 6443
	return c
}

func node(j int) Node {
	return Node{
		Node:    plan.Network{Index: 2}.Node(j),
		Cluster: withNodes(),
		Machine: Machine{Containerd: "/usr/bin/containerd", CNI: "/usr/lib/cni", Snapshotter: "overlayfs", OOMScore: -100, MaxFiles: 4096},
	}
}

// option returns the value of "--name=value" in an argument list.
func option(args []string, name string) string {
	for _, a := range args {
		if value, found := strings.CutPrefix(a, "--"+name+"="); found {
			return value
		}
	}
	return ""
}

func TestAPIServer(t *testing.T) {
	t.Parallel()
	audited := alone()
	audited.AuditLog = "/d/audit.log"
	tests := map[string]struct {
		cluster Cluster
		want    map[string]string
	}{
		"a control plane alone listens on loopback and announces no endpoint": {
			cluster: alone(),
			want: map[string]string{
				"bind-address": "127.0.0.1", "advertise-address": "127.0.0.1", "secure-port": "20000",
				"endpoint-reconciler-type": "none", "etcd-servers": "http://127.0.0.1:20001", "audit-log-path": "",
			},
		},
		"with nodes it listens where only pods and this machine reach it": {
			cluster: withNodes(),
			want: map[string]string{
				"bind-address": "10.250.2.1", "advertise-address": "10.250.2.1", "secure-port": "6443",
				"endpoint-reconciler-type": "", "service-cluster-ip-range": "10.252.32.0/20",
			},
		},
		"the audit log is capped": {
			cluster: audited,
			want:    map[string]string{"audit-log-path": "/d/audit.log", "audit-log-maxsize": "64", "audit-log-maxbackup": "2", "audit-policy-file": "/d/cluster/audit-policy.yaml"},
		},
		"authorization is that of a real cluster": {
			cluster: withNodes(),
			want:    map[string]string{"authorization-mode": "Node,RBAC", "enable-admission-plugins": "NodeRestriction", "anonymous-auth": "", "disable-admission-plugins": ""},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := APIServer(tc.cluster)
			for flag, want := range tc.want {
				if got := option(args, flag); got != want {
					t.Errorf("--%s=%s, want %q", flag, got, want)
				}
			}
		})
	}
}

// The certificate must contain every address that clients use for the server.
func TestCertificates(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cluster Cluster
		want    []string
	}{
		"alone":      {cluster: alone(), want: []string{"127.0.0.1", "10.252.0.1"}},
		"with nodes": {cluster: withNodes(), want: []string{"127.0.0.1", "10.252.32.1", "10.250.2.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, a := range tc.cluster.Certificates()[0].Addresses {
				got = append(got, a.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Each component has its own user, so that RBAC applies to it. Only the administrator's certificate is exempt.
func TestIdentities(t *testing.T) {
	t.Parallel()
	users := map[string]bool{}
	for _, r := range append(withNodes().Certificates(), node(1).Certificates()...) {
		if users[r.CommonName] {
			t.Errorf("two certificates for %s", r.CommonName)
		}
		users[r.CommonName] = true
		for _, group := range r.Organizations {
			if group == "system:masters" && r.File != "admin" {
				t.Errorf("%s is an administrator", r.File)
			}
		}
	}
}

func TestNodeFiles(t *testing.T) {
	t.Parallel()
	files := node(3).Files()
	var kubelet struct {
		CgroupRoot    string
		ClusterDNS    []string
		OOMScoreAdj   int
		MaxOpenFiles  int
		FailCgroupV1  *bool
		Authorization struct{ Mode string }
	}
	decode(t, files["/d/cluster/nodes/node-3/kubelet.json"], &kubelet)
	if kubelet.CgroupRoot != "/devcluster2/node-3" || kubelet.MaxOpenFiles != 4096 || kubelet.FailCgroupV1 == nil || *kubelet.FailCgroupV1 || kubelet.Authorization.Mode != "Webhook" {
		t.Errorf("kubelet: %+v", kubelet)
	}
	if kubelet.OOMScoreAdj != 0 {
		t.Errorf("kubelet wants the out-of-memory score %d, which takes a capability", kubelet.OOMScoreAdj)
	}
	if diff := cmp.Diff([]string{"10.250.2.1"}, kubelet.ClusterDNS); diff != "" {
		t.Error(diff)
	}
	var cni struct {
		Plugins []struct {
			Type string
			IPAM struct {
				Ranges [][]struct{ Subnet netip.Prefix }
			}
		}
	}
	decode(t, files["/d/cluster/nodes/node-3/cni/10-pods.conflist"], &cni)
	if got := cni.Plugins[0].IPAM.Ranges[0][0].Subnet.String(); got != "10.251.35.0/24" {
		t.Errorf("pods get addresses of %s", got)
	}
	containerd := files["/d/cluster/nodes/node-3/containerd.toml"]
	for _, want := range []string{`snapshotter = "overlayfs"`, `bin_dir = "/usr/lib/cni"`, "restrict_oom_score_adj = true", `sandbox_image = "` + SandboxImage + `"`} {
		if !strings.Contains(containerd, want) {
			t.Errorf("containerd's configuration has no %s", want)
		}
	}
	// Without the server line containerd would ask the real registry last, and wait for a network that does not exist.
	hosts := files["/d/cluster/nodes/node-3/certs.d/_default/hosts.toml"]
	if !strings.Contains(hosts, `server = "http://10.250.2.1:5000"`) {
		t.Errorf("mirror: %s", hosts)
	}
}

// The node's first process reads this file. Its own test, in the nested module, reads the same keys.
func TestInitConfig(t *testing.T) {
	t.Parallel()
	var config struct {
		Hostname  string
		Temporary []string
		Binds     map[string]string
		Processes []struct {
			Name, Log, Needs string
			Args, Env        []string
		}
	}
	decode(t, node(1).Files()[node(1).ConfigFile()], &config)
	var names []string
	for _, p := range config.Processes {
		names = append(names, p.Name)
		for _, e := range p.Env {
			if strings.Contains(strings.ToLower(e), "proxy") {
				t.Errorf("%s gets %s", p.Name, e)
			}
		}
	}
	if diff := cmp.Diff([]string{"containerd", "kubelet", "kube-proxy"}, names); diff != "" {
		t.Error(diff)
	}
	if config.Processes[1].Needs != ContainerdSocket {
		t.Errorf("kubelet waits for %q", config.Processes[1].Needs)
	}
	if config.Hostname != "node-1" || config.Binds["/var/log"] != "/d/cluster/nodes/node-1/log" {
		t.Errorf("%+v", config)
	}
}

func TestCorefile(t *testing.T) {
	t.Parallel()
	corefile := Corefile(withNodes())
	own, others, found := strings.Cut(corefile, "\n.:53 {")
	if !found || !strings.Contains(own, "kubernetes cluster.local") || strings.Contains(own, "template") {
		t.Errorf("the cluster's names share a server with the denial of all others:\n%s", corefile)
	}
	if !strings.Contains(others, "NXDOMAIN") || strings.Contains(corefile, "forward") {
		t.Errorf("other names are not denied at once:\n%s", corefile)
	}
}

func TestKubeconfig(t *testing.T) {
	t.Parallel()
	got := Kubeconfig(withNodes(), "admin", Credentials{Authority: []byte("ca"), Certificate: []byte("crt"), Key: []byte("key")})
	for _, want := range []string{"server: https://10.250.2.1:6443", "certificate-authority-data: Y2E=", "client-certificate-data: Y3J0", "client-key-data: a2V5"} {
		if !strings.Contains(got, want) {
			t.Errorf("kubeconfig has no %q:\n%s", want, got)
		}
	}
}

func decode(t *testing.T, content string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(content), into); err != nil {
		t.Fatalf("%v in %s", err, content)
	}
}
