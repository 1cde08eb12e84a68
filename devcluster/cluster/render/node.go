package render

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster/pki"
	"github.com/mysql-operator/mysql-operator/devcluster/cluster/plan"
)

// A node keeps its run-time state in the usual folders, on its own memory filesystems, which end with it. State that must survive a restart
// is under Files.
const (
	ContainerdSocket = "/run/containerd/containerd.sock"
	addressState     = "/run/cni/addresses"
	// kubeletRoot is bind-mounted from a folder under Files. Its sockets need a short path, and the repository may be in a deep folder.
	kubeletRoot = "/run/devcluster/kubelet"
)

// Machine has the properties of this machine that the node configuration depends on.
type Machine struct {
	Containerd  string // path of the binary
	CNI         string // folder of the CNI plugins
	Snapshotter string // of containerd: overlayfs, or native where overlays do not stack
	// OOMScore is the out-of-memory score of the launcher. Without CAP_SYS_RESOURCE no process may have a lower one.
	OOMScore int
	// MaxFiles is the number of files that a process may open on this machine.
	MaxFiles int
}

// Node is one node of a cluster.
type Node struct {
	plan.Node
	Cluster Cluster
	Machine Machine
}

// Dir returns the node's folder.
func (n Node) Dir() string { return filepath.Join(n.Cluster.Files, "nodes", n.Name) }

// Cgroup returns the control group of the node's pods, as a path below each hierarchy's root.
func (n Node) Cgroup() string { return "/" + n.Cluster.Network.Bridge() + "/" + n.Name }

// Volumes returns the folder of the node's volumes.
func (n Node) Volumes() string { return filepath.Join(n.Cluster.Volumes(), n.Name) }

func (n Node) file(name string) string { return filepath.Join(n.Dir(), name) }

// ConfigFile returns the path of the configuration of the node's first process.
func (n Node) ConfigFile() string { return n.file("node.json") }

// Certificates returns the node's key pairs.
func (n Node) Certificates() []pki.Request {
	return []pki.Request{{
		File: n.Name, CommonName: "system:node:" + n.Name, Organizations: []string{"system:nodes"},
		Names: []string{n.Name}, Addresses: []netip.Addr{n.Address},
	}}
}

// Files returns the node's configuration files: path → content.
func (n Node) Files() map[string]string {
	return map[string]string{
		n.file("containerd.toml"):             n.containerdConfig(),
		n.file("certs.d/_default/hosts.toml"): n.registryHosts(),
		n.file("cni/10-pods.conflist"):        n.cniConfig(),
		n.file("etc/resolv.conf"):             "", // kubelet writes the pods' resolver, which inherits nothing
		n.file("kubelet.json"):                n.kubeletConfig(),
		n.file("kube-proxy.json"):             n.proxyConfig(),
		n.ConfigFile():                        n.initConfig(),
	}
}

// containerdConfig returns containerd's configuration in version 2, which all releases since 1.3 read.
func (n Node) containerdConfig() string {
	return fmt.Sprintf(`version = 2
root = %q
state = "/run/containerd"

[grpc]
  address = %q

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  # Without CAP_SYS_RESOURCE runc may not lower the score a container asks for.
  restrict_oom_score_adj = true

  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = %q
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = %q

  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = %q
`, n.file("containerd"), ContainerdSocket, SandboxImage, n.Machine.Snapshotter, n.Machine.CNI, n.file("cni"), n.file("certs.d"))
}

// registryHosts configures the cluster's registry as the mirror of every other registry. It is also the server, which containerd asks last:
// images come only from this registry.
func (n Node) registryHosts() string {
	return fmt.Sprintf(`server = "http://%[1]s"

[host."http://%[1]s"]
  capabilities = ["pull", "resolve"]
`, n.Cluster.RegistryAddress())
}

// RegistryHostsDir returns the folder for ctr's --hosts-dir.
func (n Node) RegistryHostsDir() string { return n.file("certs.d") }

// cniConfig connects each pod by its own veth pair, which the node routes. With a bridge between the pods, Services between pods of one
// node would need br_netfilter.
func (n Node) cniConfig() string {
	return toJSON(map[string]any{
		"cniVersion": "1.0.0",
		"name":       "pods",
		"plugins": []any{
			map[string]any{
				"type": "ptp",
				"ipam": map[string]any{
					"type":    "host-local",
					"dataDir": addressState,
					"ranges":  []any{[]any{map[string]any{"subnet": n.Pods.String()}}},
					"routes":  []any{map[string]any{"dst": "0.0.0.0/0"}},
				},
			},
			map[string]any{"type": "portmap", "capabilities": map[string]any{"portMappings": true}},
		},
	})
}

