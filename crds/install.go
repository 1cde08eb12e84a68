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
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
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
	// Objects looks at existing objects before an update that narrows what they may be. Without one such updates are made unseen.
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
	if decided.NeedsObjects() && i.Objects != nil {
		i.Log.Info("looking at the objects that an update would narrow", "name", definition.Name())
		objects, err := i.Objects.Check(ctx, existing, decided.Target)
		if err != nil {
			return Result{}, fmt.Errorf("look at the objects of definition %s before updating it: %w", definition.Name(), err)
		}
		there.Objects = &objects
		decided = Decide(there, definition)
	}
	return Result{Definition: definition, Plan: decided, Existing: existing}, nil
}

func (i Installer) situation(existing *apiextensionsv1.CustomResourceDefinition, definition Definition) Situation {
	adopt := i.Adopt != nil && i.Adopt(definition.Name())
	return Situation{Existing: existing, Running: i.Running, Adopt: adopt, AllowBreaking: i.AllowBreaking}
}

// carryOut acts on a decision other than Keep. It returns false if the decision was overtaken and a new one is due.
func (i Installer) carryOut(ctx context.Context, found Result) (applied bool, err error) {
	name, decision := found.Definition.Name(), found.Plan.Decision()
	switch decision.Action {
	case Create, Update:
		return i.apply(ctx, found)
	case Mark:
		return false, i.mark(ctx, found)
	case Wait:
		i.Log.Info("waiting for a definition to be gone", "name", name, "reason", decision.Reason)
		return false, i.waitUntilGone(ctx, name)
	case Keep, Refuse, CarryOver, Migrate:
	}
	return false, &RefusedError{Name: name, Plan: found.Plan}
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

// mark writes status.storedVersions.
func (i Installer) mark(ctx context.Context, found Result) error {
	return i.patch(ctx, found.Definition, map[string]any{
		"metadata": map[string]any{"resourceVersion": found.Existing.ResourceVersion}, "status": map[string]any{"storedVersions": found.Plan.Stored},
	}, "status")
}

// patch sends a merge patch that is bound to a resourceVersion. If somebody was faster, the next look tells.
func (i Installer) patch(ctx context.Context, definition Definition, content map[string]any, subresource ...string) error {
	name := definition.Name()
	body, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("render a patch of definition %s: %w", name, err)
	}
	return poll(ctx, "the API server to take a patch of definition "+name, func(ctx context.Context) (bool, string, error) {
		err := i.API.Patch(ctx, name, body, definition.identity.FieldManager(), subresource...)
		if err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return true, "", nil
		}
		return false, "", keepPassing("patch", name, err)
	})
}

// errOvertaken says that it is unknown whether a creation took effect, or that somebody else's did: a new decision is due.
var errOvertaken = errors.New("the creation was overtaken")

// apply sends the target. An update is bound to what it was decided on, so it may be sent again when the answer was lost. A creation
// cannot be bound to there being nothing: it is sent once, and decided on anew when the answer was lost.
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
	err = poll(ctx, "the API server to take definition "+name, func(ctx context.Context) (bool, string, error) {
		// Taking over fields is right only for a definition that was found to be ours.
		object, err := i.API.Apply(ctx, name, body, ApplyOptions{Manager: found.Definition.identity.FieldManager(), TakeOver: true})
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return true, "", nil
		}
		if err != nil {
			return false, "", keepPassing("patch", name, err)
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
	case apierrors.IsConflict(err) || isPassing(err):
		return false, errOvertaken
	case apierrors.IsInvalid(err) && i.exists(ctx, name):
		return false, errOvertaken // what is invalid may be the difference to what somebody else created meanwhile
	default:
		return false, explain("patch", name, err)
	}
}

func (i Installer) exists(ctx context.Context, name string) bool {
	existing, err := i.look(ctx, name)
	return err == nil && existing != nil
}

// clear takes away what others added to the spec and we do not speak of: a server-side apply leaves that alone.
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
		"metadata": map[string]any{"resourceVersion": applied.ResourceVersion}, "spec": json.RawMessage(difference),
	})
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

// settle waits until the definition is established, served and in force. It returns false if somebody changed it meanwhile so that a new
// decision is due: an older operator may have created it between our look and our write.
func (i Installer) settle(ctx context.Context, definition Definition) (settled bool, err error) {
	name := definition.Name()
	var established *apiextensionsv1.CustomResourceDefinition
	err = poll(ctx, "definition "+name+" to be established", func(ctx context.Context) (bool, string, error) {
		object, err := i.API.Get(ctx, name)
		if apierrors.IsNotFound(err) {
			return true, "", nil
		}
		if err != nil {
			return false, "", keepPassing("get", name, err)
		}
		if Decide(i.situation(object, definition), definition).Decision().Action != Keep {
			return true, "", nil
		}
		ready, seen, err := readiness(object)
		if ready {
			established = object
		}
		return ready, seen, err
	})
	if err != nil || established == nil {
		return false, err
	}
	if err := i.waitUntilServed(ctx, definition); err != nil {
		return false, err
	}
	return true, i.waitUntilEnforced(ctx, definition, established)
}

// waitUntilServed looks at discovery, because an established definition may not be served yet, or only in its former form.
func (i Installer) waitUntilServed(ctx context.Context, definition Definition) error {
	at := definition.Resource()
	return poll(ctx, fmt.Sprintf("the API server to serve %s in %s", at.Resource, at.GroupVersion()), func(ctx context.Context) (bool, string, error) {
		list, err := i.API.Resources(ctx, at.Group, at.Version)
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

// waitUntilEnforced asks which schema is in force. Neither conditions nor discovery tell: both may be about the definition as it is now
// while requests are still validated and pruned by the one before. What is printed of an empty list tells, because the API server makes its
// columns, its validation and its pruning of one and the same reading of the definition (getOrCreateServingInfoFor in
// k8s.io/apiextensions-apiserver/pkg/apiserver), and the columns carry a mark of the schema they came with. Who may not list the custom
// resources cannot ask, and goes by discovery.
func (i Installer) waitUntilEnforced(ctx context.Context, definition Definition, established *apiextensionsv1.CustomResourceDefinition) error {
	version := findVersion(established, definition.Uses)
	if len(version.AdditionalPrinterColumns) == 0 {
		return nil
	}
	want := version.AdditionalPrinterColumns[len(version.AdditionalPrinterColumns)-1].Description
	namespace := ""
	if definition.Namespaced() {
		namespace = cmp.Or(i.Namespace, "default")
	}
	return poll(ctx, "the API server to put the schema of definition "+definition.Name()+" in force", func(ctx context.Context) (bool, string, error) {
		columns, err := i.API.Columns(ctx, definition.Resource(), namespace)
		switch {
		case apierrors.IsForbidden(err):
			return true, "", nil
		case apierrors.IsNotFound(err):
			return false, "it is not served yet", nil
		case err != nil:
			return false, "", keepPassing("list", definition.Name(), err)
		case len(columns) == 0:
			return false, "nothing is printed", nil
		}
		last := columns[len(columns)-1].Description
		return last == want, fmt.Sprintf("the schema before it is (%q, not %q)", last, want), nil
	})
}

// keepPassing leaves errors that pass by themselves as they are, for poll to see, and gives the others their context.
func keepPassing(verb, name string, err error) error {
	if isPassing(err) {
		return err
	}
	return explain(verb, name, err)
}
