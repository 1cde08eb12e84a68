package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

const (
	// readyLimit bounds a round. What takes longer is broken, not slow.
	readyLimit = 5 * time.Minute
	syncLimit  = 30 * time.Second
)

// round makes one cluster and notes when each stage is through.
func (b *bench) round(ctx context.Context, name string) (timeline, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, readyLimit, fmt.Errorf("not within %s", readyLimit))
	defer cancel()
	w := &watcher{timeline: timeline{}, done: make(chan struct{}), sight: sight{
		members: b.options.members, pods: map[string]corev1.Pod{}, claims: map[string]corev1.PersistentVolumeClaim{},
	}}
	stop, err := b.watch(ctx, name, w)
	if err != nil {
		return nil, err
	}
	defer stop()
	object := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": name, "namespace": b.namespace},
		"spec":     map[string]any{"secret": rootSecret, "replicas": int64(b.options.members)},
	}}
	object.SetGroupVersionKind(b.kind.GVK())
	applied := w.begin()
	if _, err := b.api.Resource(b.kind.GVR()).Namespace(b.namespace).Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("create %s: %w", name, err)
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		return nil, b.tooLate(ctx, name, w)
	}
	lives, err := b.lives(ctx, name)
	if err != nil {
		return nil, err
	}
	return w.finish(lives, applied), nil
}

// tooLate says what was waited for, and what the cluster says.
func (b *bench) tooLate(ctx context.Context, name string, w *watcher) error {
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), syncLimit)
	defer cancel()
	said, _ := b.kubectl.Run(asking, "describe", b.kind.Plural, name, "--namespace", b.namespace)
	return fmt.Errorf("wait for %s: %w: not through are: %s\n%s", name, context.Cause(ctx), w.missing(), said)
}

// lives reads the members' own accounts.
func (b *bench) lives(ctx context.Context, name string) ([]life, error) {
	lives := make([]life, 0, b.options.members)
	for ordinal := range b.options.members {
		log, err := b.kubectl.Run(ctx, "logs", fmt.Sprintf("%s-%d", name, ordinal), "--container=agent", "--namespace", b.namespace)
		if err != nil {
			return nil, err
		}
		lives = append(lives, parseLife(log))
	}
	return lives, nil
}

// watcher turns what the watches tell into a timeline. Its clock is this process's own: Kubernetes' time stamps are whole seconds.
type watcher struct {
	mu       sync.Mutex
	sight    sight
	timeline timeline
	applied  time.Time
	done     chan struct{}
}

func (w *watcher) begin() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.applied = time.Now()
	return w.applied
}

// see takes in one change of what there is to see, and looks how far the cluster is.
func (w *watcher) see(change func(*sight) error) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.applied.IsZero() || w.timeline.done() || change(&w.sight) != nil {
		return
	}
	w.timeline.look(w.sight, now.Sub(w.applied))
	if w.timeline.done() {
		close(w.done)
	}
}

func (w *watcher) missing() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.timeline.missing()
}

func (w *watcher) finish(lives []life, applied time.Time) timeline {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timeline.listen(lives, applied)
	return w.timeline
}

// watch has the watcher told of everything that belongs to the cluster, until stop is called.
func (b *bench) watch(ctx context.Context, name string, w *watcher) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	ours := dynamicinformer.NewFilteredDynamicSharedInformerFactory(b.api, 0, b.namespace, func(options *metav1.ListOptions) {
		options.LabelSelector = "app.kubernetes.io/instance=" + name
	})
	named := dynamicinformer.NewFilteredDynamicSharedInformerFactory(b.api, 0, b.namespace, func(options *metav1.ListOptions) {
		options.FieldSelector = "metadata.name=" + name
	})
	stop = func() {
		cancel()
		ours.Shutdown()
		named.Shutdown()
	}
	for resource, take := range watched() {
		handler := handlerOf(w, take)
		if _, err := ours.ForResource(resource).Informer().AddEventHandler(handler); err != nil {
			stop()
			return nil, fmt.Errorf("watch %s: %w", resource.Resource, err)
		}
	}
	if _, err := named.ForResource(b.kind.GVR()).Informer().AddEventHandler(handlerOf(w, takeCluster)); err != nil {
		stop()
		return nil, fmt.Errorf("watch %s: %w", b.kind.Plural, err)
	}
	ours.Start(ctx.Done())
	named.Start(ctx.Done())
	syncing, expired := context.WithTimeout(ctx, syncLimit)
	defer expired()
	for _, factory := range []dynamicinformer.DynamicSharedInformerFactory{ours, named} {
		for resource, synced := range factory.WaitForCacheSync(syncing.Done()) {
			if !synced {
				stop()
				return nil, fmt.Errorf("watch %s: no answer within %s", resource.Resource, syncLimit)
			}
		}
	}
	return stop, nil
}

// taking puts an object into the sight.
type taking func(*sight, *unstructured.Unstructured) error

func handlerOf(w *watcher, take taking) cache.ResourceEventHandlerFuncs {
	tell := func(item any) {
		if object, ok := item.(*unstructured.Unstructured); ok {
			w.see(func(s *sight) error { return take(s, object) })
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, item any) { tell(item) }}
}

func watched() map[apischema.GroupVersionResource]taking {
	return map[apischema.GroupVersionResource]taking{
		{Group: "apps", Version: "v1", Resource: "statefulsets"}: func(s *sight, object *unstructured.Unstructured) error {
			s.set = &appsv1.StatefulSet{}
			return schema.Decode(object, s.set)
		},
		core("pods"): func(s *sight, object *unstructured.Unstructured) error {
			var pod corev1.Pod
			err := schema.Decode(object, &pod)
			s.pods[object.GetName()] = pod
			return err
		},
		core("persistentvolumeclaims"): func(s *sight, object *unstructured.Unstructured) error {
			var claim corev1.PersistentVolumeClaim
			err := schema.Decode(object, &claim)
			s.claims[object.GetName()] = claim
			return err
		},
	}
}

func takeCluster(s *sight, object *unstructured.Unstructured) error {
	s.cluster = v1.MySQLCluster{}
	return schema.Decode(object, &s.cluster)
}
