package provisioner

import (
	"context"
	"flag"
	"fmt"
	"os/signal"
	"path/filepath"
	"syscall"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// Run provisions, expands and removes volumes until it is stopped by a signal.
func Run(args []string) error {
	flags := flag.NewFlagSet("local-provisioner", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig file")
	root := flags.String("root", "", "folder with one folder of volumes per node")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if !filepath.IsAbs(*root) {
		return fmt.Errorf("start provisioner: --root %q is not an absolute path", *root)
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return fmt.Errorf("start provisioner: %w", err)
	}
	config.QPS = -1 // one cluster on one machine needs no rate limit
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("start provisioner: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	factory := informers.NewSharedInformerFactory(client, 0)
	expander, err := newExpander(client, factory)
	if err != nil {
		return fmt.Errorf("start provisioner: %w", err)
	}
	factory.Start(ctx.Done())
	go expander.run(ctx)
	controller.NewProvisionController(ctx, client, Name, folders{root: *root}, controller.LeaderElection(false)).Run(ctx)
	return nil
}
