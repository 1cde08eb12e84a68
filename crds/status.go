package crds

import (
	"context"
	"errors"
	"strings"
)

// State is what the cluster has of one definition, for people to look at.
type State struct {
	Definition Definition
	// Present says that the cluster has it.
	Present bool
	// Owner is who its label says manages it.
	Owner string
	// Version is its schema-version as written there.
	Version string
	// StoredVersions are the versions its objects are stored in, comma-separated.
	StoredVersions string
	// Served says that the API server serves all of it that the operator uses.
	Served bool
	// Message is what the operator would do about it, and why.
	Message string
}

// Status looks at each definition once, in the given order, without writing or waiting for anything but an answer.
func (i Installer) Status(ctx context.Context, definitions []Definition) ([]State, error) {
	states, faults := []State{}, []error{}
	for _, definition := range definitions {
		state, err := i.stateOf(ctx, definition)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		states = append(states, state)
	}
	return states, errors.Join(faults...)
}

func (i Installer) stateOf(ctx context.Context, definition Definition) (State, error) {
	ctx, cancel := i.bounded(ctx)
	defer cancel()
	existing, err := i.look(ctx, definition.Name())
	if err != nil {
		return State{}, err
	}
	decision := Decide(existing, definition)
	state := State{Definition: definition, Message: string(decision.Action) + ": " + decision.Message}
	if existing == nil {
		return state, nil
	}
	state.Present, state.Owner, state.Version = true, existing.Labels[OwnerLabel], existing.Annotations[VersionAnnotation]
	state.StoredVersions = strings.Join(existing.Status.StoredVersions, ",")
	list, err := i.API.Resources(ctx, definition.Kind.Group, definition.Kind.Version)
	state.Served = err == nil && notServed(list, definition) == ""
	return state, nil
}
