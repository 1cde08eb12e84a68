package crds

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// DefaultTimeout bounds Ensure and Check as a whole. It is long enough for an API server that is being restarted.
	DefaultTimeout = 60 * time.Second
	// maxRounds bounds how often one definition is looked at again because somebody else wrote it meanwhile.
	maxRounds = 10

	resource = "customresourcedefinitions"
)

// Installer brings definitions to a cluster, or checks that they are there.
type Installer struct {
	API API
	// Timeout bounds one call as a whole; 0 means DefaultTimeout.
	Timeout time.Duration
	// Log gets a line when a wait begins that may be long. What was done is in the results.
	Log logr.Logger
}

// Result tells what became of one definition.
type Result struct {
	Definition Definition
	// Decision is what was decided and, for Ensure and Check, done: Create, Update or Keep, and why.
	Decision Decision
	// Took is the time from the first look until the definition was served.
	Took time.Duration
}

// Ensure makes sure that every definition is there and served, creating and updating what is ours, all at once. It returns what was done
// for each definition that succeeded, in the given order, and the errors of all that did not, joined. Errors are *RefusedError,
// *ForbiddenError, or say what was waited for.
func (i Installer) Ensure(ctx context.Context, definitions []Definition) ([]Result, error) {
	return i.each(ctx, definitions, i.ensure)
}

// Check makes sure, without writing anything, that every definition serves what this operator needs. It is for operators that may not write
// definitions: where even reading them is forbidden, what the API server serves is all that is checked.
func (i Installer) Check(ctx context.Context, definitions []Definition) ([]Result, error) {
	return i.each(ctx, definitions, i.check)
}

// Plan returns what Ensure would decide for each definition now, in the given order, without writing or waiting.
func (i Installer) Plan(ctx context.Context, definitions []Definition) ([]Result, error) {
	return i.each(ctx, definitions, func(ctx context.Context, definition Definition) (Decision, error) {
		existing, err := i.look(ctx, definition.Name())
		if err != nil {
			return Decision{}, err
		}
		return Decide(existing, definition), nil
	})
}

type work func(ctx context.Context, definition Definition) (Decision, error)

// each does the work for all definitions at the same time.
func (i Installer) each(ctx context.Context, definitions []Definition, do work) ([]Result, error) {
	ctx, cancel := i.bounded(ctx)
	defer cancel()

	results, faults := make([]Result, len(definitions)), make([]error, len(definitions))
	var group sync.WaitGroup
	for at, definition := range definitions {
		group.Go(func() {
			begin := time.Now()
			decision, err := do(ctx, definition)
			results[at], faults[at] = Result{Definition: definition, Decision: decision, Took: time.Since(begin)}, err
		})
	}
	group.Wait()

	succeeded := []Result{}
	for at := range results {
		if faults[at] == nil {
			succeeded = append(succeeded, results[at])
		}
	}
	return succeeded, errors.Join(faults...)
}

func (i Installer) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	timeout := cmp.Or(i.Timeout, DefaultTimeout)
	return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not within %s", timeout))
}

func (i Installer) ensure(ctx context.Context, definition Definition) (Decision, error) {
	done, name := Decision{Action: Keep}, definition.Name()
	for range maxRounds {
		existing, err := i.look(ctx, name)
		if err != nil {
			return Decision{}, err
		}
		decision := Decide(existing, definition)
		if decision.Action != Keep {
			applied, err := i.carryOut(ctx, definition, decision)
			if err != nil {
				return Decision{}, err
			}
			if applied {
				done = decision
			}
			continue
		}
		if done.Action == Keep {
			done = decision
		}
		settled, err := i.settle(ctx, definition)
		if err != nil {
			return Decision{}, err
		}
		if settled {
			return done, nil
		}
	}
	return Decision{}, fmt.Errorf("apply definition %s: somebody else changed it %d times meanwhile: look for another operator or tool that manages it "+
		"(kubectl get crd %s --show-managed-fields -o yaml)", name, maxRounds, name)
}

