package migration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// The cursor is written at the end of a page, after this many objects or this much time. It is not written more often, because each write
// updates the definition and sends an event to every API server and every other watcher of definitions.
const (
	objectsPerCursor = 1000
	timePerCursor    = 10 * time.Second
)

// maxRefusals is the number of refusals, without an accepted object, that ends a run. Then the cause is not the objects, but a missing
// permission or a policy.
const maxRefusals = 100

// maxExpiries is how often the list may expire, without a rewritten object in between, before this is an error.
const maxExpiries = 5

// errAllRefused ends a walk on which every object was refused.
var errAllRefused = errors.New("every object is refused")

// walk rewrites all objects of one definition, once.
type walk struct {
	Migrator

	definition  *apiextensionsv1.CustomResourceDefinition
	begun       identity
	resource    apischema.GroupVersionResource
	translation translation
	limiter     *rate.Limiter
	meter       *meter

	// lastKey is the key of the last object of the last finished page. resumed is the key up to which an earlier run had come, and counted
	// the last key of that run's objects that the meter has counted.
	lastKey, resumed, counted string
	// savedAt is when the cursor was last written, and savedDone how many objects were done then.
	savedAt   time.Time
	savedDone int

	lock     sync.Mutex
	refusals []Refusal // the first refusalsKept
}

func (m Migrator) walkOf(definition *apiextensionsv1.CustomResourceDefinition, from apischema.GroupVersionResource) *walk {
	resumed := m.cursorOf(definition)
	return &walk{
		Migrator:    m,
		definition:  definition,
		begun:       identityOf(definition),
		resource:    from,
		translation: translationFor(definition, m.FieldManager),
		limiter:     rate.NewLimiter(rate.Limit(m.Rate), m.Concurrency),
		meter: &meter{
			log: m.Log, report: m.Report, begun: time.Now(),
			progress: Progress{Definition: definition.Name, From: formerVersions(definition), To: storageVersion(definition), Resumed: resumed != ""},
		},
		lastKey: resumed, resumed: resumed, savedAt: time.Now(),
	}
}

// run rewrites every object. The API server lists them in the order of their keys, and stores new ones in the right version. So run never
// has to read a finished page again.
func (w *walk) run(ctx context.Context) error {
	token, expiries := "", 0
	for {
		page, err := w.list(ctx, token)
		switch {
		case apierrors.IsResourceExpired(err) && expiries < maxExpiries:
			token, expiries = continuation(err), expiries+1
			continue
		case err != nil:
			return fmt.Errorf("list %s: %w", w.resource.GroupResource(), err)
		}
		before := w.lastKey
		if err := w.rewritePage(ctx, page); err != nil {
			return err
		}
		if w.lastKey != before {
			expiries = 0
		}
		if token = page.Continue; token == "" {
			return w.refused(false)
		}
		if err := w.saveProgress(ctx); err != nil {
			return err
		}
	}
}

func (w *walk) list(ctx context.Context, token string) (page *metav1.PartialObjectMetadataList, err error) {
	err = w.retry(ctx, func(ctx context.Context) error {
		page, err = w.Objects.Resource(w.resource).List(ctx, metav1.ListOptions{Limit: w.PageSize, Continue: token})
		return err
	})
	return page, err
}

// continuation returns the token to continue after the former page, with the current objects. The API server sends it with the error that
// the list has expired (after five to ten minutes,
// https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks). Without a token the list starts
// again.
func continuation(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}

// rewritePage rewrites the objects of a page, except those that are already done.
func (w *walk) rewritePage(ctx context.Context, page *metav1.PartialObjectMetadataList) error {
	total := len(page.Items)
	if page.RemainingItemCount != nil {
		total += int(*page.RemainingItemCount)
	}
	w.meter.start(total)
	todo := w.todo(page.Items)
	if len(todo) == 0 {
		return nil
	}
	last := keyOf(&todo[len(todo)-1])
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(w.Concurrency)
	var interrupted error
	for i := range todo {
		if interrupted = sleep(groupCtx, w.limiter.Reserve().Delay()); interrupted != nil {
			break
		}
		group.Go(func() error { return w.rewrite(groupCtx, &todo[i]) })
	}
	err := group.Wait()
	switch {
	case errors.Is(err, errAllRefused):
		return w.refused(true)
	case err != nil:
		return err
	case interrupted != nil:
		return fmt.Errorf("rewrite %s after %q: %w", w.resource.GroupResource(), w.lastKey, interrupted)
	}
	w.lastKey = last
	return nil
}

