package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mysql-operator/mysql-operator/cmd/internal/cli"
)

// timeout bounds all requests of a subcommand together.
const timeout = time.Minute

// The name of the operator's program and container, and its label, as `mysql-operator manifests operator` prints them.
const (
	operatorName  = "mysql-operator"
	operatorLabel = "app.kubernetes.io/name"
)

// The values of --output.
const (
	outputText = "text"
	outputJSON = "json"
)

// options are the flags of all subcommands. Those with which to connect are kubectl's.
type options struct {
	kubeconfig, context, namespace string
	operatorNamespace              string
	output                         string
}

// parse reads the command line, and returns the arguments that are not flags.
func (o *options) parse(name string, p cli.Process) ([]string, error) {
	flags := pflag.NewFlagSet("kubectl mysql "+name, pflag.ContinueOnError)
	flags.StringVarP(&o.namespace, "namespace", "n", "", "namespace of the clusters (default: the current one of the kubeconfig)")
	flags.StringVar(&o.context, "context", "", "context in the kubeconfig (default: the current one)")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file (default: KUBECONFIG, or ~/.kube/config)")
	flags.StringVar(&o.operatorNamespace, "operator-namespace", operatorName, "namespace in which the operator runs")
	flags.StringVarP(&o.output, "output", "o", outputText, "text or json")
	words, err := cli.Parse(flags, p)
	if err == nil {
		err = cli.OneOf("output", o.output, outputText, outputJSON)
	}
	return words, err
}

// connection is how a subcommand reads the Kubernetes cluster.
type connection struct {
	rest      *rest.Config
	api       dynamic.Interface
	namespace string
}

func (o *options) connect() (connection, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: o.context}
	overrides.Context.Namespace = o.namespace
	config := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	found, err := config.ClientConfig()
	if err != nil {
		return connection{}, fmt.Errorf("find the Kubernetes cluster: %w: name one with --kubeconfig or --context", err)
	}
	namespace, _, err := config.Namespace()
	if err != nil {
		return connection{}, fmt.Errorf("find the namespace: %w: name it with --namespace", err)
	}
	api, err := dynamic.NewForConfig(found)
	if err != nil {
		return connection{}, fmt.Errorf("make a client of the API server: %w", err)
	}
	return connection{rest: found, api: api, namespace: namespace}, nil
}

func printJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}
