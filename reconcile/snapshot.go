package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
)

// freshFor is how long a snapshot counts as current: passes that begin within this time share it, or share the failure to list. A slow list
// counts for longer, listShare times its duration, so that lists do not keep a slow API server busy. A failure counts for one and a half
// times its duration.
const (
	freshFor  = 2 * time.Second
	listShare = 4
)

// listsAtOnce is how many resources are listed at once for the passes of a namespace.
const listsAtOnce = 4

// snapshot is a live list of a resource in one namespace. While the watch is behind the list, the view reads the snapshot.
type snapshot struct {
	version string
	// objects is nil if the cache had exactly the listed objects, or has them by now.
	objects cache.Indexer
}

// listing is the latest live list of a namespace.
type listing struct {
	// turn is held by the only pass that lists.
	turn chan struct{}
	// at is when the list began, took its duration, and err why it failed. Only the holder of turn reads and writes them.
	at   time.Time
	took time.Duration
	err  error
}

// isRecent reports whether a pass can use this list instead of a new one.
func (l *listing) isRecent(now time.Time) bool {
	counts := max(freshFor, listShare*l.took)
	if l.err != nil {
		counts = max(freshFor, l.took*3/2) // passes fail while this failure counts
	}
	return !l.at.IsZero() && now.Sub(l.at) < counts
}

// liveList lists a view's resource in a namespace on the API server. It transforms the objects as for the cache.
type liveList func(ctx context.Context, namespace string) (items []any, version string, err error)

// lister returns the function that lists a watch's objects on the API server.
func (s *informers) lister(key informerKey, transform cache.TransformFunc) liveList {
	if transform == nil {
		transform = TrimMetadata
	}
	transform = s.contained(key, transform)
	return func(ctx context.Context, namespace string) ([]any, string, error) {
		version := ""
		pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			page, err := s.page(ctx, key, namespace, options)
			if found, metaErr := meta.ListAccessor(page); err == nil && metaErr == nil && version == "" {
				version = found.GetResourceVersion()
			}
			return page, err
		})
		pages.PageSize = listPage
		items := []any{}
		err := pages.EachListItem(ctx, metav1.ListOptions{LabelSelector: key.selector}, func(item runtime.Object) error {
			kept, err := transform(item)
			items = append(items, kept)
			return err
		})
		if err != nil {
			return nil, "", fmt.Errorf("list %s, whose watch is behind, in namespace %q: %w", key.resource.GroupResource(), namespace, served(err))
		}
		return items, version, nil
	}
}

func (s *informers) page(ctx context.Context, key informerKey, namespace string, options metav1.ListOptions) (runtime.Object, error) {
	if !key.metadataOnly {
		return s.api.Resource(key.resource).Namespace(namespace).List(ctx, options)
	}
	return s.metadata.Resource(key.resource).Namespace(namespace).List(ctx, options)
}

// snapshotOf returns the snapshot that replaces the cache in a namespace; nil if the cache is not behind one.
func (v *view) snapshotOf(namespace string) *snapshot {
	v.mu.RLock()
	taken := v.snapshots[namespace]
	v.mu.RUnlock()
	if taken == nil {
		return nil
	}
	if !v.storeReached(namespace, taken.version) {
		if taken.objects == nil {
			return nil
		}
		return taken
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.snapshots[namespace] == taken {
		delete(v.snapshots, namespace)
	}
	return nil
}

// active returns the snapshots that replace the cache, by namespace. Most of the time there is none.
func (v *view) active() map[string]*snapshot {
	v.mu.RLock()
	namespaces := make([]string, 0, len(v.snapshots))
	for namespace := range v.snapshots {
		namespaces = append(namespaces, namespace)
	}
	v.mu.RUnlock()
	active := map[string]*snapshot{}
	for _, namespace := range namespaces {
		if taken := v.snapshotOf(namespace); taken != nil {
			active[namespace] = taken
		}
	}
	return active
}

// items reads all stores, and for namespaces with a snapshot the snapshot instead. It returns the items in the form in which the caches
// hold them.
func (v *view) items(read func(cache.Indexer) []any) []any {
	active := v.active()
	found := []any{}
	for _, store := range v.stores {
		for _, item := range read(store) {
			if len(active) > 0 && active[namespaceOf(item)] != nil {
				continue
			}
			found = append(found, item)
		}
	}
	for _, taken := range active {
		found = append(found, read(taken.objects)...)
	}
	return found
}

func namespaceOf(item any) string {
	object, err := meta.Accessor(item)
	if err != nil {
		return ""
	}
	return object.GetNamespace()
}

// refresh lists a namespace on the API server, unless that was done or tried a moment ago. It keeps the list if the cache is behind it.
func (v *view) refresh(ctx context.Context, namespace string, now time.Time) error {
	if _, ok := v.store(namespace); !ok {
		return nil
	}
	last := v.listingOf(namespace)
	select {
	case last.turn <- struct{}{}:
		defer func() { <-last.turn }()
	case <-ctx.Done():
		return fmt.Errorf("wait for the live list of %s in namespace %q: %w", v.resource.GroupResource(), namespace, context.Cause(ctx))
	}
	if last.isRecent(now) {
		return last.err
	}
	began := time.Now()
	err := v.take(ctx, namespace)
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return err // the list was cancelled, for whatever reason, and is no evidence about the API server
	}
	last.at, last.took, last.err = now, time.Since(began), err
	return err
}

