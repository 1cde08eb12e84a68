package migration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// The defaults.
const (
	DefaultRate        = 200.0
	DefaultConcurrency = 4
	DefaultPageSize    = 500
	DefaultSettle      = 10 * time.Second
	DefaultPatience    = 2 * time.Minute
)

// Migrator rewrites the objects of definitions. Only one should run at a time. More are harmless, but do the same work.
type Migrator struct {
	// Objects reads and patches objects' metadata. The limit of its client (rest.Config.QPS) must not be lower than Rate. Required.
	Objects metadata.Interface
	// Definitions reads and marks definitions. Required.
	Definitions Definitions
	// FieldManager owns the cursor in server-side apply. It must own nothing else on definitions. Required.
	FieldManager string
	// CursorAnnotation is the key of the annotation on a definition that holds the progress of its migration. It is removed at the end.
	// Required.
	CursorAnnotation string

	// Rate limits the number of objects rewritten in a second. 0: DefaultRate; negative: no limit.
	Rate float64
	// Concurrency is how many objects are rewritten at once. 0: DefaultConcurrency.
	Concurrency int
	// PageSize is how many objects are listed at once, as metadata. 0: DefaultPageSize.
	PageSize int64
	// Settle is how long a definition must have been unchanged before its objects are rewritten. An API server that has not yet seen the
	// new storage version would write the former one. 0: DefaultSettle; negative: no wait, for a cluster that certainly has one API server.
	Settle time.Duration
	// RetryTimeout is how long one request is retried while the API server is busy, starting or unreachable. 0: DefaultPatience.
	RetryTimeout time.Duration
	// Log gets a line at the beginning, at the end and, every ten seconds, about the progress.
	Log logr.Logger
	// Report, if set, is called with the same. It must not block.
	Report func(Progress)
}

// New returns a migrator for the cluster that the configuration points to. It does not change the configuration, and uses Rate instead of
// its rate limit.
func New(config *rest.Config, fieldManager, cursorAnnotation string) (Migrator, error) {
	own := rest.CopyConfig(config)
	own.QPS, own.RateLimiter = -1, nil
	own.WarningHandler = rest.NoWarnings{} // warnings about an object are for the client that writes it
	objects, err := metadata.NewForConfig(own)
	if err != nil {
		return Migrator{}, fmt.Errorf("make a client for metadata: %w", err)
	}
	client, err := dynamic.NewForConfig(own)
	if err != nil {
		return Migrator{}, fmt.Errorf("make a client for definitions: %w", err)
	}
	return Migrator{Objects: objects, Definitions: NewDefinitions(client), FieldManager: fieldManager, CursorAnnotation: cursorAnnotation}, nil
}

// Result is what a run did. It is zero if there was nothing to do.
type Result struct {
	// Progress is the progress at the end.
	Progress Progress
	// Trimmed says that status.storedVersions now holds only the storage version.
	Trimmed bool
}

// Run rewrites the objects of the named definition in its storage version, and then trims status.storedVersions. It does nothing if this is
// already so (Needed). It may be called at any time, and again after any error: it then continues where it was.
//
// The error is a *RefusedError if the API server does not accept some of the objects; Run rewrites all others before it returns, unless
// GivenUp. It is a *ChangedError if the definition changed meanwhile. Other errors are the API server's, for example if it is unreachable
// for longer than Patience.
func (m Migrator) Run(ctx context.Context, name string) (Result, error) {
	if m.Objects == nil || m.Definitions == nil || m.FieldManager == "" || m.CursorAnnotation == "" {
		return Result{}, errors.New("migrate objects: Objects, Definitions, FieldManager and CursorAnnotation must be set")
	}
	m = m.withDefaults()
	definition, err := m.settled(ctx, name)
	if err != nil {
		return Result{}, err
	}
	if !Needed(definition) {
		return Result{}, m.removeCursor(ctx, definition)
	}
	from, err := resourceOf(definition)
	if err != nil {
		return Result{}, err
	}
	w := m.walkOf(definition, from)
	err = w.run(ctx)
	result := Result{Progress: w.meter.end()}
	if err != nil {
		return result, err
	}
	if err := m.trim(ctx, definition); err != nil {
		return result, err
	}
	result.Trimmed = true
	return result, m.removeCursor(ctx, definition)
}

func (m Migrator) withDefaults() Migrator {
	m.Rate = cmp.Or(m.Rate, DefaultRate)
	if m.Rate < 0 {
		m.Rate = float64(rate.Inf)
	}
	m.Concurrency = cmp.Or(m.Concurrency, DefaultConcurrency)
	m.PageSize = cmp.Or(m.PageSize, DefaultPageSize)
	m.Settle = cmp.Or(m.Settle, DefaultSettle)
	m.RetryTimeout = cmp.Or(m.RetryTimeout, DefaultPatience)
	return m
}

