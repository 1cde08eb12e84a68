package kube

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster"
)

// IsDevCluster reports whether a kubeconfig is that of a dev cluster, which holds no data that a user needs.
func IsDevCluster(kubeconfig string) bool {
	absolute, err := filepath.Abs(kubeconfig)
	if err != nil {
		return false
	}
	own, err := cluster.Kubeconfig(filepath.Dir(absolute))
	return err == nil && own == absolute
}

// DeleteDeployedOperators makes sure that no operator runs as a Deployment, because two operators would reconcile the same resources. On a
// dev cluster it deletes such a Deployment. On any other cluster a user must decide, and the error says what to do.
func DeleteDeployedOperators(ctx context.Context, kubectl Kubectl) error {
	deployed, err := Deployed(ctx, kubectl)
	if err != nil {
		return err
	}
	for _, other := range deployed {
		namespace, name, _ := strings.Cut(other, "/")
		if !IsDevCluster(kubectl.Config) {
			return fmt.Errorf("an operator runs as Deployment %s: two would reconcile the same resources: run kubectl -n %s delete deployment %s, or use another cluster", other, namespace, name)
		}
		if kubectl.Echo != nil {
			fmt.Fprintln(kubectl.Echo, "Deleting the operator that make dev-up deployed: two would reconcile the same resources")
		}
		if _, err := kubectl.Run(ctx, "delete", "deployment", name, "-n", namespace, "--cascade=foreground"); err != nil {
			return err
		}
	}
	return nil
}