// isNewer reports whether a version is certainly newer than another.
func isNewer(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order > 0
}

// listingOf returns the latest list of a namespace. Each namespace has its own turn: passes of other namespaces do not wait for a slow
// list.
func (v *view) listingOf(namespace string) *listing {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.lists == nil {
		v.lists = map[string]*listing{}
	}
	if v.lists[namespace] == nil {
		v.lists[namespace] = &listing{turn: make(chan struct{}, 1)}
	}
	return v.lists[namespace]
}

// prune removes lists that are no longer recent, and snapshots that the cache has reached, because their namespaces may be gone. It does so
// at most once in freshFor.
func (v *view) prune(now time.Time) {
	v.mu.RLock()
	isDue := len(v.lists)+len(v.snapshots) > 0 && now.Sub(v.tidied) >= freshFor
	v.mu.RUnlock()
	if !isDue {
		return
	}
	v.active()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tidied = now
	maps.DeleteFunc(v.lists, func(_ string, last *listing) bool {
		select {
		case last.turn <- struct{}{}:
			defer func() { <-last.turn }()
			return !last.isRecent(now)
		default:
			return false
		}
	})
}

// take lists a namespace, and keeps the list if the cache is behind it.
func (v *view) take(ctx context.Context, namespace string) error {
	items, version, err := v.list(ctx, namespace)
	if err != nil {
		return err
	}
	taken := &snapshot{version: version}
	store, _ := v.store(namespace)
	if !v.storeReached(namespace, version) && !holds(store, namespace, items, version) {
		taken.objects = cache.NewIndexer(cache.MetaNamespaceKeyFunc, store.GetIndexers())
		if err := taken.objects.Replace(items, version); err != nil {
			return fmt.Errorf("keep the live list of %s in namespace %q: %w", v.resource.GroupResource(), namespace, err)
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.snapshots == nil {
		v.snapshots = map[string]*snapshot{}
	}
	if known := v.snapshots[namespace]; known == nil || !isNewer(known.version, version) {
		v.snapshots[namespace] = taken
	}
	return nil
}

// holds reports whether a store has, in a namespace, exactly the objects of a list with this version, or newer ones.
func holds(store cache.Indexer, namespace string, items []any, version string) bool {
	listed := map[string]string{}
	for _, item := range items {
		if object, err := meta.Accessor(item); err == nil {
			listed[object.GetName()] = object.GetResourceVersion()
		}
	}
	for _, item := range store.List() {
		object, err := meta.Accessor(item)
		if err != nil || object.GetNamespace() != namespace {
			continue
		}
		order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), version)
		isNewer := err == nil && order > 0
		if !isNewer && listed[object.GetName()] != object.GetResourceVersion() {
			return false
		}
		delete(listed, object.GetName())
	}
	return len(listed) == 0
}

// isBehind reports whether a cache of the kind is known to be behind the API server in a namespace.
func (c *controller) isBehind(namespace string, now time.Time) bool {
	for _, cached := range c.caches {
		cached.prune(now)
		if cached.snapshotOf(namespace) != nil {
			return true
		}
	}
	return false
}

// catchUp makes all caches of the kind show what the API server has now in a namespace.
func (c *controller) catchUp(ctx context.Context, namespace string, now time.Time) error {
	group, listing := errgroup.WithContext(ctx)
	group.SetLimit(listsAtOnce)
	for _, cached := range c.caches {
		group.Go(func() error { return cached.refresh(listing, namespace, now) })
	}
	return group.Wait()
}
