package cluster

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/restore"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// observed is what a pass saw. All decisions follow from it and from the cluster resource.
type observed struct {
	now time.Time
	// versions are the resourceVersions of the children in the caches.
	versions string
	// set is the StatefulSet; nil before it exists.
	set     *appsv1.StatefulSet
	pods    []corev1.Pod
	volumes []corev1.PersistentVolumeClaim
	members []replication.Member
	// route is the member that clients reach for writes: the primary on record or, until there is one, the member that the Service selected
	// before.
	route string
	// bundle are the CAs that clients should trust.
	bundle []byte
	// refused is why Kubernetes does not create a Pod; nil if nothing prevents it, or if Kubernetes does not report why.
	refused *report.Problem
	// answered is when the members had answered.
	answered time.Time
	// suspectedFor is for how long a member has been suspected.
	suspectedFor time.Duration
	// urgent is the record that must be written before the other members are asked; nil for none.
	urgent *replication.Record
}

// observe reads the children from the caches and asks the agents.
func (r *reconciler) observe(ctx context.Context, client *reconcile.Client, cluster v1.MySQLCluster, agents *agent.Client) (observed, error) {
	n := children.NamesOf(cluster)
	seen := observed{now: r.now(), route: cmp.Or(cluster.Status.Primary, cluster.Status.FormerPrimary)}
	if seen.route == "" {
		seen.route = r.routed(n)
	}
	seen.versions = r.versions(n)
	if err := r.observeChildren(ctx, client, n, &seen); err != nil {
		return seen, err
	}
	if err := r.observeRefusal(ctx, n, &seen); err != nil {
		return seen, err
	}
	seen.members = membersOf(n, cluster, seen)
	if err := r.confirmAbsent(ctx, client, cluster, &seen); err != nil {
		return seen, err
	}
	all := targets{agents: agents, primary: cluster.Status.Primary, inSync: cluster.Status.InSync, addresses: seen.addresses(), limit: r.limits(cluster, seen.now), least: r.leastFor(cluster)}
	all.askPrimary(ctx, seen.members)
	if next, isDue := view(cluster, seen).Urgent(); isDue {
		seen.urgent = &next
		return seen, nil
	}
	r.confirmFirst(ctx, client, cluster, seen, agents)
	all.askOthers(ctx, seen.members)
	seen.answered = r.now()
	r.noteUnheard(keyOf(cluster), recordOf(cluster.Status), &seen)
	seen.suspectedFor = r.noteSuspicion(cluster, seen.suspect(cluster.Status), seen.now)
	r.memory.noteSilent(cluster, seen.members, seen.now, seen.answered)
	r.memory.noteReported(keyOf(cluster), cluster.UID, seen.members)
	return seen, nil
}

func (r *reconciler) observeChildren(ctx context.Context, client *reconcile.Client, n children.Names, seen *observed) error {
	var err error
	if object, found := r.reader.Cached(children.StatefulSets()).Get(n.Namespace, n.Cluster); found {
		seen.set, err = ownSet(client.Owner(), object, n)
	} else {
		seen.set, err = liveSet(ctx, r.reader, client.Owner(), n) // another operator, whose record this pass reads, may have created it
	}
	if err != nil {
		return err
	}
	var pods []*unstructured.Unstructured
	if seen.set != nil {
		pods = r.reader.Cached(children.Pods()).Owned(seen.set.UID)
	}
	return seen.take(n, pods, r.reader.Cached(children.Claims()).Indexed(indexCluster, n.Key()))
}

// take adds the Pods of the StatefulSet, and the cluster's volumes.
func (o *observed) take(n children.Names, pods, volumes []*unstructured.Unstructured) error {
	for _, object := range pods {
		if object.GetNamespace() != n.Namespace {
			continue // an owner is in the same namespace: garbage collection removes this Pod
		}
		var pod corev1.Pod
		if err := schema.Decode(object, &pod); err != nil {
			return err
		}
		o.pods = append(o.pods, pod)
	}
	for _, object := range volumes {
		var volume corev1.PersistentVolumeClaim
		if err := schema.Decode(object, &volume); err != nil {
			return err
		}
		o.volumes = append(o.volumes, volume)
	}
	return nil
}

