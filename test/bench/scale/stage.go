package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
	"github.com/mysql-operator/mysql-operator/test/bench/standin"
	"github.com/mysql-operator/mysql-operator/test/bench/testbed"
)

const (
	namespace  = "bench"
	rootSecret = "root"
	// hands is how many things the stage does at once.
	hands = 16
)

// stage plays all that is not the operator: people who make clusters, the controller of StatefulSets, kubelets, and members.
type stage struct {
	api     dynamic.Interface
	kind    schema.Kind
	members *standin.Members
	stop    context.CancelFunc
	work    chan appsv1.StatefulSet
	done    sync.WaitGroup

	// sets counts the StatefulSets there are.
	sets atomic.Int64

	mu    sync.Mutex
	ready map[string]bool
	// made and told are when each cluster was created, and when its first conditions were seen.
	made, told map[string]time.Time
	failures   []error
}

// newStage begins to play; with members Pods run, without they stay as they were made.
func newStage(ctx context.Context, bed *testbed.Bed, withMembers bool) (*stage, error) {
	kinds, err := schema.Select([]string{"MySQLCluster"})
	if err != nil {
		return nil, err
	}
	for _, arguments := range [][]string{
		{"create", "namespace", namespace},
		{"create", "secret", "generic", rootSecret, "--namespace", namespace, "--from-literal=password=bench-Passw0rd"},
	} {
		if _, err := bed.Kubectl.Run(ctx, arguments...); err != nil {
			return nil, err
		}
	}
	config := rest.CopyConfig(bed.Config)
	config.QPS = -1 // as fast as the API server can
	api, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	const enough = 10000
	s := &stage{
		api: api, kind: kinds[0],
		work: make(chan appsv1.StatefulSet, enough), ready: map[string]bool{}, made: map[string]time.Time{}, told: map[string]time.Time{},
	}
	if withMembers {
		if s.members, err = standin.Start(ctx, api); err != nil {
			return nil, err
		}
	}
	ctx, s.stop = context.WithCancel(ctx)
	watches := dynamicinformer.NewFilteredDynamicSharedInformerFactory(api, 0, namespace, nil)
	handlers := map[apischema.GroupVersionResource]cache.ResourceEventHandler{
		appsv1.SchemeGroupVersion.WithResource("statefulsets"): cache.ResourceEventHandlerFuncs{AddFunc: s.noticeSet},
		s.kind.GVR(): cache.ResourceEventHandlerFuncs{AddFunc: s.noticeCluster, UpdateFunc: func(_, now any) { s.noticeCluster(now) }},
	}
	for resource, handler := range handlers {
		if _, err := watches.ForResource(resource).Informer().AddEventHandler(handler); err != nil {
			return nil, errors.Join(err, s.end())
		}
	}
	watches.Start(ctx.Done())
	for range hands {
		s.done.Go(func() { s.play(ctx) })
	}
	s.done.Go(func() {
		<-ctx.Done()
		watches.Shutdown()
	})
	return s, nil
}

func (s *stage) end() error {
	s.stop()
	s.done.Wait()
	if s.members != nil {
		return s.members.Stop()
	}
	return nil
}

func (s *stage) noticeSet(item any) {
	object, ok := item.(*unstructured.Unstructured)
	var set appsv1.StatefulSet
	if !ok {
		return
	}
	if err := schema.Decode(object, &set); err != nil {
		s.fail(err)
		return
	}
	s.sets.Add(1)
	s.work <- set
}

func (s *stage) noticeCluster(item any) {
	object, ok := item.(*unstructured.Unstructured)
	var cluster v1.MySQLCluster
	if !ok || schema.Decode(object, &cluster) != nil {
		return
	}
	is := meta.IsStatusConditionTrue(cluster.Status.Conditions, v1.ConditionReady)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready[cluster.Name] = is
	if _, isTold := s.told[cluster.Name]; !isTold && len(cluster.Status.Conditions) > 0 {
		s.told[cluster.Name] = time.Now()
	}
}

// firstConditions is how long each cluster that has conditions was without any, in order, and whether all have.
func (s *stage) firstConditions() (waits []time.Duration, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, made := range s.made {
		if told, isTold := s.told[name]; isTold {
			waits = append(waits, max(0, told.Sub(made)))
		}
	}
	slices.Sort(waits)
	return waits, len(waits) == len(s.made)
}

func (s *stage) readyClusters() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := 0
	for _, is := range s.ready {
		if is {
			count++
		}
	}
	return count
}

func (s *stage) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, err)
}