// todo returns the objects that are not done, and counts those that an earlier run did.
func (w *walk) todo(items []metav1.PartialObjectMetadata) []metav1.PartialObjectMetadata {
	for i := range items {
		if key := keyOf(&items[i]); key <= w.resumed && key > w.counted {
			w.counted = key
			w.meter.addResumed(1)
		}
	}
	return slices.DeleteFunc(items, func(object metav1.PartialObjectMetadata) bool { return keyOf(&object) <= w.lastKey })
}

// rewrite makes the API server store one object in the storage version. It returns only errors that concern all objects.
func (w *walk) rewrite(ctx context.Context, listed *metav1.PartialObjectMetadata) error {
	object := listed
	objects := w.Objects.Resource(w.resource).Namespace(listed.Namespace)
	options := metav1.PatchOptions{FieldManager: w.FieldManager, FieldValidation: metav1.FieldValidationIgnore}
	err := w.retry(ctx, func(ctx context.Context) error {
		patch, err := w.translation.patchFor(object)
		if err != nil {
			return err
		}
		_, err = objects.Patch(ctx, listed.Name, types.MergePatchType, patch, options)
		if !apierrors.IsConflict(err) {
			return err
		}
		fresh, failed := objects.Get(ctx, listed.Name, metav1.GetOptions{})
		if failed != nil {
			return failed
		}
		object = fresh
		return err
	})
	switch {
	case err == nil:
		w.meter.add(Progress{Done: 1})
	case apierrors.IsNotFound(err) && !isUnrouted(err):
		w.meter.add(Progress{Skipped: 1})
	case isRefusal(err):
		return w.refuse(Refusal{Namespace: listed.Namespace, Name: listed.Name, Cause: err})
	default:
		return fmt.Errorf("rewrite %s %s: %w", w.resource.GroupResource(), keyOf(listed), err)
	}
	return nil
}

// refuse records an object that the API server refused.
func (w *walk) refuse(refusal Refusal) error {
	now := w.meter.add(Progress{Refused: 1})
	w.lock.Lock()
	defer w.lock.Unlock()
	if len(w.refusals) < refusalsKept {
		w.refusals = append(w.refusals, refusal)
	}
	if now.Refused >= maxRefusals && !w.meter.accepted() {
		return errAllRefused
	}
	return nil
}

// refused returns the error about the refused objects; nil if there are none.
func (w *walk) refused(givenUp bool) error {
	w.lock.Lock()
	defer w.lock.Unlock()
	if len(w.refusals) == 0 {
		return nil
	}
	slices.SortFunc(w.refusals, func(a, b Refusal) int { return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name) })
	now := w.meter.now()
	return &RefusedError{Definition: w.definition.Name, To: now.To, From: now.From, Count: now.Refused, Refusals: w.refusals, GivenUp: givenUp}
}

// saveProgress writes the cursor if it is due. The cursor never passes a refused object, so that the next run tries that object again.
func (w *walk) saveProgress(ctx context.Context) error {
	now := w.meter.now()
	due := now.Done+now.Skipped-w.savedDone >= objectsPerCursor || time.Since(w.savedAt) >= timePerCursor
	if !due || now.Refused > 0 || w.lastKey == w.resumed {
		return nil
	}
	if err := w.saveCursor(ctx, w.definition.Name, cursor{identity: w.begun, After: w.lastKey}); err != nil {
		return err
	}
	w.savedAt, w.savedDone = time.Now(), now.Done+now.Skipped
	return nil
}
