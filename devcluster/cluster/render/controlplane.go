// Package render returns the argument lists and configuration files of each component of a dev cluster. It only decides and changes
// nothing.
package render

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strconv"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster/pki"
	"github.com/mysql-operator/mysql-operator/devcluster/cluster/plan"
)

const (
	// Domain is the cluster's DNS domain.
	Domain = "cluster.local"
	// RegistryPort is the port of the image registry on the machine's own address.
	RegistryPort = 5000
	// DNSReadyPort is the port where CoreDNS reports that it is ready.
	DNSReadyPort = 8181
	// SandboxImage holds each pod's namespaces.
	SandboxImage = "devcluster.local/pause:1"

	auditMaxMiB     = 64
	auditMaxBackups = 2
)

// Cluster has all values that the components' configuration depends on.
type Cluster struct {
	Files      string // folder of the cluster's state
	Logs       string // folder of the components' logs
	AuditLog   string // file of the API server's audit log, empty for none
	Kubernetes string // the binary with every component
	Ports      plan.Ports
	// Network is the address plan of the nodes; nil if there are none.
	Network *plan.Network
}

// APIAddress returns the address of the API server: the machine's own address in the nodes' network, or loopback if there are no nodes.
func (c Cluster) APIAddress() netip.AddrPort {
	if c.Network != nil {
		return netip.AddrPortFrom(c.Network.Host(), uint16(c.Ports.API))
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(c.Ports.API))
}

// services returns the network of cluster IPs. Without nodes it is not routed, and it is large enough for benchmarks with thousands of
// Services.
func (c Cluster) services() netip.Prefix {
	if c.Network != nil {
		return c.Network.Services()
	}
	return netip.PrefixFrom(plan.Network{}.Services().Addr(), 16)
}

// PKI returns the folder of the certificates.
func (c Cluster) PKI() string { return filepath.Join(c.Files, "pki") }

func (c Cluster) crt(name string) string { return filepath.Join(c.PKI(), name+".crt") }
func (c Cluster) key(name string) string { return filepath.Join(c.PKI(), name+".key") }

// KubeconfigFile returns the path of a component's kubeconfig.
func (c Cluster) KubeconfigFile(component string) string {
	return filepath.Join(c.Files, "kubeconfigs", component)
}

// AuditPolicyFile returns the path of the API server's audit policy.
func (c Cluster) AuditPolicyFile() string { return filepath.Join(c.Files, "audit-policy.yaml") }

// CorefileFile returns the path of CoreDNS's configuration.
func (c Cluster) CorefileFile() string { return filepath.Join(c.Files, "Corefile") }

// Images returns the folder of the image store.
func (c Cluster) Images() string { return filepath.Join(c.Files, "images") }

// Volumes returns the folder that has one folder of volumes per node.
func (c Cluster) Volumes() string { return filepath.Join(c.Files, "volumes") }

// Certificates returns the key pairs of the control plane, each with the identity that RBAC expects (Kubernetes documentation, "PKI
// certificates and requirements").
func (c Cluster) Certificates() []pki.Request {
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	addresses := []netip.Addr{loopback, c.services().Addr().Next()}
	if c.Network != nil {
		addresses = append(addresses, c.Network.Host())
	}
	return []pki.Request{
		{
			File: "apiserver", CommonName: "kube-apiserver", Addresses: addresses,
			Names: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + Domain},
		},
		{File: "apiserver-kubelet-client", CommonName: "kube-apiserver-kubelet-client"},
		{File: "front-proxy-client", CommonName: "front-proxy-client"},
		{File: "admin", CommonName: "admin", Organizations: []string{"system:masters"}},
		{File: "kube-controller-manager", CommonName: "system:kube-controller-manager"},
		{File: "kube-scheduler", CommonName: "system:kube-scheduler"},
		{File: "kube-proxy", CommonName: "system:kube-proxy"},
		{File: "coredns", CommonName: "devcluster:coredns"},
		{File: "local-provisioner", CommonName: "devcluster:local-provisioner"},
	}
}

