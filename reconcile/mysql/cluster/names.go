package cluster

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

const (
	prefix = "cr.mysqloperator.grtl.github.com/"

	// roleLabel is the role of a Pod's member; the read Service selects by it.
	roleLabel   = prefix + "role"
	rolePrimary = "primary"
	roleReplica = "replica"

	labelName      = "app.kubernetes.io/name"
	labelInstance  = "app.kubernetes.io/instance"
	labelManagedBy = "app.kubernetes.io/managed-by"
	managedBy      = "mysql-operator"
	// labelPod is set by the StatefulSet controller on each of its Pods.
	labelPod = "statefulset.kubernetes.io/pod-name"

	// labelUID, on the Secret with the CAs of a cluster, is the cluster's UID.
	labelUID = prefix + "cluster-uid"

	// managedSelector selects everything that the operator creates for clusters.
	managedSelector = labelManagedBy + "=" + managedBy + "," + labelName + "=mysql"
)

// The resources that this kind creates or reads.
func statefulSets() apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
}
func pods() apischema.GroupVersionResource     { return core("pods") }
func volumes() apischema.GroupVersionResource  { return core("persistentvolumeclaims") }
func services() apischema.GroupVersionResource { return core("services") }
func configs() apischema.GroupVersionResource  { return core("configmaps") }
func secrets() apischema.GroupVersionResource  { return core("secrets") }
func accounts() apischema.GroupVersionResource { return core("serviceaccounts") }
func budgets() apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}
}

func networkPolicies() apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}
}

func jobs() apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
}

func core(resource string) apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Version: "v1", Resource: resource}
}

// names are the names of everything that belongs to one cluster.
type names struct{ namespace, cluster string }

func namesOf(cluster v1.MySQLCluster) names { return names{cluster.Namespace, cluster.Name} }

// key identifies the cluster among those of all namespaces.
func (n names) key() string { return n.namespace + "/" + n.cluster }

func (n names) member(ordinal int) string { return fmt.Sprintf("%s-%d", n.cluster, ordinal) }
func (n names) volume(ordinal int) string { return "data-" + n.member(ordinal) }
func (n names) read() string              { return n.cluster + "-read" }
func (n names) pods() string              { return n.cluster + "-pods" }
func (n names) config() string            { return n.cluster + "-config" }
func (n names) accounts() string          { return n.cluster + "-accounts" }
func (n names) certificate() string       { return n.cluster + "-tls" }
func (n names) trust() string             { return n.cluster + "-ca-cert" }
func (n names) authority() string         { return agent.AuthoritySecret(n.namespace, n.cluster) }
func (n names) restoreJob() string        { return transfer.JobName(n.cluster, "restore") }
func (n names) versionJob() string        { return transfer.JobName(n.cluster, "version") }
func (n names) host(member string) string {
	return member + "." + n.pods() + "." + n.namespace + ".svc"
}
func (n names) service(name string) string { return name + "." + n.namespace + ".svc" }

// ordinal reads a member's number from its name; ok is false for a name that is not a member's.
func (n names) ordinal(member string) (ordinal int, ok bool) {
	number, found := strings.CutPrefix(member, n.cluster+"-")
	if !found {
		return 0, false
	}
	ordinal, err := strconv.Atoi(number)
	return ordinal, err == nil && ordinal >= 0 && strconv.Itoa(ordinal) == number
}

// labels are on everything that belongs to the cluster; they also select its Pods.
func (n names) labels() map[string]string {
	return map[string]string{labelName: "mysql", labelInstance: n.cluster, labelManagedBy: managedBy}
}

func (n names) selector() string {
	return managedSelector + "," + labelInstance + "=" + n.cluster
}

func merged(sets ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, set := range sets {
		maps.Copy(all, set)
	}
	return all
}
