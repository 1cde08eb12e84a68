package cluster

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster/atomicfile"
	"github.com/mysql-operator/mysql-operator/devcluster/cluster/daemon"
	"github.com/mysql-operator/mysql-operator/devcluster/cluster/pki"
	"github.com/mysql-operator/mysql-operator/devcluster/cluster/render"
)

const (
	// stopGrace is how long a component may take to terminate. kube-apiserver drains its requests and needs about 10 seconds.
	stopGrace = 20 * time.Second
	// readyLimit bounds each wait for a component. Components usually need much less, but a busy machine may be slow.
	readyLimit = 3 * time.Minute

	dnsComponent = "coredns"
)

// configure writes the certificates and configuration files of the control
// plane.
func (l *launcher) configure() error {
	c := l.cluster
	requests := c.Certificates()
	if err := pki.Ensure(c.PKI(), requests, time.Now()); err != nil {
		return err
	}
	for _, component := range []string{"kube-controller-manager", "kube-scheduler", "kube-proxy", dnsComponent, "local-provisioner"} {
		if err := l.writeKubeconfig(c.KubeconfigFile(component), component); err != nil {
			return err
		}
	}
	if err := l.writeKubeconfig(l.folder.kubeconfig(), "admin"); err != nil {
		return err
	}
	if err := atomicfile.Write(c.AuditPolicyFile(), []byte(render.AuditPolicy()), 0o644); err != nil {
		return err
	}
	if c.Network == nil {
		return nil
	}
	return atomicfile.Write(c.CorefileFile(), []byte(render.Corefile(c)), 0o644)
}

// writeKubeconfig writes the kubeconfig of the user that the certificate names.
func (l *launcher) writeKubeconfig(path, certificate string) error {
	read := func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(l.cluster.PKI(), name)) }
	authority, err := read("ca.crt")
	if err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	public, err := read(certificate + ".crt")
	if err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	private, err := read(certificate + ".key")
	if err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	credentials := render.Credentials{Authority: authority, Certificate: public, Key: private}
	return atomicfile.Write(path, []byte(render.Kubeconfig(l.cluster, certificate, credentials)), 0o600)
}

// component is a program of the control plane.
type component struct {
	name   string
	args   []string
	inputs []string // contents of the files it reads at its start
}

// servers returns the components to start first. The clients need a ready API server.
func (s state) servers(c render.Cluster) []component {
	list := []component{{name: "etcd", args: render.Etcd(c)}, {name: "kube-apiserver", args: render.APIServer(c), inputs: []string{render.AuditPolicy()}}}
	if s.Network != nil {
		list = append(list, component{name: "registry", args: render.Registry(c)})
	}
	return list
}

func (s state) clients(c render.Cluster) []component {
	var list []component
	if s.ControllerManager {
		list = append(list, component{name: "kube-controller-manager", args: render.ControllerManager(c)})
	}
	if s.Scheduler {
		list = append(list, component{name: "kube-scheduler", args: render.Scheduler(c)})
	}
	if s.Network != nil {
		list = append(list,
			component{name: "local-provisioner", args: render.Provisioner(c)},
			component{name: dnsComponent, args: render.CoreDNS(c), inputs: []string{render.Corefile(c)}})
	}
	return list
}

func (l *launcher) startControlPlane(ctx context.Context) error {
	servers := l.state.servers(l.cluster)
	if err := l.ensure(ctx, servers); err != nil {
		return err
	}
	if err := l.connect(); err != nil {
		return err
	}
	if err := l.await(ctx, "the API server", names(servers), l.client.Ready); err != nil {
		return err
	}
	first := func(ctx context.Context) error { return applyBootstrap(ctx, l.client) }
	if err := l.await(ctx, "the cluster's first objects", names(servers), first); err != nil {
		return err
	}
	clients := l.state.clients(l.cluster)
	if err := l.ensure(ctx, clients); err != nil {
		return err
	}
	if l.state.ControllerManager {
		if err := l.await(ctx, "the default service account", names(clients), l.defaultServiceAccount); err != nil {
			return err
		}
	}
	if l.state.Network == nil {
		return nil
	}
	return l.await(ctx, "DNS", []string{dnsComponent}, l.dnsReady)
}

// ensure starts the components that do not run.
func (l *launcher) ensure(ctx context.Context, components []component) error {
	for _, c := range components {
		spec := daemon.Spec{Name: c.name, Args: c.args, Inputs: c.inputs, Env: render.Environment(), Log: filepath.Join(l.folder.logs(), c.name+".log")}
		if _, err := l.keeper.Ensure(ctx, spec, stopGrace); err != nil {
			return err
		}
	}
	return nil
}

// defaultServiceAccount returns an error while pods cannot be created in the default namespace. The controller manager creates this service
// account last.
func (l *launcher) defaultServiceAccount(ctx context.Context) error {
	var account struct{}
	return l.client.Get(ctx, "/api/v1/namespaces/default/serviceaccounts/default", &account)
}

func (l *launcher) dnsReady(ctx context.Context) error {
	address := net.JoinHostPort(l.cluster.Network.Host().String(), fmt.Sprint(render.DNSReadyPort))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/ready", http.NoBody)
	if err != nil {
		return err
	}
	direct := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	response, err := direct.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("CoreDNS answered %s", response.Status)
	}
	return nil
}

func names(components []component) []string {
	list := make([]string, 0, len(components))
	for _, c := range components {
		list = append(list, c.name)
	}
	return list
}