// carryOut acts on one decision other than Keep. It returns false if the decision was overtaken and a new one is due.
func (i Installer) carryOut(ctx context.Context, definition Definition, decision Decision) (applied bool, err error) {
	switch decision.Action {
	case Create, Update:
		return i.apply(ctx, definition, decision)
	case Wait:
		i.Log.Info("waiting for a definition to be gone", "name", definition.Name(), "reason", decision.Reason)
		return false, i.waitUntilGone(ctx, definition.Name())
	case Refuse, Keep:
	}
	return false, &RefusedError{Name: definition.Name(), Decision: decision}
}

// look reads a definition, live; nil if the cluster has none. The first request is made alone and its refusal reported as such: a wait
// would hide it behind a timeout.
func (i Installer) look(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	var found *apiextensionsv1.CustomResourceDefinition
	err := poll(ctx, "the API server to answer about definition "+name, func(ctx context.Context) (bool, string, error) {
		object, err := i.API.Get(ctx, name)
		if apierrors.IsNotFound(err) {
			found = nil
			return true, "", nil
		}
		if err != nil {
			return false, "", keepPassing("get", name, err)
		}
		found = object
		return true, "", nil
	})
	return found, err
}

func (i Installer) apply(ctx context.Context, definition Definition, decision Decision) (applied bool, err error) {
	name := definition.Name()
	body, err := json.Marshal(applyBody(decision.Target))
	if err != nil {
		return false, fmt.Errorf("render definition %s: %w", name, err)
	}
	err = poll(ctx, "the API server to take definition "+name, func(ctx context.Context) (bool, string, error) {
		// Taking over fields is right only for a definition that was found to be ours.
		_, err := i.API.Apply(ctx, name, body, decision.Action == Update)
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return true, "", nil
		}
		if err != nil {
			return false, "", keepPassing("patch", name, err)
		}
		applied = true
		return true, "", nil
	})
	return applied, err
}

func (i Installer) waitUntilGone(ctx context.Context, name string) error {
	return poll(ctx, "the deletion of definition "+name+" to finish", func(ctx context.Context) (bool, string, error) {
		object, err := i.API.Get(ctx, name)
		switch {
		case apierrors.IsNotFound(err):
			return true, "", nil
		case err != nil:
			return false, "", keepPassing("get", name, err)
		case object.DeletionTimestamp == nil:
			return true, "", nil
		default:
			return false, "its objects are still being deleted; look for finalizers on them", nil
		}
	})
}

// settle waits until the definition is established and served. It returns false if somebody changed it meanwhile so that a new decision
// is due: an older operator may have created it between our look and our write.
func (i Installer) settle(ctx context.Context, definition Definition) (settled bool, err error) {
	name := definition.Name()
	err = poll(ctx, "definition "+name+" to be established", func(ctx context.Context) (bool, string, error) {
		object, err := i.API.Get(ctx, name)
		if apierrors.IsNotFound(err) {
			return true, "", nil
		}
		if err != nil {
			return false, "", keepPassing("get", name, err)
		}
		if Decide(object, definition).Action != Keep {
			return true, "", nil
		}
		ready, seen, err := readiness(object)
		settled = ready
		return ready, seen, err
	})
	if err != nil || !settled {
		return false, err
	}
	return true, i.waitUntilServed(ctx, definition)
}

// waitUntilServed looks at discovery, because an established definition may not be served yet, or only in its former form.
func (i Installer) waitUntilServed(ctx context.Context, definition Definition) error {
	group, version := definition.Kind.Group, definition.Kind.Version
	return poll(ctx, fmt.Sprintf("the API server to serve %s in %s/%s", definition.Kind.Plural, group, version), func(ctx context.Context) (bool, string, error) {
		list, err := i.API.Resources(ctx, group, version)
		if apierrors.IsNotFound(err) {
			return false, "nothing is served there", nil
		}
		if err != nil {
			return false, "", keepPassing("discover", definition.Name(), err)
		}
		missing := notServed(list, definition)
		return missing == "", missing + " is not listed", nil
	})
}

// keepPassing leaves errors that pass by themselves as they are, for poll to see, and gives the others their context.
func keepPassing(verb, name string, err error) error {
	if isPassing(err) {
		return err
	}
	return explain(verb, name, err)
}
