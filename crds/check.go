package crds

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ReasonUnread is why Check keeps a definition that it has no permission to read, but that is served.
const ReasonUnread Reason = "Unread"

// checkPause is how long Check waits for an administrator before it reads the definition again.
const checkPause = time.Second

// MissingError says what an administrator must do before this operator can work, where the operator has no permission to do it.
type MissingError struct {
	// Name is the definition's name, Message what is missing.
	Name, Message string
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("check definition %s: %s: with --crds=check an administrator must apply it (mysql-operator manifests crds | kubectl apply --server-side -f -)", e.Name, e.Message)
}

// check waits until the definition serves what the program needs.
func (i Installer) check(ctx context.Context, definition Definition) (Result, error) {
	told := ""
	for {
		found, err := i.checkOnce(ctx, definition)
		lacking, refused := (*MissingError)(nil), (*RefusedError)(nil)
		if err == nil || ctx.Err() != nil || (!errors.As(err, &lacking) && !errors.As(err, &refused)) {
			return found, err
		}
		if message := err.Error(); message != told && i.Waiting != nil {
			told = message
			i.Waiting(definition.Name(), message)
		}
		if ended := sleep(ctx, checkPause); ended != nil {
			return Result{}, fmt.Errorf("%w (the wait ended: %w)", err, ended)
		}
	}
}

func (i Installer) checkOnce(ctx context.Context, definition Definition) (Result, error) {
	found, err := i.checkContent(ctx, definition)
	if err != nil {
		return Result{}, err
	}
	list, err := i.API.Resources(ctx, definition.Resource().Group, definition.Resource().Version)
	switch {
	case err != nil && isTransient(err):
		return Result{}, &MissingError{definition.Name(), err.Error()}
	case err != nil:
		return Result{}, &MissingError{definition.Name(), fmt.Sprintf("%s is not served", definition.Resource().GroupVersion())}
	}
	if missing := notServed(list, definition); missing != "" {
		return Result{}, &MissingError{definition.Name(), missing + " is not served"}
	}
	if found.Existing != nil {
		return found, i.waitUntilEnforced(ctx, definition, found.Existing)
	}
	return found, nil
}

// checkContent decides as Ensure does. Where Ensure would change the definition, it must serve what the program needs as it is.
func (i Installer) checkContent(ctx context.Context, definition Definition) (Result, error) {
	existing, err := i.readDefinition(ctx, definition.Name())
	if forbidden := (*ForbiddenError)(nil); errors.As(err, &forbidden) {
		return Result{Definition: definition, Plan: only(Keep, ReasonUnread, "the operator has no permission to read it, but the API server serves it")}, nil
	}
	if err != nil {
		return Result{}, err
	}
	found := Result{Definition: definition, Existing: existing, Plan: Decide(i.situation(existing, definition), definition)}
	decision := found.Plan.Decision()
	switch decision.Action {
	case Keep:
		return found, nil
	case Update, Mark:
		if lacks := unmetNeed(existing, definition); lacks != "" {
			return Result{}, &MissingError{definition.Name(), decision.Message + ", and it does not serve what this operator needs: " + lacks}
		}
		found.Plan = only(Keep, decision.Reason, decision.Message+"; it serves all that this operator needs")
		return found, nil
	case Wait:
		if unmetNeed(existing, definition) == "" {
			return keepWhileDeleted(found), nil
		}
	case Refuse:
		return Result{}, &RefusedError{Name: definition.Name(), Plan: found.Plan}
	case Create, CarryOver, Migrate:
	}
	return Result{}, &MissingError{definition.Name(), decision.Message}
}
