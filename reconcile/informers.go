package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

// watchErrorEvery is how often the persistent failure of one watch is logged.
const watchErrorEvery = time.Minute

// informers holds the watches of all kinds. Kinds that watch the same resource in the same way share one watch.
type informers struct {
	api dynamic.Interface
	// metadata is for watches of metadata only.
	metadata   metadata.Interface
	namespaces []string
	logger     logr.Logger
	now        func() time.Time

	members map[informerKey]*informer
	running sync.WaitGroup
}

// informerKey identifies a watch: two watches with equal keys are the same.
type informerKey struct {
	resource  apischema.GroupVersionResource
	selector  string
	namespace string
	// metadataOnly watches receive and keep only metadata.
	metadataOnly bool
	// kind is empty for a watch that kinds can share. If the kind has its own transform, it is the kind's name.
	kind string
}

func (k informerKey) String() string {
	where := "all namespaces"
	if k.namespace != metav1.NamespaceAll {
		where = "namespace " + k.namespace
	}
	name := k.resource.Resource + "." + k.resource.Version + "." + k.resource.Group
	what := strings.TrimSuffix(name, ".")
	if k.metadataOnly {
		what = "metadata of " + what
	}
	return fmt.Sprintf("%s in %s", what, where)
}

// informer is one watch.
type informer struct {
	key    informerKey
	shared cache.SharedIndexInformer
	// trouble is why the last failed list or watch failed; nil if none ever failed.
	trouble atomic.Pointer[error]
	// logged is when trouble was logged last, in Unix nanoseconds.
	logged atomic.Int64
}

func newInformers(api dynamic.Interface, forMetadata metadata.Interface, namespaces []string, logger logr.Logger) *informers {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	return &informers{api: api, metadata: forMetadata, namespaces: namespaces, logger: logger, now: time.Now, members: map[informerKey]*informer{}}
}

// watch returns the cache of a resource for a kind, and passes every change to handler. It must be called before start.
func (s *informers) watch(kind string, what Watch, handler cache.ResourceEventHandler) (*view, error) {
	selector, err := labels.Parse(what.Selector)
	if err != nil {
		return nil, fmt.Errorf("watch %s: read the label selector %q: %w", what.Resource.GroupResource(), what.Selector, err)
	}
	shape := informerKey{resource: what.Resource, selector: selector.String(), metadataOnly: what.MetadataOnly}
	cached := &view{
		resource: what.Resource, selector: selector, kind: kind, metadataOnly: what.MetadataOnly, stores: map[string]cache.Indexer{},
		list: s.lister(shape, what.Transform),
	}
	for _, namespace := range s.namespaces {
		key := shape
		key.namespace = namespace
		if what.Transform != nil {
			key.kind = kind
		}
		member, err := s.member(key, what.Transform)
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", key, err)
		}
		if err := member.shared.AddIndexers(s.indexers(kind, what.Indices)); err != nil {
			return nil, fmt.Errorf("watch %s: %w", key, err)
		}
		if _, err := member.shared.AddEventHandler(handler); err != nil {
			return nil, fmt.Errorf("watch %s: %w", key, err)
		}
		cached.stores[namespace] = member.shared.GetIndexer()
	}
	return cached, nil
}

func (s *informers) member(key informerKey, transform cache.TransformFunc) (*informer, error) {
	if member, ok := s.members[key]; ok {
		return member, nil
	}
	if transform == nil {
		transform = TrimMetadata
	}
	shared := s.shared(key)
	member := &informer{key: key, shared: shared}
	if err := shared.SetTransform(s.contained(key, transform)); err != nil {
		return nil, err
	}
	if err := shared.SetWatchErrorHandlerWithContext(s.watchFailed(member)); err != nil {
		return nil, err
	}
	s.members[key] = member
	return member, nil
}

// shared makes client-go's part of a watch.
func (s *informers) shared(key informerKey) cache.SharedIndexInformer {
	selects := func(options *metav1.ListOptions) { options.LabelSelector = key.selector }
	indexers := cache.Indexers{ownerIndex: controllerUID}
	if !key.metadataOnly {
		return dynamicinformer.NewFilteredDynamicInformer(s.api, key.resource, key.namespace, 0, indexers, selects).Informer()
	}
	return metadatainformer.NewFilteredMetadataInformer(s.metadata, key.resource, key.namespace, 0, indexers, selects).Informer()
}

// contained prevents a bug in a kind's transform from ending the process, or from leaving the cache empty because of one object. It caches
// such an object untransformed.
func (s *informers) contained(key informerKey, transform cache.TransformFunc) cache.TransformFunc {
	small := &packer{}
	return func(item any) (any, error) {
		var kept any
		err := recoverPanic(func() error {
			var err error
			kept, err = transform(item)
			return err
		})
		if err != nil {
			s.logger.Error(err, "failed to transform object, caching all of it", "watch", key.String())
			return small.pack(item), nil
		}
		return small.pack(kept), nil
	}
}

// start starts all watches. They end with ctx; wait waits for their end.
func (s *informers) start(ctx context.Context) {
	for _, member := range s.members {
		s.running.Go(func() { member.shared.RunWithContext(ctx) })
	}
}

func (s *informers) wait() {
	s.running.Wait()
}

// sync waits until every cache holds what the API server had when sync was called. The error names the caches that are not filled, and why
// the API server did not fill them.
func (s *informers) sync(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, member := range s.ordered() {
		select {
		case <-member.shared.HasSyncedChecker().Done():
		case <-ctx.Done():
			return fmt.Errorf("fill the caches within %s: %w", patience, errors.Join(s.unsynced()...))
		}
	}
	return nil
}

// unsynced returns, for each cache that is not filled yet, an error with its name and the reason. It is called often, and most of the time
// returns none.
func (s *informers) unsynced() []error {
	waiting := []*informer{}
	for _, member := range s.members {
		if !member.shared.HasSynced() {
			waiting = append(waiting, member)
		}
	}
	missing := make([]error, 0, len(waiting))
	for _, member := range inOrder(waiting) {
		err := fmt.Errorf("%s: no answer yet", member.key)
		if trouble := member.trouble.Load(); trouble != nil {
			err = fmt.Errorf("%s: %w", member.key, *trouble)
		}
		missing = append(missing, err)
	}
	return missing
}

func (s *informers) ordered() []*informer {
	return inOrder(slices.Collect(maps.Values(s.members)))
}

func inOrder(members []*informer) []*informer {
	slices.SortFunc(members, func(a, b *informer) int { return strings.Compare(a.key.String(), b.key.String()) })
	return members
}

// watchFailed logs a watch's failure: at once, and then once a minute as long as it lasts.
func (s *informers) watchFailed(member *informer) cache.WatchErrorHandlerWithContext {
	return func(ctx context.Context, _ *cache.Reflector, err error) {
		if ctx.Err() != nil || errors.Is(err, io.EOF) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			s.logger.V(2).Info("watch closed", "watch", member.key.String(), "error", err.Error())
			return
		}
		member.trouble.Store(&err)
		now, last := s.now().UnixNano(), member.logged.Load()
		if now-last < watchErrorEvery.Nanoseconds() || !member.logged.CompareAndSwap(last, now) {
			return
		}
		s.logger.Error(err, "watch failed, retrying", "watch", member.key.String(), "remedy", watchRemedy(err))
	}
}

func watchRemedy(err error) string {
	switch {
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		return "grant the operator get, list and watch on the resource"
	case apierrors.IsNotFound(err):
		return "the API server does not serve the resource: apply its definition"
	default:
		return "none, if the API server becomes available again"
	}
}
