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
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// watchPause is the time before a failed watch is started again. The guard reads the definition each time, so that it notices changes,
	// only later, even if its account has no permission to watch.
	watchPause = 15 * time.Second
	// shortWatch is the shortest time that a working watch lasts.
	shortWatch = time.Second
	// resyncInterval is the time after which the guard decides again without an event, where the decision depends on more than the definition.
	resyncInterval = time.Minute
	// quietPeriod is how long a definition must stay unmodified before the guard again repairs the next edit at once.
	quietPeriod = 10 * time.Minute
)

// Guard watches definitions while the program runs. It reverts edits, registers deleted definitions again, and reports what it cannot fix.
// Every replica runs one: each write is bound to the resourceVersion it was decided on, and all replicas decide alike.
type Guard struct {
	installer   Installer
	definitions []Definition
	notify      func(context.Context, Notice)

	lock   sync.Mutex
	latest map[string]Observed
}

// Notice is a report about a definition to users.
type Notice struct {
	Definition Definition
	// Regarding is the latest definition that the guard read; nil if there was none.
	Regarding *apiextensionsv1.CustomResourceDefinition
	// Warning says that a user should act.
	Warning bool
	// Reason is one word: a step's reason, or ReasonDefinitionDeleted, ReasonHealed or ReasonFault.
	Reason Reason
	// Message explains the reason in a sentence.
	Message string
}

// Reasons that a Guard reports in addition to those of its plans.
const (
	ReasonDefinitionDeleted Reason = "DefinitionDeleted" // a client deleted the definition, and the API server deleted its objects
	ReasonHealed            Reason = "DefinitionHealed"  // the guard restored the definition
	ReasonFault             Reason = "DefinitionFault"   // the guard cannot read or repair the definition at the moment
)

// Observed is what a Guard observed last of a definition.
type Observed struct {
	Result
	// Err is why the guard could not read or repair the definition, or cannot work with it; nil if it can.
	Err error
}

// NewGuard makes a Guard. It calls notify from several goroutines, but never twice in a row with the same notice for one definition.
func NewGuard(installer Installer, definitions []Definition, notify func(context.Context, Notice)) *Guard {
	installer.Running = true
	return &Guard{installer: installer, definitions: definitions, notify: notify, latest: map[string]Observed{}}
}

// Latest returns the last observation of the definition, and false before the first.
func (g *Guard) Latest(name string) (Observed, bool) {
	g.lock.Lock()
	defer g.lock.Unlock()
	seen, found := g.latest[name]
	return seen, found
}

// Run watches the definitions until ctx ends.
func (g *Guard) Run(ctx context.Context) {
	var group sync.WaitGroup
	for _, definition := range g.definitions {
		group.Go(func() { g.newWatcher(definition).run(ctx) })
	}
	group.Wait()
}

// definitionWatcher watches one definition for a Guard.
type definitionWatcher struct {
	guard      *Guard
	definition Definition
	log        logr.Logger
	// repairBackoff increases the time between repairs when another client undoes each of them.
	repairBackoff wait.Backoff
	repairedAt    time.Time
	lastNotice    Notice
	lastSeen      *apiextensionsv1.CustomResourceDefinition
}

func (g *Guard) newWatcher(definition Definition) *definitionWatcher {
	return &definitionWatcher{guard: g, definition: definition, log: g.installer.Log.WithValues("name", definition.Name()), repairBackoff: newRepairBackoff()}
}

func newRepairBackoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 9, Cap: 5 * time.Minute}
}

// run reads the definition, repairs it, and waits for the next change, in a loop until ctx ends.
func (p *definitionWatcher) run(ctx context.Context) {
	rest, last := newWatchBackoff(), ""
	for ctx.Err() == nil {
		seen := p.reconcile(ctx)
		if ctx.Err() != nil {
			return
		}
		p.guard.setLatest(p.definition.Name(), seen)
		begun := time.Now()
		err := p.awaitChange(ctx, seen)
		switch {
		case err != nil:
			p.log.V(1).Info("the watch on a definition ended", "error", err.Error())
			_ = sleep(ctx, watchPause)
		case time.Since(begun) < shortWatch && seen.resourceVersion() == last:
			_ = sleep(ctx, rest.Step())
		default:
			rest = newWatchBackoff()
		}
		last = seen.resourceVersion()
	}
}

// newWatchBackoff returns the growing times between two passes for a definition that does not change, although each watch on it ends at
// once. A proxy may block watches, for example.
func newWatchBackoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.5, Steps: 9, Cap: watchPause}
}

