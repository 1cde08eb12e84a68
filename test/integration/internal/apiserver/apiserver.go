// Package apiserver gives integration tests a real control plane: etcd, kube-apiserver and kube-controller-manager, without nodes and
// without root.
package apiserver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster"
	"github.com/mysql-operator/mysql-operator/devcluster/cluster/daemon"
)

// keepVariable names an environment variable with a folder: the shared control plane lives there then, and is left running for the
// next run. Without it every run has one of its own, in a temporary folder.
const keepVariable = "MYSQL_OPERATOR_TEST_CLUSTER"

// startTimeout bounds starting a control plane, its first build apart, which says by itself how it goes.
const startTimeout = 15 * time.Minute

// Server is a control plane.
type Server struct {
	// Config is the administrator's.
	Config *rest.Config
	// Dynamic is a client by it.
	Dynamic dynamic.Interface

	options cluster.Options
}

// Pool owns the control plane that the tests of a package share.
type Pool struct {
	once   sync.Once
	server *Server
	err    error
	stop   func() error
}

// Run runs a package's tests and then ends what they shared. It is all that TestMain has to do.
func (p *Pool) Run(m *testing.M) {
	m.Run()
	if p.stop == nil {
		return
	}
	if err := p.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// Shared returns the control plane that the package's tests share, started by the first that asks.
func (p *Pool) Shared(t *testing.T) *Server {
	t.Helper()
	p.once.Do(func() { p.start(context.WithoutCancel(t.Context()), os.Getenv(keepVariable)) })
	if p.err != nil {
		t.Fatal(p.err)
	}
	return p.server
}

func (p *Pool) start(ctx context.Context, dir string) {
	kept := dir != ""
	if !kept {
		dir, p.err = os.MkdirTemp("", "control-plane-")
	}
	if p.err != nil {
		return
	}
	p.server, p.err = start(ctx, dir)
	if p.err == nil && !kept {
		p.stop = func() error { return p.server.down(ctx) }
	}
}

// Own starts a control plane that is this test's alone, and ends it with the test.
func Own(t *testing.T) *Server {
	t.Helper()
	server, err := start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.down(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return server
}

func start(ctx context.Context, dir string) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	options := cluster.Options{Dir: dir, ControlPlaneOnly: true, WithoutAuditLog: true, Progress: os.Stderr}
	started, err := cluster.Up(ctx, options)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", started.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of the control plane: %w", err)
	}
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the control plane: %w", err)
	}
	return &Server{Config: config, Dynamic: client, options: options}, nil
}

func (s *Server) down(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := cluster.Down(ctx, s.options.Dir, os.Stderr); err != nil {
		return err
	}
	return os.RemoveAll(s.options.Dir)
}

// Kill ends the API server at once, as a crash would. etcd stays.
func (s *Server) Kill(t *testing.T) {
	t.Helper()
	running := daemon.Keeper{Dir: filepath.Join(s.options.Dir, "cluster", "run")}
	if err := running.Stop(t.Context(), "kube-apiserver", 0); err != nil {
		t.Fatal(err)
	}
}

// Restart starts what was killed, and returns when it is ready.
func (s *Server) Restart(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if _, err := cluster.Up(ctx, s.options); err != nil {
		t.Fatal(err)
	}
}

// Namespace makes a namespace for the test and has it deleted afterwards. No test waits until it is gone.
func (s *Server) Namespace(t *testing.T) string {
	t.Helper()
	namespaces := s.Dynamic.Resource(apischema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"generateName": "test-"}}}
	made, err := namespaces.Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = namespaces.Delete(context.WithoutCancel(t.Context()), made.GetName(), metav1.DeleteOptions{})
	})
	return made.GetName()
}

// Eventually waits until what holds, at most 30 seconds; what says in words what is missing while it does not hold.
func Eventually(t *testing.T, holds func(ctx context.Context) (missing string)) {
	t.Helper()
	missing := "nothing was looked at"
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		now := holds(ctx)
		if now == "" || ctx.Err() == nil { // what a cut look says hides what the looks before it said
			missing = now
		}
		return now == "", nil
	})
	if err != nil {
		t.Fatalf("waited 30 s in vain: %s", missing)
	}
}
