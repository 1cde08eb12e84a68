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
	// watchPause is how long to wait before a watch that failed is tried again; the definition is looked at each time, so that an account
	// that may not watch sees changes too, only later.
	watchPause = 15 * time.Second
	// shortWatch is how long a watch lasts at least that works.
	shortWatch = time.Second
	// lookAgain is how long a definition is only watched where more than the definition decides.
	lookAgain = time.Minute
	// quietPeriod is how long a definition must stay unmodified before the guard repairs the next edit at once again.
	quietPeriod = 10 * time.Minute
)

// Guard watches over definitions while the program runs: one that was edited comes back, one that was deleted is registered again, and
// whatever it cannot mend it says. Every replica runs one: each decision is bound to what it was made on, and they all decide alike.
type Guard struct {
	installer   Installer
	definitions []Definition
	notify      func(context.Context, Notice)

	lock   sync.Mutex
	latest map[string]Sighting
}

// Notice is something about a definition that people should hear of.
type Notice struct {
	Definition Definition
	// Regarding is the definition as it was seen last; nil if it never was.
	Regarding *apiextensionsv1.CustomResourceDefinition
	// Warning says that somebody should look.
	Warning bool
	// Reason is one word: a step's reason, or ReasonLost, ReasonHealed or ReasonFault.
	Reason Reason
	// Message says it in a sentence.
	Message string
}

// What a Guard tells beside the reasons of its plans.
const (
	ReasonLost   Reason = "DefinitionDeleted" // somebody deleted the definition, and its objects with it
	ReasonHealed Reason = "DefinitionHealed"  // it is again as it has to be
	ReasonFault  Reason = "DefinitionFault"   // it cannot be looked after at the moment
)

// Sighting is how a definition was seen last.
type Sighting struct {
	Result
	// Err is why it could not be looked after; nil if it could.
	Err error
}

// NewGuard makes a Guard. notify is called from several goroutines, never twice in a row with the same for one definition.
func NewGuard(installer Installer, definitions []Definition, notify func(context.Context, Notice)) *Guard {
	installer.Running = true
	return &Guard{installer: installer, definitions: definitions, notify: notify, latest: map[string]Sighting{}}
}

// Latest returns how the definition was seen last, and false before it was seen at all.
func (g *Guard) Latest(name string) (Sighting, bool) {
	g.lock.Lock()
	defer g.lock.Unlock()
	seen, found := g.latest[name]
	return seen, found
}

// Run watches until ctx ends.
func (g *Guard) Run(ctx context.Context) {
	var group sync.WaitGroup
	for _, definition := range g.definitions {
		group.Go(func() { g.newPost(definition).keep(ctx) })
	}
	group.Wait()
}

// post is a Guard's watch over one definition.
type post struct {
	guard      *Guard
	definition Definition
	log        logr.Logger
	// pace spaces out healing where somebody undoes it every time.
	pace     wait.Backoff
	healed   time.Time
	told     Notice
	lastSeen *apiextensionsv1.CustomResourceDefinition
}

func (g *Guard) newPost(definition Definition) *post {
	return &post{guard: g, definition: definition, log: g.installer.Log.WithValues("name", definition.Name()), pace: newPace()}
}

func newPace() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 9, Cap: 5 * time.Minute}
}

// keep looks, heals, and waits for the next change, again and again.
func (p *post) keep(ctx context.Context) {
	rest, last := newRest(), ""
	for ctx.Err() == nil {
		seen := p.look(ctx)
		if ctx.Err() != nil {
			return
		}
		p.guard.remember(p.definition.Name(), seen)
		begun := time.Now()
		err := p.awaitChange(ctx, seen)
		switch {
		case err != nil:
			p.log.V(1).Info("the watch on a definition ended", "error", err.Error())
			_ = sleep(ctx, watchPause)
		case time.Since(begun) < shortWatch && seen.resourceVersion() == last:
			_ = sleep(ctx, rest.Step())
		default:
			rest = newRest()
		}
		last = seen.resourceVersion()
	}
}

