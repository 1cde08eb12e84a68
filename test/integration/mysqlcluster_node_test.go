package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/schema"
	mysqlv1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// node plays scheduler, provisioner and kubelet for the members of a namespace: it gives every claim a volume and every Pod a
// simulated member, and probes whether that is ready.
type node struct {
	site    *site
	network *network
	ctx     context.Context //nolint:containedctx // the life of the node, which is what the struct is
	pods    sync.WaitGroup

	mu sync.Mutex
	// volumes are by the UID of their claim: they outlive Pods.
	volumes map[types.UID]*memberVolume
	// ever are the UIDs of all Pods there ever were, by name; living ends those that run.
	ever   map[string][]types.UID
	living map[types.UID]context.CancelFunc
	// latest is the version of mysql:latest.
	latest string
	// starting is for how long the agent of a Pod that starts answers before its mysqld does, a time.Duration.
	starting atomic.Int64
}

// startNode runs a node until the test ends.
func startNode(t *testing.T, s *site) *node {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	n := &node{
		site: s, ctx: ctx, network: &network{running: map[string]*simulatedMember{}, cut: map[string]bool{}, barred: map[string]replication.Accounts{}},
		volumes: map[types.UID]*memberVolume{}, ever: map[string][]types.UID{}, living: map[types.UID]context.CancelFunc{}, latest: "9.7.4",
	}
	watched := dynamicinformer.NewFilteredDynamicSharedInformerFactory(s.Dynamic, 0, s.namespace, nil)
	n.follow(t, watched, "persistentvolumeclaims", cache.ResourceEventHandlerFuncs{AddFunc: n.provide, UpdateFunc: func(_, now any) { n.provide(now) }})
	n.follow(t, watched, "secrets", cache.ResourceEventHandlerFuncs{AddFunc: n.remount, UpdateFunc: func(_, now any) { n.remount(now) }})
	n.follow(t, watched, "pods", cache.ResourceEventHandlerFuncs{AddFunc: n.run, DeleteFunc: n.end})
	watched.Start(ctx.Done())
	t.Cleanup(func() {
		stop()
		watched.Shutdown()
		n.pods.Wait()
		n.removeVolumes(context.WithoutCancel(ctx))
	})
	return n
}

func (n *node) follow(t *testing.T, watched dynamicinformer.DynamicSharedInformerFactory, what string, handler cache.ResourceEventHandler) {
	t.Helper()
	if _, err := watched.ForResource(coreResource(what)).Informer().AddEventHandler(handler); err != nil {
		t.Fatal(err)
	}
}

// provide binds a claim that has a class to a volume of its own.
func (n *node) provide(item any) {
	var claim corev1.PersistentVolumeClaim
	object, ok := item.(*unstructured.Unstructured)
	if !ok || schema.Decode(object, &claim) != nil || claim.Spec.StorageClassName == nil || claim.Spec.VolumeName != "" {
		return
	}
	volume := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "PersistentVolume",
		"metadata": map[string]any{"name": n.volumeName(claim.UID)},
		"spec": map[string]any{
			"capacity": map[string]any{"storage": "1Ti"}, "accessModes": []any{"ReadWriteOnce"},
			"persistentVolumeReclaimPolicy": "Retain", "storageClassName": *claim.Spec.StorageClassName,
			"hostPath": map[string]any{"path": "/nonexistent"},
			"claimRef": map[string]any{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": claim.Namespace, "name": claim.Name, "uid": string(claim.UID)},
		},
	}}
	_ = wait.PollUntilContextTimeout(n.ctx, 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := n.site.Dynamic.Resource(coreResource("persistentvolumes")).Create(ctx, volume, metav1.CreateOptions{})
		return err == nil || apierrors.IsAlreadyExists(err), nil
	})
}

func (n *node) volumeName(claim types.UID) string { return "volume-" + string(claim) }

func (n *node) removeVolumes(ctx context.Context) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for claim := range n.volumes {
		_ = n.site.Dynamic.Resource(coreResource("persistentvolumes")).Delete(ctx, n.volumeName(claim), metav1.DeleteOptions{})
	}
}

