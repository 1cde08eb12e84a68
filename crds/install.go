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
	// Objects looks at existing objects before an update that could touch them. Without one such updates are made unseen.
	Objects ObjectChecker
	// Namespace is one in which the program may list the custom resources: there it asks which schema is in force. Default: default.
	Namespace string
	// Conversion returns how objects are converted, for definitions whose versions need more than another apiVersion; nil, or a nil
	// result, leaves what the YAML says.
	Conversion func(ctx context.Context, definition Definition) (*apiextensionsv1.CustomResourceConversion, error)
	// Adopt says which definitions to take over from whoever manages them, by name. Nil means none.
	Adopt func(name string) bool
	// AllowBreaking goes on where objects would lose fields or become invalid.
	AllowBreaking bool
	// Running says that the definitions were brought before and are watched over now: see Situation.
	Running bool
	// Waiting is told, whenever that changes, what Check waits for. Nil means nobody is.
	Waiting func(name, message string)
}

// Result tells what became of one definition.
type Result struct {
	Definition Definition
	// Plan is what was decided and, for Ensure and Check, done: Create, Update or Keep, and why.
	Plan Plan
	// Existing is the definition as it was when that was decided; nil if there was none.
	Existing *apiextensionsv1.CustomResourceDefinition
	// Took is the time from the first look until the definition was in force.
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
			results[at].Took = time.Since(begin)
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

// ensure does what the plan says, again and again until there is nothing left to do and the definition is in force.
func (i Installer) ensure(ctx context.Context, definition Definition) (Result, error) {
	var done *Result
	for round := 0; round < maxRounds; round++ {
		found, err := i.plan(ctx, definition)
		if err != nil {
			return Result{}, err
		}
		if found.Plan.Decision().Action != Keep {
			applied, err := i.carryOut(ctx, found)
			switch {
			case errors.Is(err, errOvertaken):
				round-- // the next look ends with the context
				_ = sleep(ctx, lastPoll)
			case errors.Is(err, errServing):
				return serving(found), nil
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
		settled, err := i.settle(ctx, found.Definition)
		if err != nil {
			return Result{}, err
		}
		if settled {
			return *done, nil
		}
	}
	name := definition.Name()
	return Result{}, fmt.Errorf("apply definition %s: somebody else changed it %d times meanwhile: look for another operator or tool that manages it "+
		"(kubectl get crd %s --show-managed-fields -o yaml)", name, maxRounds, name)
}

// plan looks and decides. Objects are looked at only where the decision depends on them.
func (i Installer) plan(ctx context.Context, definition Definition) (Result, error) {
	if i.Conversion != nil {
		conversion, err := i.Conversion(ctx, definition)
		if err != nil {
			return Result{}, fmt.Errorf("find how objects of definition %s are converted: %w", definition.Name(), err)
		}
		definition.Conversion = conversion
	}
	existing, err := i.look(ctx, definition.Name())
	if err != nil {
		return Result{}, err
	}
	there := i.situation(existing, definition)
	decided := Decide(there, definition)
	if decided.NeedsObjects && i.Objects != nil {
		if there.Objects, err = i.lookAtObjects(ctx, existing, decided.Target); err != nil {
			return Result{}, fmt.Errorf("look at the objects of definition %s before updating it: %w", definition.Name(), err)
		}
		decided = Decide(there, definition)
	}
	return Result{Definition: definition, Plan: decided, Existing: existing}, nil
}

// lookAtObjects finds out what the target would do to the objects. It begins again where the API server is away for a moment.
func (i Installer) lookAtObjects(ctx context.Context, existing, target *apiextensionsv1.CustomResourceDefinition) (found *Objects, err error) {
	i.Log.Info("looking at the objects of a definition before it is updated", "name", existing.Name)
	const until = "the look at all objects to end (very many take longer: mysql-operator crds apply --timeout=10m)"
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

// keepPassing leaves errors that pass by themselves as they are, for poll to see, and gives the others their context.
func keepPassing(verb, name string, err error) error {
	if isPassing(err) {
		return err
	}
	return explain(verb, name, err)
}
