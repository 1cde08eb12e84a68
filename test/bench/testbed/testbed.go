// Package testbed is what benchmarks of the operator's binary stand on: a control plane of their own, without root and nodes, and the
// binary that is shipped, run as a process with the rights that users give it.
package testbed

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

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster"
	"github.com/mysql-operator/mysql-operator/test/kube"
)

const (
	// operatorNamespace is where the operator's account and lease are, as in the README.
	operatorNamespace = "mysql-operator"
	// startLimit bounds building and starting: the first build of Kubernetes takes minutes, and says so itself.
	startLimit = 20 * time.Minute
	stopLimit  = time.Minute
)

// Options say what a benchmark needs.
type Options struct {
	// Binary is the operator to run, that of another Bed; empty builds what is shipped.
	Binary string
	// Environment is the operator's, each NAME=VALUE; empty as in its image.
	Environment []string
	// WithoutControllers leaves out kube-controller-manager, where nothing is needed of it.
	WithoutControllers bool
}

// Bed is a control plane with the rights granted, and a binary to run on it.
type Bed struct {
	// Binary is a copy of what was built, next to the programs that it starts. Another build cannot change it during the benchmark.
	Binary string
	// Config, Admin and Kubectl are the administrator's, for what the benchmark itself does.
	Config  *rest.Config
	Admin   dynamic.Interface
	Kubectl kube.Kubectl

	// dir holds everything and goes with it.
	dir         string
	kubeconfig  string // the operator's own
	environment []string
}

// Up builds the operator and starts a control plane that knows its account. Down ends it.
func Up(ctx context.Context, o Options) (_ *Bed, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("not up within %s", startLimit))
	defer cancel()
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	b := &Bed{Binary: o.Binary, dir: dir, kubeconfig: filepath.Join(dir, "operator.kubeconfig"), environment: append([]string{}, o.Environment...)}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Down(context.WithoutCancel(ctx)))
		}
	}()
	if b.Binary == "" {
		b.Binary = filepath.Join(dir, "mysql-operator")
		if err := build(ctx, dir); err != nil {
			return nil, err
		}
	}
	started, err := cluster.Up(ctx, cluster.Options{
		Dir: b.controlPlane(), ControlPlaneOnly: true, WithoutControllerManager: o.WithoutControllers, WithoutAuditLog: true, Progress: os.Stderr,
	})
	if err != nil {
		return nil, err
	}
	b.Kubectl = kube.Kubectl{Program: started.Kubectl, Config: started.Kubeconfig}
	if b.Config, err = b.Kubectl.Rest(); err != nil {
		return nil, err
	}
	if b.Admin, err = dynamic.NewForConfig(b.Config); err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	if err := b.grant(ctx); err != nil {
		return nil, err
	}
	return b, nil
}

func (b *Bed) controlPlane() string { return filepath.Join(b.dir, "control-plane") }

// build makes what is shipped, the way it is made for shipping, and copies it to a folder.
func build(ctx context.Context, to string) error {
	command := exec.CommandContext(ctx, "make", "--silent", "build")
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("make build: %w: run this in the root of a clone, or by make", err)
	}
	return os.CopyFS(to, os.DirFS("bin"))
}

// grant makes the account with just the rights that `mysql-operator manifests` asks for, and a kubeconfig with a token of it.
func (b *Bed) grant(ctx context.Context) error {
	if _, err := b.Kubectl.Run(ctx, "create", "namespace", operatorNamespace); err != nil {
		return err
	}
	rights, err := kube.Operator{Namespace: operatorNamespace, Kinds: "all", Binary: b.Binary, Image: agentImage}.Manifests(ctx, "rbac")
	if err != nil {
		return err
	}
	if _, err := b.Kubectl.Apply(ctx, rights); err != nil {
		return err
	}
	token, err := b.Kubectl.Run(ctx, "create", "token", "mysql-operator", "--namespace", operatorNamespace, "--duration=24h")
	if err != nil {
		return err
	}
	const name = "bench"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: b.Config.Host, CertificateAuthorityData: b.Config.CAData, CertificateAuthority: b.Config.CAFile}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: strings.TrimSpace(token)}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: operatorNamespace}
	config.CurrentContext = name
	if err := clientcmd.WriteToFile(*config, b.kubeconfig); err != nil {
		return fmt.Errorf("write the operator's kubeconfig: %w", err)
	}
	return nil
}

// Down leaves nothing behind.
func (b *Bed) Down(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stopLimit, fmt.Errorf("not down within %s", stopLimit))
	defer cancel()
	if err := cluster.Down(ctx, b.controlPlane(), io.Discard); err != nil {
		return fmt.Errorf("%w: what is left is in %s", err, b.dir)
	}
	return os.RemoveAll(b.dir)
}