// Etcd returns the command line of etcd on loopback. etcd does not flush to disk: a dev cluster that loses power must be created again.
func Etcd(c Cluster) []string {
	client := fmt.Sprintf("http://127.0.0.1:%d", c.Ports.EtcdClient)
	peer := fmt.Sprintf("http://127.0.0.1:%d", c.Ports.EtcdPeer)
	return []string{
		c.Kubernetes, "etcd",
		"--name=default",
		"--data-dir=" + filepath.Join(c.Files, "etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=default=" + peer,
		"--unsafe-no-fsync=true",
		"--quota-backend-bytes=8589934592",
		"--log-level=warn",
	}
}

// APIServer returns the command line of kube-apiserver with RBAC, node authorization, signed service account tokens and the default
// admission plugins, which include ResourceQuota and PodSecurity.
func APIServer(c Cluster) []string {
	address := c.APIAddress()
	args := []string{
		c.Kubernetes, "kube-apiserver",
		"--bind-address=" + address.Addr().String(),
		"--advertise-address=" + address.Addr().String(),
		"--secure-port=" + strconv.Itoa(c.Ports.API),
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", c.Ports.EtcdClient),
		"--service-cluster-ip-range=" + c.services().String(),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--client-ca-file=" + c.crt("ca"),
		"--tls-cert-file=" + c.crt("apiserver"),
		"--tls-private-key-file=" + c.key("apiserver"),
		"--service-account-issuer=https://kubernetes.default.svc." + Domain,
		"--service-account-key-file=" + filepath.Join(c.PKI(), "service-account.pub"),
		"--service-account-signing-key-file=" + c.key("service-account"),
		"--requestheader-client-ca-file=" + c.crt("ca"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + c.crt("front-proxy-client"),
		"--proxy-client-key-file=" + c.key("front-proxy-client"),
		"--kubelet-certificate-authority=" + c.crt("ca"),
		"--kubelet-client-certificate=" + c.crt("apiserver-kubelet-client"),
		"--kubelet-client-key=" + c.key("apiserver-kubelet-client"),
		"--kubelet-preferred-address-types=InternalIP",
		"--profiling=false",
	}
	if c.Network == nil {
		// Endpoints may not be loopback addresses. Without pods they are not needed.
		args = append(args, "--endpoint-reconciler-type=none")
	}
	if c.AuditLog == "" {
		return args
	}
	return append(args,
		"--audit-policy-file="+c.AuditPolicyFile(),
		"--audit-log-path="+c.AuditLog,
		"--audit-log-maxsize="+strconv.Itoa(auditMaxMiB),
		"--audit-log-maxbackup="+strconv.Itoa(auditMaxBackups),
	)
}

// AuditPolicy returns a policy that records user, object and time of each write once, without bodies.
func AuditPolicy() string {
	return `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: None
`
}

// ControllerManager returns the command line of kube-controller-manager. Each controller uses the service account that RBAC has for it.
// Without nodes no Pod runs, and the controllers that write the endpoints of Services would make a tenth of all requests.
func ControllerManager(c Cluster) []string {
	controllers := "*"
	if c.Network == nil {
		controllers += ",-endpoints-controller,-endpointslice-controller,-endpointslice-mirroring-controller"
	}
	return []string{
		c.Kubernetes, "kube-controller-manager",
		"--kubeconfig=" + c.KubeconfigFile("kube-controller-manager"),
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + c.key("service-account"),
		"--root-ca-file=" + c.crt("ca"),
		"--cluster-signing-cert-file=" + c.crt("ca"),
		"--cluster-signing-key-file=" + c.key("ca"),
		"--allocate-node-cidrs=false",
		"--leader-elect=false",
		"--controllers=" + controllers,
		// With the default, 20 requests a second, the deletion of many namespaces takes minutes: each takes a request for every resource.
		"--kube-api-qps=200",
		"--kube-api-burst=400",
		"--secure-port=0",
		"--profiling=false",
	}
}

// Scheduler returns the command line of kube-scheduler.
func Scheduler(c Cluster) []string {
	return []string{
		c.Kubernetes, "kube-scheduler",
		"--kubeconfig=" + c.KubeconfigFile("kube-scheduler"),
		"--leader-elect=false",
		"--secure-port=0",
		"--profiling=false",
	}
}

// Registry returns the command line of the image registry.
func Registry(c Cluster) []string {
	return []string{c.Kubernetes, "registry", "--store=" + c.Images(), "--listen=" + c.RegistryAddress()}
}

// RegistryAddress returns host and port of the image registry.
func (c Cluster) RegistryAddress() string {
	return netip.AddrPortFrom(c.Network.Host(), RegistryPort).String()
}

// Provisioner returns the command line of the volume provisioner.
func Provisioner(c Cluster) []string {
	return []string{
		c.Kubernetes, "local-provisioner",
		"--kubeconfig=" + c.KubeconfigFile("local-provisioner"),
		"--root=" + c.Volumes(),
	}
}

// CoreDNS returns the command line of the cluster's DNS server.
func CoreDNS(c Cluster) []string {
	return []string{c.Kubernetes, "coredns", "-conf", c.CorefileFile()}
}

// Corefile returns CoreDNS's configuration. It serves the cluster's own names. Pods cannot reach anything outside of the machine, so every
// other name gets the answer NXDOMAIN at once, instead of after the time-outs of unreachable servers. The configuration has two servers: in
// a single one, CoreDNS's order of plugins would give this answer for the cluster's names, too.
func Corefile(c Cluster) string {
	return fmt.Sprintf(`%[3]s:53 in-addr.arpa:53 ip6.arpa:53 {
    bind %[1]s
    errors
    ready %[1]s:%[2]d
    kubernetes %[3]s in-addr.arpa ip6.arpa {
        kubeconfig %[4]q
        pods insecure
        ttl 5
    }
    cache 30
    loadbalance
}
.:53 {
    bind %[1]s
    errors
    template ANY ANY {
        rcode NXDOMAIN
    }
}
`, c.Network.Host(), DNSReadyPort, Domain, c.KubeconfigFile("coredns"))
}
