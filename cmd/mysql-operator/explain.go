package main

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/cmd/internal/cli"
	"github.com/mysql-operator/mysql-operator/reconcile"
	mysqlcluster "github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster"
	"github.com/mysql-operator/mysql-operator/schema"
)

// explainTimeout bounds all requests of explain together.
const explainTimeout = 30 * time.Second

// explainOptions are the flags of explain.
type explainOptions struct{ kubeconfig, namespace, output string }

func (o *explainOptions) flags() *pflag.FlagSet {
	flags := pflag.NewFlagSet("mysql-operator explain failover NAMESPACE/NAME", pflag.ContinueOnError)
	kubeconfigFlag(flags, &o.kubeconfig)
	flags.StringVar(&o.namespace, "namespace", "", "namespace in which the operator runs (default: this Pod's, or the kubeconfig's current one)")
	flags.StringVarP(&o.output, "output", "o", outputText, "text or json")
	return flags
}

// The values of --output.
const (
	outputText = "text"
	outputJSON = "json"
)

// runExplain prints who would take over from the primary of a cluster, or why no member may. It changes nothing.
func runExplain(ctx context.Context, p cli.Process) error {
	o := explainOptions{}
	words, err := cli.Parse(o.flags(), p)
	if err != nil {
		return err
	}
	if err := cli.OneOf("output", o.output, outputText, outputJSON); err != nil {
		return err
	}
	if len(words) != 2 || words[0] != "failover" {
		return cli.BadUsage("explain needs failover NAMESPACE/NAME")
	}
	namespace, name, found := strings.Cut(words[1], "/")
	if !found || namespace == "" || name == "" {
		return cli.BadUsage("explain failover needs NAMESPACE/NAME of a MySQLCluster, not %q", words[1])
	}
	ctx, cancel := context.WithTimeout(ctx, explainTimeout)
	defer cancel()
	explained, err := o.explain(ctx, types.NamespacedName{Namespace: namespace, Name: name})
	if err != nil {
		return err
	}
	if o.output == outputJSON {
		encoder := json.NewEncoder(p.Out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(explained)
	}
	return printExplanation(p.Out, explained)
}

func (o explainOptions) explain(ctx context.Context, key types.NamespacedName) (mysqlcluster.Explanation, error) {
	cluster, err := connect(o.kubeconfig)
	if err != nil {
		return mysqlcluster.Explanation{}, err
	}
	reader, err := reconcile.NewReader(cluster.rest)
	if err != nil {
		return mysqlcluster.Explanation{}, err
	}
	home := cluster.namespace
	if o.namespace != "" {
		home = o.namespace
	}
	return mysqlcluster.Explainer{Reader: reader, Home: home, Now: time.Now}.Explain(ctx, schema.Kinds()[0], key)
}
