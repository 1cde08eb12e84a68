package crds

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// State is what the cluster has of one definition, for people to look at.
type State struct {
	Definition Definition
	// Present says that the cluster has it.
	Present bool
	// Manager is who manages it: the operator's own name if it does.
	Manager string
	// Version is its schema-version as written there.
	Version string
	// Versions are its API versions: the one for storing with a star, those not served in parentheses.
	Versions string
	// StoredVersions are the versions its objects are stored in, comma-separated.
	StoredVersions string
	// Objects is how many custom resources there are; empty if that cannot be told.
	Objects string
	// Served says that the API server serves all of it that the operator uses.
	Served bool
	// Plan is what the operator would do about it, and why.
	Plan Plan
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
	state := State{Definition: definition, Plan: Decide(i.situation(existing, definition), definition)}
	if existing == nil {
		return state, nil
	}
	identity := definition.identity
	state.Present, state.Manager, state.Version = true, managerOf(existing), existing.Annotations[identity.VersionAnnotation()]
	state.StoredVersions = strings.Join(existing.Status.StoredVersions, ",")
	versions := make([]string, 0, len(existing.Spec.Versions))
	for _, version := range existing.Spec.Versions {
		name := version.Name
		if version.Storage {
			name += "*"
		}
		if !version.Served {
			name = "(" + name + ")"
		}
		versions = append(versions, name)
	}
	state.Versions = strings.Join(versions, ",")
	at := definition.Resource()
	list, err := i.API.Resources(ctx, at.Group, at.Version)
	state.Served = err == nil && notServed(list, definition) == ""
	if count, err := i.API.Count(ctx, at); err == nil {
		state.Objects = fmt.Sprint(count)
	}
	return state, nil
}
