package cluster

import (
	"context"
	"fmt"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster/api"
)

// object is one that every dev cluster has from the start.
type object struct {
	path    string
	content map[string]any
}

// bootstrap are the objects that a bare control plane lacks: the rights of the
// components that Kubernetes' own default roles do not know, and the default
// StorageClass.
func bootstrap() []object {
	objects := []object{
		storageClass("standard"),
		binding("devcluster:kubelet-api", "system:kubelet-api-admin", "kube-apiserver-kubelet-client"),
	}
	objects = append(objects, role("devcluster:coredns", []map[string]any{
		rule("", []string{"endpoints", "services", "pods", "namespaces"}, "list", "watch"),
		rule("discovery.k8s.io", []string{"endpointslices"}, "list", "watch"),
	})...)
	return append(objects, role("devcluster:local-provisioner", []map[string]any{
		rule("", []string{"persistentvolumes"}, "get", "list", "watch", "create", "patch", "update", "delete"),
		rule("", []string{"persistentvolumeclaims"}, "get", "list", "watch", "update"),
		rule("", []string{"persistentvolumeclaims/status"}, "patch"),
		rule("", []string{"nodes"}, "get", "list", "watch"),
		rule("", []string{"events"}, "create", "patch", "update"),
		rule("events.k8s.io", []string{"events"}, "create", "patch", "update"),
		rule("storage.k8s.io", []string{"storageclasses"}, "get", "list", "watch"),
	})...)
}

func storageClass(name string) object {
	return object{path: "/apis/storage.k8s.io/v1/storageclasses/" + name, content: map[string]any{
		"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
		"metadata":             map[string]any{"name": name, "annotations": map[string]any{"storageclass.kubernetes.io/is-default-class": "true"}},
		"provisioner":          "devcluster.local/folder",
		"reclaimPolicy":        "Delete",
		"volumeBindingMode":    "WaitForFirstConsumer",
		"allowVolumeExpansion": true,
	}}
}

// role grants rules to the user of the same name.
func role(name string, rules []map[string]any) []object {
	return []object{
		{path: "/apis/rbac.authorization.k8s.io/v1/clusterroles/" + name, content: map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
			"metadata": map[string]any{"name": name}, "rules": rules,
		}},
		binding(name, name, name),
	}
}

func binding(name, role, user string) object {
	return object{path: "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/" + name, content: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
		"metadata": map[string]any{"name": name},
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
		"subjects": []map[string]any{{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}},
	}}
}

func rule(group string, resources []string, verbs ...string) map[string]any {
	return map[string]any{"apiGroups": []string{group}, "resources": resources, "verbs": verbs}
}

func applyBootstrap(ctx context.Context, client *api.Client) error {
	for _, o := range bootstrap() {
		if err := client.Apply(ctx, o.path, o.content); err != nil {
			return fmt.Errorf("set up cluster: %w", err)
		}
	}
	return nil
}
