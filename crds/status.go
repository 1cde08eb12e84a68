package crds

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// State describes one definition in the cluster, for people.
type State struct {
	Definition Definition
	// Present says that the cluster has the definition.
	Present bool
	// Manager is the tool that manages it: the operator's own name if the operator does.
	Manager string
	// Version is its schema-version in the cluster.
	Version string
	// Versions are its API versions: the storage version with a star, those that are not served in parentheses.
	Versions string
	// StoredVersions are the versions its objects are stored in, comma-separated.
	StoredVersions string
	// Objects is the number of custom resources; empty if it is unknown.
	Objects string
	// Served says that the API server serves everything that the operator uses.
	Served bool
	// Plan is what the operator would do, and why.
	Plan Plan
}

// Status reads each definition once, in the given order. It writes nothing, and waits only for answers.
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
	existing, err := i.readDefinition(ctx, definition.Name())
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
