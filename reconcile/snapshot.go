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

// freshFor is how long a snapshot counts as what the API server has now: passes that begin within this time share it, or the failure to
// list. What took long counts for longer, listShare times as long as it took: an API server that is slow must not be kept busy by lists. A
// failure counts half as long again as it took.
const (
	freshFor  = 2 * time.Second
	listShare = 4
)

// listsAtOnce is how many resources are listed at once for the passes of a namespace.
const listsAtOnce = 4

// snapshot is a namespace of a resource as a live list found it. As long as the watch is behind the list, the view reads the snapshot.
type snapshot struct {
	version string
	// objects is nil if the cache held all that the list found, and nothing else, or holds that by now.
	objects cache.Indexer
}

// listing is the latest live list of a namespace.
type listing struct {
	// turn is held by who lists, and by nobody else.
	turn chan struct{}
	// at is when the list began, took how long it took, and err why it failed. They are read and written by who has the turn.
	at   time.Time
	took time.Duration
	err  error
}

// isRecent says whether a list answers for one that is asked for now.
func (l *listing) isRecent(now time.Time) bool {
	counts := max(freshFor, listShare*l.took)
	if l.err != nil {
		counts = max(freshFor, l.took*3/2) // passes fail meanwhile
	}
	return !l.at.IsZero() && now.Sub(l.at) < counts
}

// liveList lists a namespace of a view's resource live. The objects are transformed as those in the cache are.
type liveList func(ctx context.Context, namespace string) (items []any, version string, err error)

// lister returns what lists a watch's objects live.
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

// active returns the snapshots that replace the cache, by namespace; none most of the time.
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

// items reads all stores, and the snapshots in the place of what they replace. The items are as the caches hold them.
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

// refresh lists a namespace live, unless that was done or tried a moment ago, and keeps the list if the cache is behind it.
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
		return err // it was given up, for whatever reason, and says nothing of the API server
	}
	last.at, last.took, last.err = now, time.Since(began), err
	return err
}

// isNewer says whether a version is certainly newer than another.
func isNewer(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order > 0
}

// listingOf returns what is known of the lists of a namespace. Each namespace has its own turns: those of others do not wait for a slow
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

// tidy forgets the lists that answer for none any more, and the snapshots that the cache has reached: their namespaces may be gone. It
// looks from time to time.
func (v *view) tidy(now time.Time) {
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

// holds says whether a store shows, in a namespace, all that a list of this version found, or something newer.
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

// isBehind says whether a cache of the kind is known to be behind the API server in a namespace.
func (c *controller) isBehind(namespace string, now time.Time) bool {
	for _, cached := range c.caches {
		cached.tidy(now)
		if cached.snapshotOf(namespace) != nil {
			return true
		}
	}
	return false
}

// catchUp has all caches of the kind show what the API server has in a namespace now.
func (c *controller) catchUp(ctx context.Context, namespace string, now time.Time) error {
	group, listing := errgroup.WithContext(ctx)
	group.SetLimit(listsAtOnce)
	for _, cached := range c.caches {
		group.Go(func() error { return cached.refresh(listing, namespace, now) })
	}
	return group.Wait()
}
