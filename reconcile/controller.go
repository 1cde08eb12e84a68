package reconcile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/mysql-operator/mysql-operator/schema"
)

// The back-off of an object whose passes fail: it doubles with every failure.
const (
	backoffFirst = 5 * time.Millisecond
	backoffCap   = time.Minute
)

type queue = workqueue.TypedRateLimitingInterface[types.NamespacedName]

// controller runs a kind: it has the kind's caches and, while this process is the leader, the queue of its objects.
type controller struct {
	Controller
	logger logr.Logger
	own    *view
	caches map[apischema.GroupVersionResource]*view

	mu sync.RWMutex
	// queue is nil while this process is a standby.
	queue queue
	// meet is called with each object that exists in a term, or was deleted a moment ago.
	meet func(types.NamespacedName)
}

var errSecretsWatched = errors.New("secrets are never cached: read them live")

// newController checks a kind's Controller and adds its watches.
func newController(spec Controller, caches *informers, logger logr.Logger) (*controller, error) {
	c := &controller{
		Controller: spec,
		logger:     logger.WithValues(logKind, spec.Kind.Kind),
		caches:     map[apischema.GroupVersionResource]*view{},
	}
	own, err := caches.watch(spec.Kind.Kind, Watch{Resource: spec.Kind.GVR(), Indices: spec.Indices}, c.handler(c.itself))
	if err != nil {
		return nil, fmt.Errorf("reconcile %s: %w", spec.Kind.Kind, err)
	}
	c.own = own
	c.caches[spec.Kind.GVR()] = own

	for _, watch := range spec.Watches {
		if watch.Resource.Group == "" && watch.Resource.Resource == "secrets" {
			return nil, fmt.Errorf("reconcile %s: watch secrets: %w", spec.Kind.Kind, errSecretsWatched)
		}
		if _, twice := c.caches[watch.Resource]; twice {
			return nil, fmt.Errorf("reconcile %s: %s is watched twice: use one watch with a wider selector", spec.Kind.Kind, watch.Resource.GroupResource())
		}
		owners := func(child *unstructured.Unstructured) []types.NamespacedName {
			return controllerOwner(child, spec.Kind)
		}
		if watch.Owners != nil {
			owners = func(child *unstructured.Unstructured) []types.NamespacedName { return watch.Owners(child, c.own) }
		}
		cached, err := caches.watch(spec.Kind.Kind, watch, c.handler(owners))
		if err != nil {
			return nil, fmt.Errorf("reconcile %s: %w", spec.Kind.Kind, err)
		}
		c.caches[watch.Resource] = cached
	}
	return c, nil
}

// reader makes the Reader of a Reconciler for a new term.
func (c *controller) reader(m *Manager) *Reader {
	return &Reader{api: m.api, names: m.names, namespaces: m.config.Namespaces, caches: c.caches, server: m.server}
}

// itself returns the key of a changed object of the kind, after it reported the key to the term. The object may be gone from the caches
// later.
func (c *controller) itself(object *unstructured.Unstructured) []types.NamespacedName {
	key := keyOf(object)
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.queue != nil {
		c.meet(key)
	}
	return []types.NamespacedName{key}
}

// handler queues the objects of the kind that a change concerns. A change of owner concerns both owners.
func (c *controller) handler(concerned func(*unstructured.Unstructured) []types.NamespacedName) cache.ResourceEventHandler {
	notice := func(items ...any) {
		for _, object := range objects(items) {
			// A bug in a kind's mapping must not stop the watch that all kinds share.
			err := recoverPanic(func() error {
				c.enqueue(concerned(object)...)
				return nil
			})
			if err != nil {
				c.logger.Error(err, "failed to map a change to objects of the kind", "child", object.GetKind()+"/"+object.GetName(), logNamespace, object.GetNamespace())
			}
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(item any) { notice(item) },
		UpdateFunc: func(before, after any) {
			if isNews(before, after) {
				notice(before, after)
			}
		},
		DeleteFunc: func(item any) {
			if last, ok := item.(cache.DeletedFinalStateUnknown); ok {
				item = last.Obj
			}
			notice(item)
		},
	}
}

// enqueue queues objects for a pass. While this process is a standby, it queues nothing: a term begins with all objects.
func (c *controller) enqueue(keys ...types.NamespacedName) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.queue == nil {
		return
	}
	for _, key := range keys {
		c.queue.Add(key)
	}
}

// open starts the queue with all objects, and returns it. order chooses the next object; nil means first come, first served. meet is called
// with each object of the kind before the object is queued because it exists or has changed.
func (c *controller) open(provider workqueue.MetricsProvider, order workqueue.Queue[types.NamespacedName], meet func(types.NamespacedName)) queue {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](backoffFirst, backoffCap)
	name := c.Kind.Kind
	ordered := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[types.NamespacedName]{Name: name, MetricsProvider: provider, Queue: order})
	opened := workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{
		Name:            name,
		MetricsProvider: provider,
		DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[types.NamespacedName]{
			Name: name, MetricsProvider: provider, Queue: ordered,
		}),
	})
	c.mu.Lock()
	c.queue, c.meet = opened, meet
	c.mu.Unlock()

	for object := range c.own.All() {
		c.enqueue(c.itself(object)...)
	}
	return opened
}

// close stops the queue: waiting objects are dropped, running passes finish.
func (c *controller) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queue != nil {
		c.queue.ShutDown()
	}
	c.queue = nil
}

// controllerOwner returns the object of the kind that controls child, if one does.
func controllerOwner(child *unstructured.Unstructured, kind schema.Kind) []types.NamespacedName {
	owner := metav1.GetControllerOfNoCopy(child)
	if owner == nil || owner.Kind != kind.Kind || apischema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).Group != kind.Group {
		return nil
	}
	return []types.NamespacedName{{Namespace: child.GetNamespace(), Name: owner.Name}}
}

func keyOf(object *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// normalNamespaces returns the namespaces to watch, in order and each once.
func normalNamespaces(namespaces []string) []string {
	trimmed := []string{}
	for _, namespace := range namespaces {
		if namespace = strings.TrimSpace(namespace); namespace != "" {
			trimmed = append(trimmed, namespace)
		}
	}
	slices.Sort(trimmed)
	return slices.Compact(trimmed)
}
