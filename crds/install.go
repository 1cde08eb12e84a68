package crds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// DefaultTimeout bounds Ensure and Check as a whole. It is long enough for the restart of an API server.
	DefaultTimeout = 60 * time.Second
	// maxRounds bounds how often the installer decides again about one definition because another client wrote it meanwhile.
	maxRounds = 10

	resource = "customresourcedefinitions"
)

// Installer installs definitions in a cluster, or checks that they are installed.
type Installer struct {
	API API
	// Timeout bounds one call as a whole; 0 means DefaultTimeout.
	Timeout time.Duration
	// Log gets a line when a wait begins that may be long. The results say what was done.
	Log logr.Logger
	// Objects checks existing objects before an update that could affect them. If it is nil, such updates are made without a check.
	Objects ObjectChecker
	// Namespace is one in which the program may list the custom resources. There it finds out which schema is in force. Default: default.
	Namespace string
	// Conversion returns how objects are converted, for definitions whose versions differ in more than the apiVersion. Nil, or a nil
	// result, keeps the conversion of the YAML.
	Conversion func(ctx context.Context, definition Definition) (*apiextensionsv1.CustomResourceConversion, error)
	// Adopt reports whether to adopt the definition of this name from another manager. Nil means never.
	Adopt func(name string) bool
	// AllowBreaking updates even if objects would lose fields or become invalid.
	AllowBreaking bool
	// Running says that the definitions were installed before and are watched now: see Situation.
	Running bool
	// Waiting is called with what Check waits for, whenever that changes. It may be nil.
	Waiting func(name, message string)
}

// Result is the result for one definition.
type Result struct {
	Definition Definition
	// Plan is what was decided and, for Ensure and Check, done: Create, Update or Keep, and why.
	Plan Plan
	// Existing is the definition that the plan was decided on; nil if there was none.
	Existing *apiextensionsv1.CustomResourceDefinition
	// Elapsed is the time from the first read until the definition was in force.
	Elapsed time.Duration
}

// Ensure makes sure that every definition exists and is served. It creates and updates those that the program manages, all at the same
// time. It returns what was done for each definition that succeeded, in the given order, and the joined errors of the others. An error is
// *RefusedError or *ForbiddenError, or says what Ensure waited for.
func (i Installer) Ensure(ctx context.Context, definitions []Definition) ([]Result, error) {
	return i.each(ctx, definitions, i.ensure)
}

// Check makes sure, without writing anything, that every definition serves what this operator needs. It is for operators without the
// permission to write definitions. Without the permission to read them, it checks only what the API server serves.
func (i Installer) Check(ctx context.Context, definitions []Definition) ([]Result, error) {
	return i.each(ctx, definitions, i.check)
}

// Plan returns what Ensure would decide for each definition now, in the given order, without writing or waiting.
func (i Installer) Plan(ctx context.Context, definitions []Definition) ([]Result, error) {
	return i.each(ctx, definitions, i.plan)
}

type work func(ctx context.Context, definition Definition) (Result, error)

// each does the work for all definitions at the same time.
func (i Installer) each(ctx context.Context, definitions []Definition, do work) ([]Result, error) {
	ctx, cancel := i.bounded(ctx)
	defer cancel()

	results, faults := make([]Result, len(definitions)), make([]error, len(definitions))
	var group sync.WaitGroup
	for at, definition := range definitions {
		group.Go(func() {
			begin := time.Now()
			results[at], faults[at] = do(ctx, definition)
			results[at].Elapsed = time.Since(begin)
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

// ensure carries out the plan, and repeats this until nothing is left to do and the definition is in force.
func (i Installer) ensure(ctx context.Context, definition Definition) (Result, error) {
	var done *Result
	for round := 0; round < maxRounds; round++ {
		found, err := i.plan(ctx, definition)
		if err != nil {
			return Result{}, err
		}
		if found.Plan.Decision().Action != Keep {
			applied, err := i.execute(ctx, found)
			switch {
			case errors.Is(err, errCreatedMeanwhile):
				round-- // the next read of the definition ends with the context
				_ = sleep(ctx, lastPoll)
			case errors.Is(err, errStillServed):
				return keepWhileDeleted(found), nil
			case err != nil:
				return Result{}, err
			case applied:
				done = &found
			}
			continue
		}
		if done == nil {
			done = &found
		}
		settled, err := i.waitUntilReady(ctx, found.Definition)
		if err != nil {
			return Result{}, err
		}
		if settled {
			return *done, nil
		}
	}
	name := definition.Name()
	return Result{}, fmt.Errorf("apply definition %s: other clients changed it %d times meanwhile: look for another operator or tool that manages it "+
		"(kubectl get crd %s --show-managed-fields -o yaml)", name, maxRounds, name)
}

// plan reads the definition and decides. It checks objects only if the decision depends on them.
func (i Installer) plan(ctx context.Context, definition Definition) (Result, error) {
	if i.Conversion != nil {
		conversion, err := i.Conversion(ctx, definition)
		if err != nil {
			return Result{}, fmt.Errorf("find how objects of definition %s are converted: %w", definition.Name(), err)
		}
		definition.Conversion = conversion
	}
	existing, err := i.readDefinition(ctx, definition.Name())
	if err != nil {
		return Result{}, err
	}
	there := i.situation(existing, definition)
	decided := Decide(there, definition)
	if decided.NeedsObjects && i.Objects != nil {
		if there.Objects, err = i.checkObjects(ctx, existing, decided.Target); err != nil {
			return Result{}, fmt.Errorf("check the objects of definition %s before updating it: %w", definition.Name(), err)
		}
		decided = Decide(there, definition)
	}
	return Result{Definition: definition, Plan: decided, Existing: existing}, nil
}

// checkObjects finds out what the target would do to the objects. It starts again when the API server is unreachable for a moment.
func (i Installer) checkObjects(ctx context.Context, existing, target *apiextensionsv1.CustomResourceDefinition) (found *Objects, err error) {
	i.Log.Info("checking the objects of a definition before updating it", "name", existing.Name)
	const until = "the check of all objects to end (very many objects take longer: mysql-operator crds apply --timeout=10m)"
	err = poll(ctx, until, func(ctx context.Context) (bool, string, error) {
		objects, err := i.Objects.Check(ctx, existing, target)
		found = &objects
		return true, "", err
	})
	return found, err
}

func (i Installer) situation(existing *apiextensionsv1.CustomResourceDefinition, definition Definition) Situation {
	adopt := i.Adopt != nil && i.Adopt(definition.Name())
	return Situation{Existing: existing, Running: i.Running, Adopt: adopt, AllowBreaking: i.AllowBreaking}
}

// readDefinition reads a definition from the API server; nil if the cluster has none. It retries only errors that pass, and returns a
// refusal at once: a wait would hide it behind a timeout.
func (i Installer) readDefinition(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	var found *apiextensionsv1.CustomResourceDefinition
	err := poll(ctx, "the API server to answer about definition "+name, func(ctx context.Context) (bool, string, error) {
		object, err := i.API.Get(ctx, name)
		if apierrors.IsNotFound(err) {
			found = nil
			return true, "", nil
		}
		if err != nil {
			return false, "", explainPermanent("get", name, err)
		}
		found = object
		return true, "", nil
	})
	return found, err
}

// explainPermanent returns errors that pass without a change (isTransient) as they are, for poll, and adds the context to others.
func explainPermanent(verb, name string, err error) error {
	if isTransient(err) {
		return err
	}
	return explain(verb, name, err)
}