func (g *Guard) setLatest(name string, seen Observed) {
	g.lock.Lock()
	defer g.lock.Unlock()
	g.latest[name] = seen
}

// reconcile reads the definition, decides, and acts on the decision.
func (p *definitionWatcher) reconcile(ctx context.Context) Observed {
	results, err := p.guard.installer.Plan(ctx, []Definition{p.definition})
	if err != nil {
		return p.reportFault(ctx, err)
	}
	found := results[0]
	if found.Existing != nil {
		p.lastSeen = found.Existing
	}
	decision := found.Plan.Decision()
	switch decision.Action {
	case Keep:
		p.report(ctx, Notice{Reason: decision.Reason, Message: decision.Message})
		return Observed{Result: found}
	case Refuse:
		p.report(ctx, Notice{Warning: true, Reason: decision.Reason, Message: decision.Message})
		return Observed{Result: found, Err: &RefusedError{Name: p.definition.Name(), Plan: found.Plan}}
	case Create, Wait:
		p.report(ctx, Notice{Warning: true, Reason: ReasonDefinitionDeleted, Message: p.deletionMessage()})
	case Update, Mark, CarryOver, Migrate:
	}
	return p.repair(ctx, found)
}

// deletionMessage returns the message that a definition and its objects were deleted.
func (p *definitionWatcher) deletionMessage() string {
	objects := "all its objects"
	if p.lastSeen != nil && p.lastSeen.Annotations[p.definition.identity.UsageAnnotation()] == UsageNone {
		objects = "no object, because it had none"
	}
	return fmt.Sprintf("a client deleted definition %s, and with it %s; the operator registers the definition again, but a user must apply its objects again", p.definition.Name(), objects)
}

func (p *definitionWatcher) repair(ctx context.Context, found Result) Observed {
	if time.Since(p.repairedAt) > quietPeriod {
		p.repairBackoff = newRepairBackoff()
	} else if sleep(ctx, p.repairBackoff.Step()) != nil {
		return Observed{Result: found}
	}
	results, err := p.guard.installer.Ensure(ctx, []Definition{p.definition})
	p.repairedAt = time.Now()
	if err != nil {
		return p.reportFault(ctx, err)
	}
	done := results[0]
	if decision := done.Plan.Decision(); decision.Action != Keep {
		p.report(ctx, Notice{Reason: ReasonHealed, Message: fmt.Sprintf("%s: %s", decision.Action, decision.Message)})
	}
	return Observed{Result: done}
}

func (p *definitionWatcher) reportFault(ctx context.Context, err error) Observed {
	p.report(ctx, Notice{Warning: true, Reason: ReasonFault, Message: err.Error()})
	return Observed{Result: Result{Definition: p.definition, Existing: p.lastSeen}, Err: err}
}

// report passes a notice to notify unless it is the same as the one before.
func (p *definitionWatcher) report(ctx context.Context, news Notice) {
	news.Definition, news.Regarding = p.definition, p.lastSeen
	if news.Reason == p.lastNotice.Reason && news.Message == p.lastNotice.Message {
		return
	}
	p.lastNotice = news
	p.guard.notify(ctx, news)
}

// awaitChange returns nil as soon as the definition differs from the observed one, and an error if it cannot be watched.
func (p *definitionWatcher) awaitChange(ctx context.Context, seen Observed) error {
	refused := (*RefusedError)(nil)
	if seen.Err != nil && !errors.As(seen.Err, &refused) {
		return seen.Err
	}
	// A refusal because of objects may end without a change of the definition, and a webhook's certificate is renewed.
	if refused != nil || seen.Definition.Conversion != nil {
		patience, cancel := context.WithTimeout(ctx, resyncInterval)
		defer cancel()
		ctx = patience
	}
	from := ""
	if seen.Existing != nil {
		from = seen.Existing.ResourceVersion
	}
	watching, err := p.guard.installer.API.Watch(ctx, p.definition.Name(), cmp.Or(from, "0"))
	if err != nil {
		return err
	}
	defer watching.Stop()
	return p.awaitOther(ctx, watching.ResultChan(), from)
}

// awaitOther returns nil when an event has the definition with another resourceVersion, and when the events or ctx end.
func (p *definitionWatcher) awaitOther(ctx context.Context, events <-chan watch.Event, than string) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, open := <-events:
			if !open {
				return nil
			}
			object, isDefinition := event.Object.(*apiextensionsv1.CustomResourceDefinition)
			if !isDefinition {
				return fmt.Errorf("watch definition %s: %v", p.definition.Name(), event.Object)
			}
			if event.Type != watch.Bookmark && object.ResourceVersion != than {
				return nil
			}
		}
	}
}
