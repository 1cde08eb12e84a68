package crds

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// leadPause is the time between two comparisons of what the Guard observed with what the Leader did. They send no request.
const leadPause = time.Second

// Leader does what only one operator at a time should do: it rewrites stored objects, and records whether a definition has objects.
type Leader struct {
	Guard *Guard
	// Migrate rewrites the objects of a definition in its storage version and trims status.storedVersions, or continues this.
	Migrate func(ctx context.Context, name string) error
	// InUse reports whether a definition has objects, and whether this is known.
	InUse func(definition Definition) (some, known bool)
}

// Run does this work until ctx ends.
func (l Leader) Run(ctx context.Context) {
	var group sync.WaitGroup
	for _, definition := range l.Guard.definitions {
		group.Go(func() { l.lead(ctx, definition) })
	}
	group.Wait()
}

func (l Leader) lead(ctx context.Context, definition Definition) {
	pace, due, attended := newRepairBackoff(), time.Time{}, leaderInput{}
	for sleep(ctx, leadPause) == nil {
		seen, found := l.Guard.Latest(definition.Name())
		if !found || seen.Err != nil || time.Now().Before(due) {
			continue
		}
		some, known := l.InUse(definition)
		current := leaderInput{some, known, seen.resourceVersion()}
		if current == attended {
			continue
		}
		if err := l.act(ctx, seen, current); err != nil && ctx.Err() == nil {
			l.Guard.notify(ctx, Notice{Definition: definition, Regarding: seen.Existing, Warning: true, Reason: ReasonFault, Message: err.Error()})
			due = time.Now().Add(pace.Step())
			continue
		}
		pace, attended = newRepairBackoff(), current
	}
}

// leaderInput is the input of a Leader's work. The Leader does the work again only when it changes.
type leaderInput struct {
	some, known     bool
	resourceVersion string
}

func (s Observed) resourceVersion() string {
	if s.Existing == nil {
		return ""
	}
	return s.Existing.ResourceVersion
}

func (l Leader) act(ctx context.Context, seen Observed, current leaderInput) error {
	existing, definition := seen.Existing, seen.Definition
	ours := existing != nil && existing.DeletionTimestamp == nil && existing.Labels[OwnerLabel] == definition.identity.Owner
	if !ours || seen.Plan.Decision().Action != Keep {
		return nil
	}
	if current.known {
		if err := l.recordUsage(ctx, definition, existing, current.some); err != nil {
			return err
		}
	}
	if seen.Plan.HasStep(Migrate) {
		return l.Migrate(ctx, definition.Name())
	}
	return nil
}

// recordUsage records on the definition whether it has objects. The admission policy that protects it from deletion cannot list them.
func (l Leader) recordUsage(ctx context.Context, definition Definition, existing *apiextensionsv1.CustomResourceDefinition, some bool) error {
	identity, usage := definition.identity, UsageNone
	if some {
		usage = UsageSome
	}
	if existing.Annotations[identity.UsageAnnotation()] == usage {
		return nil
	}
	// Because of the UID, the apply does not create a definition that was deleted meanwhile.
	body, err := json.Marshal(map[string]any{
		"apiVersion": apiextensionsv1.SchemeGroupVersion.String(), "kind": "CustomResourceDefinition",
		fieldMetadata: map[string]any{"name": existing.Name, "uid": existing.UID, "annotations": map[string]string{identity.UsageAnnotation(): usage}},
	})
	if err == nil {
		_, err = l.Guard.installer.API.Apply(ctx, existing.Name, body, ApplyOptions{Manager: identity.UsageManager(), Force: true})
	}
	if err != nil {
		return fmt.Errorf("record on definition %s whether it has objects: %w", existing.Name, err)
	}
	return nil
}