// newRest spaces out looks at a definition that does not change, although each watch on it ends at once: a proxy may not let watches
// through.
func newRest() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.5, Steps: 9, Cap: watchPause}
}

func (g *Guard) remember(name string, seen Sighting) {
	g.lock.Lock()
	defer g.lock.Unlock()
	g.latest[name] = seen
}

// look decides, and does what is to be done.
func (p *post) look(ctx context.Context) Sighting {
	results, err := p.guard.installer.Plan(ctx, []Definition{p.definition})
	if err != nil {
		return p.fault(ctx, err)
	}
	found := results[0]
	if found.Existing != nil {
		p.lastSeen = found.Existing
	}
	decision := found.Plan.Decision()
	switch decision.Action {
	case Keep:
		p.tell(ctx, Notice{Reason: decision.Reason, Message: decision.Message})
		return Sighting{Result: found}
	case Refuse:
		p.tell(ctx, Notice{Warning: true, Reason: decision.Reason, Message: decision.Message})
		return Sighting{Result: found, Err: &RefusedError{Name: p.definition.Name(), Plan: found.Plan}}
	case Create, Wait:
		p.tell(ctx, Notice{Warning: true, Reason: ReasonLost, Message: p.loss()})
	case Update, Mark, CarryOver, Migrate:
	}
	return p.heal(ctx, found)
}

// loss says what went with a definition.
func (p *post) loss() string {
	objects := "whatever objects it had"
	if p.lastSeen != nil && p.lastSeen.Annotations[p.definition.identity.UsageAnnotation()] == UsageNone {
		objects = "no object, as it had none"
	}
	return fmt.Sprintf("somebody deleted definition %s, and with it %s; it is registered again, but its objects must be applied again", p.definition.Name(), objects)
}

func (p *post) heal(ctx context.Context, found Result) Sighting {
	if time.Since(p.healed) > quietPeriod {
		p.pace = newPace()
	} else if sleep(ctx, p.pace.Step()) != nil {
		return Sighting{Result: found}
	}
	results, err := p.guard.installer.Ensure(ctx, []Definition{p.definition})
	p.healed = time.Now()
	if err != nil {
		return p.fault(ctx, err)
	}
	done := results[0]
	if decision := done.Plan.Decision(); decision.Action != Keep {
		p.tell(ctx, Notice{Reason: ReasonHealed, Message: fmt.Sprintf("%s: %s", decision.Action, decision.Message)})
	}
	return Sighting{Result: done}
}

func (p *post) fault(ctx context.Context, err error) Sighting {
	p.tell(ctx, Notice{Warning: true, Reason: ReasonFault, Message: err.Error()})
	return Sighting{Result: Result{Definition: p.definition, Existing: p.lastSeen}, Err: err}
}

// tell hands on what has not just been said.
func (p *post) tell(ctx context.Context, news Notice) {
	news.Definition, news.Regarding = p.definition, p.lastSeen
	if news.Reason == p.told.Reason && news.Message == p.told.Message {
		return
	}
	p.told = news
	p.guard.notify(ctx, news)
}

// awaitChange returns nil as soon as the definition is another than the one seen, and an error if that cannot be watched.
func (p *post) awaitChange(ctx context.Context, seen Sighting) error {
	refused := (*RefusedError)(nil)
	if seen.Err != nil && !errors.As(seen.Err, &refused) {
		return seen.Err
	}
	// What is refused because of its objects may become right without a change of the definition, and a webhook's certificate is renewed.
	if refused != nil || seen.Definition.Conversion != nil {
		patience, cancel := context.WithTimeout(ctx, lookAgain)
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

// awaitOther returns nil when an event shows the definition in another resourceVersion, and when the events or ctx end.
func (p *post) awaitOther(ctx context.Context, events <-chan watch.Event, than string) error {
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
