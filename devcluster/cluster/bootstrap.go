package cluster

import (
	"context"
	"strings"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster/api"
)

const (
	rbacGroup = "rbac.authorization.k8s.io"
	rbacPath  = "/apis/" + rbacGroup + "/v1"
	kindKey   = "kind"
	nameKey   = "name"
)

// object is an object that every dev cluster has from the start.
type object struct {
	path    string
	content map[string]any
}

// bootstrap returns the objects that a control plane does not create itself: the permissions of components that Kubernetes' default roles
// do not cover, and the default StorageClass.
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
	o := newObject("/apis/storage.k8s.io/v1", "storageclasses", "StorageClass", name)
	o.content["metadata"] = map[string]any{nameKey: name, "annotations": map[string]any{"storageclass.kubernetes.io/is-default-class": "true"}}
	o.content["provisioner"] = "devcluster.local/folder"
	o.content["reclaimPolicy"] = "Delete"
	o.content["volumeBindingMode"] = "WaitForFirstConsumer"
	o.content["allowVolumeExpansion"] = true
	return o
}

// role grants rules to the user of the same name.
func role(name string, rules []map[string]any) []object {
	o := newObject(rbacPath, "clusterroles", "ClusterRole", name)
	o.content["rules"] = rules
	return []object{o, binding(name, name, name)}
}

func binding(name, role, user string) object {
	o := newObject(rbacPath, "clusterrolebindings", "ClusterRoleBinding", name)
	o.content["roleRef"] = map[string]any{"apiGroup": rbacGroup, kindKey: "ClusterRole", nameKey: role}
	o.content["subjects"] = []map[string]any{{"apiGroup": rbacGroup, kindKey: "User", nameKey: user}}
	return o
}

// newObject returns a cluster-wide object with only its name.
func newObject(group, resource, kind, name string) object {
	return object{path: group + "/" + resource + "/" + name, content: map[string]any{
		"apiVersion": strings.TrimPrefix(group, "/apis/"),
		kindKey:      kind,
		"metadata":   map[string]any{nameKey: name},
	}}
}

func rule(group string, resources []string, verbs ...string) map[string]any {
	return map[string]any{"apiGroups": []string{group}, "resources": resources, "verbs": verbs}
}

func applyBootstrap(ctx context.Context, client *api.Client) error {
	for _, o := range bootstrap() {
		if err := client.Apply(ctx, o.path, o.content); err != nil {
			return err
		}
	}
	return nil
}
