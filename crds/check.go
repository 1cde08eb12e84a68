package crds

import (
	"context"
	"errors"
	"fmt"
)

// ReasonUnread is why Check keeps a definition it may not read but that is served.
const ReasonUnread Reason = "Unread"

func (i Installer) check(ctx context.Context, definition Definition) (Decision, error) {
	decision, err := i.checkContent(ctx, definition)
	if err != nil {
		return Decision{}, err
	}
	if err := i.waitUntilServed(ctx, definition); err != nil {
		return Decision{}, fmt.Errorf("%w: have an administrator apply it (mysql-operator manifests crds | kubectl apply --server-side -f -)", err)
	}
	return decision, nil
}

// checkContent decides as Ensure would, but what would have to be changed must serve as it is.
func (i Installer) checkContent(ctx context.Context, definition Definition) (Decision, error) {
	existing, err := i.look(ctx, definition.Name())
	if forbidden := (*ForbiddenError)(nil); errors.As(err, &forbidden) {
		return Decision{Keep, ReasonUnread, "the operator may not read it, only see that it is served", nil}, nil
	}
	if err != nil {
		return Decision{}, err
	}
	decision := Decide(existing, definition)
	switch decision.Action {
	case Keep:
		return decision, nil
	case Update:
		if lacks := shortfall(existing, definition); lacks != "" {
			return Decision{}, byHand(definition, decision.Message+", and does not serve what this one needs: "+lacks)
		}
		return Decision{Keep, decision.Reason, decision.Message + "; it serves all this one needs", nil}, nil
	case Create, Wait:
		return Decision{}, byHand(definition, decision.Message)
	case Refuse:
	}
	return Decision{}, &RefusedError{Name: definition.Name(), Decision: decision}
}

func byHand(definition Definition, cause string) error {
	return fmt.Errorf("check definition %s: %s: with --crds=check an administrator must apply it (mysql-operator manifests crds | kubectl apply --server-side -f -)", definition.Name(), cause)
}