// run starts a Pod.
func (n *node) run(item any) {
	var pod corev1.Pod
	if object, ok := item.(*unstructured.Unstructured); !ok || schema.Decode(object, &pod) != nil || pod.Labels["app.kubernetes.io/name"] != "mysql" {
		return
	}
	ctx, stop := context.WithCancel(n.ctx)
	n.mu.Lock()
	n.living[pod.UID] = stop
	n.ever[pod.Name] = append(n.ever[pod.Name], pod.UID)
	n.mu.Unlock()
	n.pods.Go(func() { n.live(ctx, pod) })
}

// end ends a Pod.
func (n *node) end(item any) {
	if final, ok := item.(cache.DeletedFinalStateUnknown); ok {
		item = final.Obj
	}
	object, ok := item.(*unstructured.Unstructured)
	if !ok {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if stop, found := n.living[object.GetUID()]; found {
		stop()
		delete(n.living, object.GetUID())
	}
}

// live is a Pod's life: wait for what it mounts, run, and be probed.
func (n *node) live(ctx context.Context, pod corev1.Pod) {
	var member *simulatedMember
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var err error
		member, err = n.begin(ctx, pod)
		return err == nil, nil
	})
	if err != nil {
		return
	}
	defer member.stop()
	reported := ""
	_ = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		now := podStatus(pod.UID, member)
		if now == reported {
			return false, nil
		}
		_, err := n.site.Dynamic.Resource(coreResource("pods")).Namespace(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, []byte(now), metav1.PatchOptions{}, "status")
		if err == nil {
			reported = now
		}
		return false, nil
	})
}