func (n Node) kubeletConfig() string {
	return toJSON(map[string]any{
		"apiVersion":                    "kubelet.config.k8s.io/v1beta1",
		"kind":                          "KubeletConfiguration",
		"authentication":                map[string]any{"anonymous": map[string]any{"enabled": false}, "webhook": map[string]any{"enabled": true}, "x509": map[string]any{"clientCAFile": n.Cluster.crt("ca")}},
		"authorization":                 map[string]any{"mode": "Webhook"},
		"tlsCertFile":                   n.Cluster.crt(n.Name),
		"tlsPrivateKeyFile":             n.Cluster.key(n.Name),
		"containerRuntimeEndpoint":      "unix://" + ContainerdSocket,
		"clusterDNS":                    []string{n.Cluster.Network.Host().String()},
		"clusterDomain":                 Domain,
		"resolvConf":                    n.file("etc/resolv.conf"),
		"cgroupDriver":                  "cgroupfs",
		"cgroupRoot":                    n.Cgroup(),
		"failCgroupV1":                  false,
		"failSwapOn":                    false,
		"oomScoreAdj":                   max(n.Machine.OOMScore, 0),
		"maxOpenFiles":                  n.Machine.MaxFiles,
		"serializeImagePulls":           false,
		"registryPullQPS":               0,
		"imageGCHighThresholdPercent":   100,
		"imageGCLowThresholdPercent":    99,
		"evictionHard":                  map[string]string{"memory.available": "100Mi", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%", "imagefs.inodesFree": "0%"},
		"volumePluginDir":               n.file("volume-plugins"),
		"enableSystemLogHandler":        false,
		"shutdownGracePeriod":           "0s",
		"localStorageCapacityIsolation": true,
	})
}

// proxyConfig does not change the conntrack limits: they belong to the machine, and a node may not set them.
func (n Node) proxyConfig() string {
	return toJSON(map[string]any{
		"apiVersion":       "kubeproxy.config.k8s.io/v1alpha1",
		"kind":             "KubeProxyConfiguration",
		"mode":             "iptables",
		"hostnameOverride": n.Name,
		"clusterCIDR":      n.Cluster.Network.Pods().String(),
		"clientConnection": map[string]any{"kubeconfig": n.Cluster.KubeconfigFile("kube-proxy")},
		"oomScoreAdj":      max(n.Machine.OOMScore, 0),
		"conntrack":        map[string]any{"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
	})
}

// Environment returns the complete environment of every program of a cluster. Kubernetes' programs are most of what a small cluster costs.
// With this GOGC they need a tenth less CPU in the integration tests, and the API server 0.9 GiB.
func Environment() []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", "GOGC=300"}
}

// initConfig returns the configuration that the node's first process reads (package node of the nested module).
func (n Node) initConfig() string {
	process := func(name, needs string, args ...string) map[string]any {
		p := map[string]any{"name": name, "args": args, "env": Environment(), "log": filepath.Join(n.Cluster.Logs, n.Name+"-"+name+".log")}
		if needs != "" {
			p["needs"] = needs
		}
		return p
	}
	kubelet := []string{
		n.Cluster.Kubernetes, "kubelet",
		"--config=" + n.file("kubelet.json"),
		"--kubeconfig=" + n.Cluster.KubeconfigFile(n.Name),
		"--root-dir=" + kubeletRoot,
		"--cert-dir=" + n.file("kubelet-pki"),
		"--hostname-override=" + n.Name,
		"--node-ip=" + n.Address.String(),
	}
	return toJSON(map[string]any{
		"hostname":  n.Name,
		"temporary": []string{"/run", "/var/lib/cni"},
		"binds":     map[string]string{"/var/log": n.file("log"), kubeletRoot: n.file("kubelet")},
		"sysctls": map[string]string{
			"net.ipv4.ip_forward":             "1",
			"net.ipv4.conf.all.rp_filter":     "0",
			"net.ipv4.conf.default.rp_filter": "0",
		},
		"processes": []any{
			process("containerd", "", n.Machine.Containerd, "--config", n.file("containerd.toml")),
			process("kubelet", ContainerdSocket, kubelet...),
			process("kube-proxy", "", n.Cluster.Kubernetes, "kube-proxy", "--config="+n.file("kube-proxy.json")),
		},
	})
}

// toJSON encodes plain values, which cannot fail. YAML readers also read JSON.
func toJSON(value any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(fmt.Sprintf("render %T: %v", value, err))
	}
	return b.String()
}