// versions returns a text that changes whenever a child changes, without reading the child. A child that does not exist has no version.
func (r *reconciler) versions(n children.Names) string {
	all := []string{}
	one := func(resource apischema.GroupVersionResource, names ...string) {
		for _, name := range names {
			all = append(all, r.reader.CachedVersion(resource, n.Namespace, name))
		}
	}
	one(children.ServiceAccounts(), n.Cluster)
	one(children.ConfigMaps(), n.ConfigMap(), n.TrustMap())
	one(children.Services(), n.PodsService(), n.Cluster, n.ReadService())
	one(children.PodDisruptionBudgets(), n.Cluster)
	one(children.NetworkPolicies(), n.Cluster)
	one(children.StatefulSets(), n.Cluster)
	for _, resource := range []apischema.GroupVersionResource{children.Pods(), children.Claims()} {
		all = append(all, r.reader.CachedVersions(resource, indexCluster, n.Key())...)
	}
	return strings.Join(all, " ")
}

// membersOf lists every member that exists, existed or should exist.
func membersOf(n children.Names, cluster v1.MySQLCluster, seen observed) []replication.Member {
	found := map[int]replication.Member{}
	note := func(ordinal int, change func(*replication.Member)) {
		member, known := found[ordinal]
		if !known {
			name := n.Member(ordinal)
			member = replication.Member{Name: name, Ordinal: ordinal, Host: n.Host(name), Unreachable: "its Pod does not exist"}
		}
		change(&member)
		found[ordinal] = member
	}
	for ordinal := range max(children.WantedReplicas(cluster), scaleOf(seen)) {
		note(ordinal, func(*replication.Member) {})
	}
	for _, name := range cluster.Status.InSync {
		if ordinal, ok := n.Ordinal(name); ok {
			note(ordinal, func(*replication.Member) {})
		}
	}
	for _, pod := range seen.pods {
		if ordinal, ok := n.Ordinal(pod.Name); ok {
			note(ordinal, func(member *replication.Member) {
				member.Pod, member.IsRunning, member.Address = true, isRunning(pod), addressOf(pod)
			})
		}
	}
	for _, volume := range seen.volumes {
		for ordinal := range maxMembers {
			if volume.Name == n.Claim(ordinal) {
				older := volume.CreationTimestamp.Time.Before(cluster.CreationTimestamp.Time) || ordinal == 0 && restore.HasBegun(cluster.Status)
				note(ordinal, func(member *replication.Member) { member.OlderData = older })
			}
		}
	}
	return sortedMembers(found)
}

// maxMembers is the highest number of members that a cluster can ever have had; the schema limits spec.replicas to far fewer.
const maxMembers = 100

func sortedMembers(found map[int]replication.Member) []replication.Member {
	members := make([]replication.Member, 0, len(found))
	for _, member := range found {
		members = append(members, member)
	}
	slices.SortFunc(members, func(a, b replication.Member) int { return a.Ordinal - b.Ordinal })
	return members
}

func scaleOf(seen observed) int {
	if seen.set == nil || seen.set.Spec.Replicas == nil {
		return 0
	}
	return int(*seen.set.Spec.Replicas)
}

// addresses returns the IP addresses of the members' agents, in the order of the members; empty where no agent runs.
func (o observed) addresses() []string {
	all := make([]string, 0, len(o.members))
	for _, member := range o.members {
		address := ""
		if pod, found := o.pod(member.Name); found && runsAgent(pod) {
			address = pod.Status.PodIP
		}
		all = append(all, address)
	}
	return all
}

func (o observed) pod(name string) (corev1.Pod, bool) {
	for _, pod := range o.pods {
		if pod.Name == name {
			return pod, true
		}
	}
	return corev1.Pod{}, false
}

// serves reports whether clients reach a member through its Service: the member performs its role, and kubelet reports its Pod as ready.
func (o observed) serves(member replication.Member) bool {
	pod, found := o.pod(member.Name)
	return found && isReady(pod) && member.Status != nil && member.Status.Serves()
}

// heard returns a member's report of itself; nil while the member does not answer.
func (o observed) heard(name string) *replication.Status {
	member, _ := memberNamed(o.members, name)
	return member.Status
}

func memberNamed(members []replication.Member, name string) (replication.Member, bool) {
	at := slices.IndexFunc(members, func(member replication.Member) bool { return member.Name == name })
	if at < 0 {
		return replication.Member{}, false
	}
	return members[at], true
}

// addressOf returns the IP address of a Pod; empty if it has none, or has ended and another Pod may have its address.
func addressOf(pod corev1.Pod) string {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return ""
	}
	return pod.Status.PodIP
}

// runsAgent reports whether the agent's container runs now.
func runsAgent(pod corev1.Pod) bool { return runs(pod, children.ContainerAgent) }

// isRunning reports whether a member's agent runs, and Kubernetes does not end it.
func isRunning(pod corev1.Pod) bool { return pod.DeletionTimestamp == nil && runsAgent(pod) }

func runs(pod corev1.Pod, container string) bool {
	return slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses), func(status corev1.ContainerStatus) bool {
		return status.Name == container && status.State.Running != nil
	})
}
