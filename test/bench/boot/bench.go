package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster"
	"github.com/mysql-operator/mysql-operator/schema"
	"github.com/mysql-operator/mysql-operator/test/kube"
)

const (
	// operatorNamespace is where the operator's account and lease are, as in the README.
	operatorNamespace = "mysql-operator"
	// startLimit bounds building and starting: the first build of Kubernetes takes minutes, and says so itself.
	startLimit = 20 * time.Minute
	stopLimit  = time.Minute
)

// bench is a control plane with the rights granted, and a binary to run on it.
type bench struct {
	// dir holds everything and goes with it.
	dir string
	// binary is a copy of what was built, so that nobody's next build changes it half-way; kubeconfig is the operator's own.
	binary, kubeconfig string
	// environment is the operator's; empty as in its image.
	environment []string
	kinds       []schema.Kind
	// admin is the administrator's client, for what the bench itself does; discovery is the same one's.
	admin     dynamic.Interface
	discovery discovery.DiscoveryInterface
	kubectl   kube.Kubectl
}

func setUp(ctx context.Context, environment []string) (_ *bench, err error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	dir, err := os.MkdirTemp("", "bench-boot-")
	if err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	b := &bench{
		dir: dir, binary: filepath.Join(dir, "mysql-operator"), kubeconfig: filepath.Join(dir, "operator.kubeconfig"),
		environment: append([]string{}, environment...), kinds: schema.Kinds(),
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.tearDown(context.WithoutCancel(ctx)))
		}
	}()
	if err := b.build(ctx); err != nil {
		return nil, err
	}
	started, err := cluster.Up(ctx, cluster.Options{Dir: b.controlPlane(), ControlPlaneOnly: true, WithoutAuditLog: true, Progress: os.Stderr})
	if err != nil {
		return nil, err
	}
	b.kubectl = kube.Kubectl{Program: started.Kubectl, Config: started.Kubeconfig}
	config, err := b.kubectl.Rest()
	if err != nil {
		return nil, err
	}
	if b.admin, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	if b.discovery, err = discovery.NewDiscoveryClientForConfig(config); err != nil {
		return nil, fmt.Errorf("make a client for discovery: %w", err)
	}
	if err := b.grant(ctx, config); err != nil {
		return nil, err
	}
	return b, nil
}

func (b *bench) controlPlane() string { return filepath.Join(b.dir, "control-plane") }

// build makes what is shipped, the way it is made for shipping.
func (b *bench) build(ctx context.Context) error {
	command := exec.CommandContext(ctx, "make", "--silent", "build")
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("make build: %w: run this in the root of a clone, or by make bench-boot", err)
	}
	built, err := os.Open(filepath.Join("bin", "mysql-operator"))
	if err != nil {
		return fmt.Errorf("copy the binary: %w", err)
	}
	defer built.Close()
	own, err := os.OpenFile(b.binary, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return fmt.Errorf("copy the binary: %w", err)
	}
	if _, err := io.Copy(own, built); err != nil {
		return errors.Join(fmt.Errorf("copy the binary: %w", err), own.Close())
	}
	return own.Close()
}

// grant makes the account with just the rights that `mysql-operator manifests` asks for, and a kubeconfig with a token of it.
func (b *bench) grant(ctx context.Context, admin *rest.Config) error {
	if _, err := b.kubectl.Run(ctx, "create", "namespace", operatorNamespace); err != nil {
		return err
	}
	rights, err := kube.Operator{Namespace: operatorNamespace, Kinds: "all", Binary: b.binary, Image: agentImage}.Manifests(ctx, "rbac")
	if err != nil {
		return err
	}
	if _, err := b.kubectl.Apply(ctx, rights); err != nil {
		return err
	}
	token, err := b.kubectl.Run(ctx, "create", "token", "mysql-operator", "--namespace", operatorNamespace, "--duration=24h")
	if err != nil {
		return err
	}
	const name = "bench"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: admin.Host, CertificateAuthorityData: admin.CAData, CertificateAuthority: admin.CAFile}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: strings.TrimSpace(token)}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: operatorNamespace}
	config.CurrentContext = name
	if err := clientcmd.WriteToFile(*config, b.kubeconfig); err != nil {
		return fmt.Errorf("write the operator's kubeconfig: %w", err)
	}
	return nil
}

// tearDown leaves nothing behind.
func (b *bench) tearDown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopLimit)
	defer cancel()
	if err := cluster.Down(ctx, b.controlPlane(), io.Discard); err != nil {
		return fmt.Errorf("%w: what is left is in %s", err, b.dir)
	}
	return os.RemoveAll(b.dir)
}
