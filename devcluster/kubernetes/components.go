package main

import (
	"context"
	"flag"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics of every component
	_ "k8s.io/component-base/metrics/prometheus/version"  // build metric of every component
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	"github.com/mysql-operator/mysql-operator/devcluster/kubernetes/dns"
	"github.com/mysql-operator/mysql-operator/devcluster/kubernetes/images"
	"github.com/mysql-operator/mysql-operator/devcluster/kubernetes/node"
	"github.com/mysql-operator/mysql-operator/devcluster/kubernetes/provisioner"
)

// runner runs one component until it ends. Components that call os.Exit never return.
type runner func(args []string) error

func components() map[string]runner {
	return map[string]runner{
		"etcd":                    runEtcd,
		"kube-apiserver":          command(apiserver.NewAPIServerCommand),
		"kube-controller-manager": command(controllermanager.NewControllerManagerCommand),
		"kube-scheduler":          command(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
		"kubelet":                 command(func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }),
		"kube-proxy":              command(proxy.NewProxyCommand),
		"kubectl":                 runKubectl,
		"coredns":                 dns.Run,
		"local-provisioner":       provisioner.Run,
		"registry":                images.RunRegistry,
		"image-load":              images.RunLoad,
		"image-pack":              images.RunPack,
		"node":                    node.Run,
	}
}

// command runs a Kubernetes component as its own main function would.
func command(build func() *cobra.Command) runner {
	return func([]string) error {
		forgetForeignFlags()
		os.Exit(cli.Run(build()))
		return nil
	}
}

func runEtcd([]string) error {
	etcdmain.Main(os.Args)
	return nil
}

func runKubectl([]string) error {
	forgetForeignFlags()
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
	return nil
}

// forgetForeignFlags drops the flags that CoreDNS registers on the standard library's flag set when it is linked in. Kubernetes commands
// adopt all flags of that set, and already have a -version.
func forgetForeignFlags() {
	foreign := []string{"conf", "dns.port", "p", "pidfile", "plugins", "quiet", "version"}
	kept := flag.NewFlagSet(os.Args[0], flag.ExitOnError)
	flag.CommandLine.VisitAll(func(f *flag.Flag) {
		if !slices.Contains(foreign, f.Name) {
			kept.Var(f.Value, f.Name, f.Usage)
		}
	})
	flag.CommandLine = kept
}