// failure is what went wrong on the stage, if anything did.
func (s *stage) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.failures...)
}

func (s *stage) play(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case set := <-s.work:
			if err := s.playSet(ctx, set); err != nil && ctx.Err() == nil {
				s.fail(err)
			}
		}
	}
}

// playSet makes what Kubernetes' controller makes of a StatefulSet, and says so.
func (s *stage) playSet(ctx context.Context, set appsv1.StatefulSet) error {
	members := *set.Spec.Replicas
	for ordinal := range int(members) {
		name := fmt.Sprintf("%s-%d", set.Name, ordinal)
		for _, template := range set.Spec.VolumeClaimTemplates {
			claim := template.DeepCopy()
			claim.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}
			claim.Namespace, claim.Name = set.Namespace, template.Name+"-"+name
			if _, err := s.create(ctx, "persistentvolumeclaims", claim); err != nil {
				return err
			}
		}
		made, err := s.create(ctx, "pods", podOf(set, name))
		if err != nil {
			return err
		}
		var pod corev1.Pod
		if err := schema.Decode(made, &pod); err != nil {
			return err
		}
		if s.members != nil {
			if err := s.members.Run(ctx, pod); err != nil {
				return err
			}
		}
	}
	ready := int32(0)
	if s.members != nil {
		ready = members
	}
	status := fmt.Sprintf(`{"status":{"observedGeneration":%d,"replicas":%d,"readyReplicas":%d,"currentRevision":%[4]q,"updateRevision":%[4]q}}`, set.Generation, members, ready, revision)
	_, err := s.api.Resource(appsv1.SchemeGroupVersion.WithResource("statefulsets")).Namespace(set.Namespace).
		Patch(ctx, set.Name, types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status")
	return err
}

// revision is the one of every StatefulSet: nothing is updated.
const revision = "r"

func podOf(set appsv1.StatefulSet, name string) *corev1.Pod {
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Spec: *set.Spec.Template.Spec.DeepCopy()}
	set.Spec.Template.ObjectMeta.DeepCopyInto(&pod.ObjectMeta)
	pod.Namespace, pod.Name = set.Namespace, name
	pod.Labels["statefulset.kubernetes.io/pod-name"], pod.Labels[appsv1.ControllerRevisionHashLabelKey] = name, revision
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	pod.Spec.Hostname, pod.Spec.Subdomain = name, set.Spec.ServiceName
	for _, template := range set.Spec.VolumeClaimTemplates {
		source := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: template.Name + "-" + name}}
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: template.Name, VolumeSource: source})
	}
	return pod
}

func (s *stage) create(ctx context.Context, resource string, typed any) (*unstructured.Unstructured, error) {
	content, err := schema.Encode(typed)
	if err != nil {
		return nil, err
	}
	made, err := s.api.Resource(corev1.SchemeGroupVersion.WithResource(resource)).Namespace(namespace).
		Create(ctx, &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("play Kubernetes: %w", err)
	}
	return made, nil
}

// makeClusters applies what a user applies, as fast as the API server takes it.
func (s *stage) makeClusters(ctx context.Context, clusters, members int) error {
	return s.each(ctx, clusters, func(ctx context.Context, i int) error {
		object := &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": nameOf(i), "namespace": namespace},
			// No provisioner runs here. With a storage class that no provisioner serves, the claims are as quiet as bound ones.
			"spec": map[string]any{"secret": rootSecret, "replicas": int64(members), "storageClassName": "bench"},
		}}
		object.SetGroupVersionKind(s.kind.GVK())
		_, err := s.api.Resource(s.kind.GVR()).Namespace(namespace).Create(ctx, object, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.made[nameOf(i)] = time.Now()
		return err
	})
}

// touch changes so many times what means nothing to a cluster, all clusters in turn, so that each change is followed by a pass.
func (s *stage) touch(ctx context.Context, clusters, times int) error {
	for first := 0; first < times; first += clusters {
		err := s.each(ctx, min(clusters, times-first), func(ctx context.Context, i int) error {
			patch := fmt.Sprintf(`{"metadata":{"annotations":{"touched":"%d"}}}`, first)
			_, err := s.api.Resource(s.kind.GVR()).Namespace(namespace).Patch(ctx, nameOf(i), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func nameOf(i int) string { return fmt.Sprintf("cluster-%d", i) }

// each does something so many times, some at once, and stops at the first error.
func (s *stage) each(ctx context.Context, times int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var all sync.WaitGroup
	for range hands {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < times && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := do(ctx, i); err != nil {
					cancel(fmt.Errorf("cluster %d: %w", i, err))
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}
