package crds

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// execute acts on a decision other than Keep. It returns false if the decision is outdated and the caller must decide again.
func (i Installer) execute(ctx context.Context, found Result) (applied bool, err error) {
	name, decision := found.Definition.Name(), found.Plan.Decision()
	switch decision.Action {
	case Create, Update:
		return i.apply(ctx, found)
	case Mark:
		return false, i.mark(ctx, found)
	case Wait:
		i.Log.Info("waiting until a definition is deleted", "name", name, "reason", decision.Reason)
		return false, i.waitUntilDeleted(ctx, found)
	case Keep, Refuse, CarryOver, Migrate:
	}
	return false, &RefusedError{Name: name, Plan: found.Plan}
}

// mark writes status.storedVersions.
func (i Installer) mark(ctx context.Context, found Result) error {
	return i.patch(ctx, found.Definition, map[string]any{
		fieldMetadata: map[string]any{"resourceVersion": found.Existing.ResourceVersion}, "status": map[string]any{"storedVersions": found.Plan.Stored},
	}, "status")
}

// patch sends a merge patch that is bound to a resourceVersion. If another client wrote first, the next pass reads the definition again.
func (i Installer) patch(ctx context.Context, definition Definition, content map[string]any, subresource ...string) error {
	name := definition.Name()
	body, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("render a patch of definition %s: %w", name, err)
	}
	return poll(ctx, "the API server to accept a patch of definition "+name, func(ctx context.Context) (bool, string, error) {
		err := i.API.Patch(ctx, name, body, definition.identity.FieldManager(), subresource...)
		if err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return true, "", nil
		}
		return false, "", explainPermanent("patch", name, err)
	})
}

// errCreatedMeanwhile says that another client created the definition first, or that it is unknown whether our creation took effect. The
// installer must decide again.
var errCreatedMeanwhile = errors.New("another client may have created the definition first")

// apply sends the target. An update is bound to the resourceVersion that it was decided on, so apply sends it again when the answer was
// lost. A creation has no such precondition: apply sends it once, and the installer decides again when the answer was lost.
func (i Installer) apply(ctx context.Context, found Result) (applied bool, err error) {
	if found.Plan.Decision().Action == Create {
		return i.create(ctx, found)
	}
	name := found.Definition.Name()
	body, err := json.Marshal(applyBody(found.Plan.Target))
	if err != nil {
		return false, fmt.Errorf("render definition %s: %w", name, err)
	}
	var result *apiextensionsv1.CustomResourceDefinition
	err = poll(ctx, "the API server to accept definition "+name, func(ctx context.Context) (bool, string, error) {
		// Only a definition that this operator manages, or adopts, may have its fields taken over.
		object, err := i.API.Apply(ctx, name, body, ApplyOptions{Manager: found.Definition.identity.FieldManager(), Force: true})
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return true, "", nil
		}
		if err != nil {
			return false, "", explainPermanent("patch", name, err)
		}
		result = object
		return true, "", nil
	})
	if err != nil || result == nil {
		return false, err
	}
	return true, i.clear(ctx, found, result)
}

func (i Installer) create(ctx context.Context, found Result) (applied bool, err error) {
	name := found.Definition.Name()
	body, err := json.Marshal(applyBody(found.Plan.Target))
	if err != nil {
		return false, fmt.Errorf("render definition %s: %w", name, err)
	}
	_, err = i.API.Apply(ctx, name, body, ApplyOptions{Manager: found.Definition.identity.FieldManager()})
	switch {
	case err == nil:
		return true, nil
	case apierrors.IsConflict(err) || isTransient(err):
		return false, errCreatedMeanwhile
	case apierrors.IsInvalid(err) && i.exists(ctx, name):
		return false, errCreatedMeanwhile // perhaps only the change of a definition that another client created meanwhile is invalid
	default:
		return false, explain("patch", name, err)
	}
}

func (i Installer) exists(ctx context.Context, name string) bool {
	existing, err := i.readDefinition(ctx, name)
	return err == nil && existing != nil
}

// clear removes what others added to the spec and the target does not have: a server-side apply does not remove it.
func (i Installer) clear(ctx context.Context, found Result, applied *apiextensionsv1.CustomResourceDefinition) error {
	if sameSpec(applied, found.Plan.Target) {
		return nil
	}
	has, err := json.Marshal(applied.Spec)
	if err != nil {
		return fmt.Errorf("render definition %s: %w", applied.Name, err)
	}
	wants, err := json.Marshal(defaulted(found.Plan.Target).Spec)
	if err != nil {
		return fmt.Errorf("render definition %s: %w", applied.Name, err)
	}
	difference, err := jsonpatch.CreateMergePatch(has, wants)
	if err != nil {
		return fmt.Errorf("compare definition %s: %w", applied.Name, err)
	}
	return i.patch(ctx, found.Definition, map[string]any{
		fieldMetadata: map[string]any{"resourceVersion": applied.ResourceVersion}, "spec": json.RawMessage(difference),
	})
}

// errStillServed says that a definition is being deleted, but serves what the program needs until then.
var errStillServed = errors.New("the definition is being deleted, but still serves what this program needs")

// waitUntilDeleted waits until a definition is deleted. If this takes long, finalizers hold its objects, and perhaps only this program
// removes them. So a program that starts then continues with the definition, if it serves what the program needs. The Guard creates the
// definition again when it is deleted.
func (i Installer) waitUntilDeleted(ctx context.Context, found Result) error {
	if i.Running {
		return i.waitUntilGone(ctx, found.Definition.Name())
	}
	soon, cancel := context.WithTimeout(ctx, cmp.Or(i.Timeout, DefaultTimeout)/2)
	defer cancel()
	err := i.waitUntilGone(soon, found.Definition.Name())
	if err == nil || soon.Err() == nil || ctx.Err() != nil {
		return err
	}
	if unmetNeed(found.Existing, found.Definition) == "" {
		return errStillServed
	}
	return i.waitUntilGone(ctx, found.Definition.Name())
}

// keepWhileDeleted returns the result for a definition that serves what the program needs while it is being deleted.
func keepWhileDeleted(found Result) Result {
	decision := found.Plan.Decision()
	found.Plan = only(Keep, decision.Reason, decision.Message+"; the API server still serves it, and it is registered again after the deletion")
	return found
}

func (i Installer) waitUntilGone(ctx context.Context, name string) error {
	return poll(ctx, "the deletion of definition "+name+" to finish", func(ctx context.Context) (bool, string, error) {
		object, err := i.API.Get(ctx, name)
		switch {
		case apierrors.IsNotFound(err):
			return true, "", nil
		case err != nil:
			return false, "", explainPermanent("get", name, err)
		case object.DeletionTimestamp == nil:
			return true, "", nil
		default:
			return false, "its objects are still being deleted; look for finalizers on them", nil
		}
	})
}