// settleAttempts bounds how often a definition may change while the migrator waits for it.
const settleAttempts = 6

// settled returns the definition once it has not changed for Settle. A resumed migration does not wait: the earlier run did.
func (m Migrator) settled(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	before, err := m.get(ctx, name)
	if err != nil {
		return nil, err
	}
	if m.Settle < 0 || !Needed(before) || m.cursorOf(before) != "" {
		return before, nil
	}
	for range settleAttempts {
		if err := sleep(ctx, m.Settle); err != nil {
			return nil, fmt.Errorf("wait for definition %s to be seen by every API server: %w", name, err)
		}
		now, err := m.get(ctx, name)
		if err != nil {
			return nil, err
		}
		if identityOf(now) == identityOf(before) {
			return now, nil
		}
		before = now
	}
	return nil, fmt.Errorf("wait for definition %s to stay unchanged for %v: other clients change it repeatedly, now to generation %d: "+
		"look in its managedFields for the client that writes it", name, m.Settle, before.Generation)
}

func (m Migrator) get(ctx context.Context, name string) (definition *apiextensionsv1.CustomResourceDefinition, err error) {
	err = m.retry(ctx, func(ctx context.Context) error {
		definition, err = m.Definitions.Get(ctx, name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("get definition %s: %w", name, err)
	}
	return definition, nil
}

func (m Migrator) cursorOf(definition *apiextensionsv1.CustomResourceDefinition) string {
	return resume(definition.Annotations[m.CursorAnnotation], identityOf(definition))
}

// saveCursor stores the progress of the migration. It also checks whether the definition is still the same.
func (m Migrator) saveCursor(ctx context.Context, name string, at cursor) error {
	var now *apiextensionsv1.CustomResourceDefinition
	err := m.retry(ctx, func(ctx context.Context) (err error) {
		now, err = m.Definitions.Annotate(ctx, name, at.UID, m.FieldManager, map[string]string{m.CursorAnnotation: at.String()})
		return err
	})
	if err != nil {
		return fmt.Errorf("save the progress of the migration in annotation %s of definition %s: %w", m.CursorAnnotation, name, err)
	}
	if difference := at.difference(identityOf(now)); difference != "" {
		return &ChangedError{Definition: name, Difference: difference}
	}
	return nil
}

// removeCursor removes the cursor.
func (m Migrator) removeCursor(ctx context.Context, definition *apiextensionsv1.CustomResourceDefinition) error {
	now, err := m.get(ctx, definition.Name)
	if err != nil {
		return err
	}
	if _, there := now.Annotations[m.CursorAnnotation]; !there {
		return nil
	}
	err = m.retry(ctx, func(ctx context.Context) error {
		_, err := m.Definitions.Annotate(ctx, now.Name, now.UID, m.FieldManager, nil)
		return err
	})
	if err != nil {
		return fmt.Errorf("remove annotation %s from definition %s: %w", m.CursorAnnotation, now.Name, err)
	}
	return nil
}

// trim sets status.storedVersions to the storage version, if the definition was the same during the whole migration.
func (m Migrator) trim(ctx context.Context, begun *apiextensionsv1.CustomResourceDefinition) error {
	want := []string{storageVersion(begun)}
	err := m.retry(ctx, func(ctx context.Context) error {
		now, err := m.Definitions.Get(ctx, begun.Name)
		if err != nil {
			return err
		}
		difference := identityOf(begun).difference(identityOf(now))
		switch {
		case difference != "":
			return &ChangedError{Definition: begun.Name, Difference: difference}
		case slices.Equal(now.Status.StoredVersions, want):
			return nil // the answer to the write got lost, or another program migrated, too
		case !slices.Equal(now.Status.StoredVersions, begun.Status.StoredVersions):
			difference = fmt.Sprintf("its status.storedVersions is %v, no longer %v", now.Status.StoredVersions, begun.Status.StoredVersions)
			return &ChangedError{Definition: begun.Name, Difference: difference}
		}
		return m.Definitions.SetStoredVersions(ctx, now.Name, now.ResourceVersion, want)
	})
	var changed *ChangedError
	if err == nil || errors.As(err, &changed) {
		return err
	}
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("set status.storedVersions of definition %s to %v: the account does not have the permission \"patch\" on %s/status, name %s: %w", begun.Name, want, resource, begun.Name, err)
	}
	return fmt.Errorf("set status.storedVersions of definition %s to %v: %w", begun.Name, want, err)
}