// begin starts the member of a Pod once its claim is bound and its Secret is there.
func (n *node) begin(ctx context.Context, pod corev1.Pod) (*simulatedMember, error) {
	instance := pod.Labels["app.kubernetes.io/instance"]
	object, err := n.site.Dynamic.Resource(coreResource("persistentvolumeclaims")).Namespace(pod.Namespace).Get(ctx, "data-"+pod.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if phase, _, _ := unstructured.NestedString(object.Object, "status", "phase"); phase != string(corev1.ClaimBound) {
		return nil, fmt.Errorf("the claim is %s", phase)
	}
	mounted, err := n.site.secret(ctx, instance+"-tls")
	if err != nil {
		return nil, err
	}
	host := fmt.Sprintf("%s.%s-pods.%s.svc", pod.Name, instance, pod.Namespace)
	return n.network.start(host, n.versionOf(pod), n.volume(object.GetUID(), pod.Name), certificatesOf(mounted), time.Duration(n.starting.Load()))
}

// versionOf is what a member's mysqld says of itself.
func (n *node) versionOf(pod corev1.Pod) string {
	for _, container := range pod.Spec.Containers {
		if container.Name == "mysqld" && container.Image != "mysql:latest" {
			return told(container.Image)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.latest
}

// releases makes mysql:latest another version for Pods that start from now on.
func (n *node) releases(version string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.latest = version
}

// bar sets the accounts that no client can log in to with mysqld of a version.
func (n *node) bar(version string, accounts ...replication.Account) {
	n.network.mu.Lock()
	defer n.network.mu.Unlock()
	n.network.barred[version] = replication.Accounts{Named: accounts}
}

// remount brings members a Secret that has changed.
func (n *node) remount(item any) {
	var secret corev1.Secret
	object, ok := item.(*unstructured.Unstructured)
	if !ok || schema.Decode(object, &secret) != nil {
		return
	}
	if cluster, ok := strings.CutSuffix(secret.Name, "-tls"); ok {
		n.network.remount(cluster, certificatesOf(secret))
	}
}

func certificatesOf(secret corev1.Secret) certificates {
	return certificates{authority: secret.Data["ca.crt"], certificate: secret.Data["tls.crt"], key: secret.Data["tls.key"]}
}

// volume returns what is on a claim's volume; UUIDs tell the member's number, so that runs can be compared.
func (n *node) volume(claim types.UID, member string) *memberVolume {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.volumes[claim] == nil {
		ordinal, _ := strconv.Atoi(member[strings.LastIndex(member, "-")+1:])
		n.volumes[claim] = &memberVolume{uuid: fmt.Sprintf("%08d-0000-0000-0000-000000000000", ordinal)}
	}
	return n.volumes[claim]
}

// podStatus is what kubelet reports, for this very Pod and not for one that has taken its place.
func podStatus(pod types.UID, member *simulatedMember) string {
	ready := "False"
	if member.ready() {
		ready = "True"
	}
	return fmt.Sprintf(`{"metadata":{"uid":%q},"status":{"phase":"Running","podIP":%q,"podIPs":[{"ip":%q}],"conditions":[{"type":"Ready","status":%q}],"initContainerStatuses":[%s],"containerStatuses":[%s]}}`,
		pod, member.address, member.address, ready, runningContainer("agent", true), runningContainer("mysqld", ready == "True"))
}

func runningContainer(name string, ready bool) string {
	return fmt.Sprintf(`{"name":%q,"image":"none","imageID":"none","restartCount":0,"ready":%t,"started":true,"state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}}`, name, ready)
}

// podsEver are all Pods that a cluster has had, by name.
func (n *node) podsEver(cluster string) map[string][]types.UID {
	n.mu.Lock()
	defer n.mu.Unlock()
	found := map[string][]types.UID{}
	for name, uids := range n.ever {
		if number, ok := strings.CutPrefix(name, cluster+"-"); ok && len(number) == 1 {
			found[name] = slices.Clone(uids)
		}
	}
	return found
}

// comesAgain waits until a cluster's second Pod of a name is ready: the operator has made passes over it by then, and assigned its role.
// That the cluster is not Ready meanwhile may be over before anybody looks.
func (s *site) comesAgain(t *testing.T, cluster, name string) {
	t.Helper()
	soon(t, func(ctx context.Context) string {
		ever := s.node.podsEver(cluster)[name]
		found, err := s.of("pods").Get(ctx, name, metav1.GetOptions{})
		if err != nil || len(ever) != 2 || found.GetUID() != ever[1] {
			return fmt.Sprintf("there have been %d Pods %s (%v)", len(ever), name, err)
		}
		var pod corev1.Pod
		if err := schema.Decode(found, &pod); err != nil {
			return err.Error()
		}
		if !slices.ContainsFunc(pod.Status.Conditions, func(one corev1.PodCondition) bool {
			return one.Type == corev1.PodReady && one.Status == corev1.ConditionTrue
		}) {
			return fmt.Sprintf("the new Pod %s is not ready", name)
		}
		return ""
	})
}

// held waits until all members hold the latest record: without the former primary's volume, only that tells that nothing is lost.
func (s *site) held(t *testing.T, cluster mysqlv1.MySQLCluster) {
	t.Helper()
	soon(t, func(context.Context) string {
		n := s.node.network
		n.mu.Lock()
		defer n.mu.Unlock()
		for host, member := range n.running {
			if strings.HasPrefix(host, cluster.Name+"-") && member.volume.held.Revision < cluster.Status.Revision {
				return fmt.Sprintf("%s holds revision %d of %d", host, member.volume.held.Revision, cluster.Status.Revision)
			}
		}
		return ""
	})
}

// podsOnce fails the test unless a cluster had each of its Pods exactly once.
func (n *node) podsOnce(t *testing.T, cluster string, members int) {
	t.Helper()
	ever := n.podsEver(cluster)
	if len(ever) != members {
		t.Errorf("cluster %s has had the Pods %v, want %d", cluster, slices.Sorted(maps.Keys(ever)), members)
	}
	for name, uids := range ever {
		if len(uids) != 1 {
			t.Errorf("Pod %s was made %d times, want once", name, len(uids))
		}
	}
}

// cutOff makes the agent of a member deaf to the operator, or ends that.
func (n *node) cutOff(member string, deaf bool) {
	n.network.mu.Lock()
	defer n.network.mu.Unlock()
	for host := range n.network.running {
		if strings.HasPrefix(host, member+".") {
			n.network.cut[host] = deaf
		}
	}
}
