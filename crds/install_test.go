package crds

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestEnsureCreatesAndWaitsUntilServed(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.slow = 2
	results, err := installer(s).Ensure(t.Context(), all(t))
	if err != nil {
		t.Fatal(err)
	}
	if results[0].Plan.Decision().Action != Create || s.written() != 1 {
		t.Errorf("did %s with %d writes, want one Create", results[0].Plan.Decision().Action, s.written())
	}
	if s.lag != 0 {
		t.Error("returned before it was served")
	}
}

func TestEnsureWritesNothingWhenUnchanged(t *testing.T) {
	t.Parallel()
	s := newServer(ours(t).Object())
	results, err := installer(s).Ensure(t.Context(), all(t))
	if err != nil {
		t.Fatal(err)
	}
	if results[0].Plan.Decision().Reason != ReasonUnchanged || s.written() != 0 {
		t.Errorf("%s with %d writes", results[0].Plan.Decision().Reason, s.written())
	}
}

func TestEnsureHealsAnEditAndKeepsWhatOthersAdded(t *testing.T) {
	t.Parallel()
	there := ours(t).Object()
	edited(there)
	there.Labels["team"] = "theirs"
	s := newServer(there)
	results, err := installer(s).Ensure(t.Context(), all(t))
	if err != nil {
		t.Fatal(err)
	}
	live := s.live(there.Name)
	if results[0].Plan.Decision().Reason != ReasonEdited || !sameSpec(live, ours(t).object) || live.Labels["team"] != "theirs" {
		t.Errorf("%s; labels %v", results[0].Plan.Decision().Reason, live.Labels)
	}
}

// TestEnsureTakesAwayWhatWeDoNotSpeakOf: Ensure removes what another client added to the spec. A server-side apply alone does not.
func TestEnsureTakesAwayWhatWeDoNotSpeakOf(t *testing.T) {
	t.Parallel()
	there := ours(t).Object()
	there.Spec.Names.Categories = []string{"mine"}
	s := newServer(there)
	results, err := installer(s).Ensure(t.Context(), all(t))
	if err != nil {
		t.Fatal(err)
	}
	if live := s.live(there.Name); results[0].Plan.Decision().Reason != ReasonEdited || !sameSpec(live, ours(t).object) {
		t.Errorf("%v; categories %v", results[0].Plan.Steps, live.Spec.Names.Categories)
	}
}

// TestEnsureLooksAgainAfterALostRace: between our read and our write a newer operator writes. Its definition must survive.
func TestEnsureLooksAgainAfterALostRace(t *testing.T) {
	t.Parallel()
	older := ours(t).Object()
	order("4")(older)
	newer := ours(t).Object()
	order("6")(newer)
	s := newServer(older)
	var once sync.Once
	s.before = func(verb string) error {
		if verb == "patch" {
			once.Do(func() { s.put(newer) })
		}
		return nil
	}
	results, err := installer(s).Ensure(t.Context(), all(t))
	if err != nil {
		t.Fatal(err)
	}
	if results[0].Plan.Decision().Reason != ReasonNewer || us.orderOf(s.live(newer.Name)) != 6 {
		t.Errorf("%s, and the cluster has schema-version %d", results[0].Plan.Decision().Reason, us.orderOf(s.live(newer.Name)))
	}
}

// TestEnsureHealsADowngradeByARacingOlderOperator: an older operator writes its definition right after ours, which it has not read.
func TestEnsureHealsADowngradeByARacingOlderOperator(t *testing.T) {
	t.Parallel()
	older := ours(t).Object()
	order("4")(older)
	withoutField(older)
	s := newServer()
	var reads atomic.Int32
	s.before = func(verb string) error {
		if verb == "get" && reads.Add(1) == 3 {
			s.put(older)
		}
		return nil
	}
	if _, err := installer(s).Ensure(t.Context(), all(t)); err != nil {
		t.Fatal(err)
	}
	if live := s.live(older.Name); us.orderOf(live) != 5 || !sameSpec(live, ours(t).object) {
		t.Errorf("the cluster is left with schema-version %d", us.orderOf(live))
	}
}

func TestTwoInstallersAtOnce(t *testing.T) {
	t.Parallel()
	s := newServer()
	var group sync.WaitGroup
	for range 4 {
		definitions := all(t)
		group.Go(func() {
			if _, err := installer(s).Ensure(t.Context(), definitions); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if live := s.live(ours(t).Name()); Decide(Situation{Existing: live}, ours(t)).Decision().Action != Keep {
		t.Error("the definition is not as the installers need it")
	}
}

func TestEnsureGivesUpAgainstAnEndlessOpponent(t *testing.T) {
	t.Parallel()
	there := ours(t).Object()
	edited(there)
	s := newServer(there)
	s.before = func(verb string) error {
		if verb == "patch" {
			s.put(there)
		}
		return nil
	}
	_, err := installer(s).Ensure(t.Context(), all(t))
	wantSays(t, err, "other clients changed it 10 times", "--show-managed-fields")
}

func TestEnsureWaitsForADeletionThenCreates(t *testing.T) {
	t.Parallel()
	going := ours(t).Object()
	beingDeleted(going)
	s := newServer(going)
	var reads atomic.Int32
	s.before = func(verb string) error {
		if verb == "get" && reads.Add(1) == 3 {
			s.remove(going.Name)
		}
		return nil
	}
	results, err := installer(s).Ensure(t.Context(), all(t))
	if err != nil {
		t.Fatal(err)
	}
	if results[0].Plan.Decision().Action != Create {
		t.Errorf("did %s", results[0].Plan.Decision().Action)
	}
}

// TestAProgramBeginsWithADefinitionWhoseObjectsStay: perhaps only this program removes their finalizers.
func TestAProgramBeginsWithADefinitionWhoseObjectsStay(t *testing.T) {
	t.Parallel()
	for story, work := range map[string]func(Installer) ([]Result, error){
		"it installs definitions": func(i Installer) ([]Result, error) { return i.Ensure(t.Context(), all(t)) },
		"it only checks them":     func(i Installer) ([]Result, error) { return i.Check(t.Context(), all(t)) },
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			going := ours(t).Object()
			beingDeleted(going)
			s := newServer(going)
			results, err := work(impatient(s))
			if err != nil {
				t.Fatal(err)
			}
			if decision := results[0].Plan.Decision(); decision.Action != Keep || decision.Reason != ReasonBeingDeleted {
				t.Errorf("did %s, %s", decision.Action, decision.Reason)
			}
			if s.written() != 0 {
				t.Error("it wrote something")
			}
		})
	}
	going := ours(t).Object()
	beingDeleted(going)
	running := impatient(newServer(going))
	running.Running = true
	_, err := running.Ensure(t.Context(), all(t))
	wantSays(t, err, "the deletion of definition "+going.Name, "look for finalizers")
}

func TestEnsureSaysWhatItCouldNotDo(t *testing.T) {
	t.Parallel()
	name := ours(t).Name()
	forbid := func(verb string) func(string) error {
		return func(got string) error {
			if got != verb {
				return nil
			}
			return apierrors.NewForbidden(groupResource(), name, errors.New("no"))
		}
	}
	refused := ours(t).Object()
	unmarked(refused)
	withoutField(refused)
	going := ours(t).Object()
	beingDeleted(going)
	withoutField(going)
	down := func(string) error { return syscall.ECONNREFUSED }
	for story, test := range map[string]struct {
		server *server
		says   []string
	}{
		"may not read":           {&server{before: forbid("get")}, []string{`does not have the permission "get"`, name, "mysql-operator manifests rbac"}},
		"may not write":          {&server{before: forbid("patch")}, []string{`does not have the permission "patch"`, "--crds=check"}},
		"another manager's":      {newServer(refused), []string{"does not serve what this operator needs", "status.epoch", "kubectl label crd"}},
		"names taken":            {&server{namesTaken: true}, []string{"does not accept the names", "the words of the API server"}},
		"never in force":         {&server{stale: 1 << 30}, []string{"to put the schema of definition " + name + " in force", "of the schema before"}},
		"never established":      {&server{slow: 1 << 30}, []string{"to be established", "not within 150ms", "condition Established is False"}},
		"API server unreachable": {&server{before: down}, []string{"the API server to answer", "connection refused"}},
		"deletion that hangs":    {newServer(going), []string{"the deletion of definition " + name, "look for finalizers"}},
		"refused as malformed":   {&server{before: func(verb string) error { return onPatch(verb, apierrors.NewInvalid(schemaKind(), name, nil)) }}, []string{"this Kubernetes does not accept it", "1.30"}},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			if test.server.objects == nil {
				test.server.objects = newServer().objects
			}
			_, err := impatient(test.server).Ensure(t.Context(), all(t))
			wantSays(t, err, test.says...)
		})
	}
}

func TestEnsureSurvivesAnAPIServerThatIsAwayForAMoment(t *testing.T) {
	t.Parallel()
	s := newServer()
	var calls atomic.Int32
	s.before = func(string) error {
		if call := calls.Add(1); call < 12 && call%2 == 1 {
			return syscall.ECONNREFUSED
		}
		return nil
	}
	if _, err := installer(s).Ensure(t.Context(), all(t)); err != nil {
		t.Fatal(err)
	}
}

func TestEnsureEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := newServer()
	s.slow = 1 << 30
	s.before = func(verb string) error {
		if verb == "patch" {
			cancel()
		}
		return nil
	}
	if _, err := installer(s).Ensure(ctx, all(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want it to be context.Canceled", err)
	}
}

func TestCheckNeverWrites(t *testing.T) {
	t.Parallel()
	older, lacking, stranger := ours(t).Object(), ours(t).Object(), ours(t).Object()
	order("4")(older)
	order("4")(lacking)
	withoutField(lacking)
	unmarked(stranger)
	unreadable := newServer(ours(t).Object())
	unreadable.before = func(verb string) error {
		if verb == "get" {
			return apierrors.NewForbidden(groupResource(), "", errors.New("no"))
		}
		return nil
	}
	for story, test := range map[string]struct {
		server *server
		reason Reason
		says   []string
	}{
		"as it should be":                {newServer(ours(t).Object()), ReasonUnchanged, nil},
		"older but good enough":          {newServer(older), ReasonOlder, nil},
		"older, without a field":         {newServer(lacking), "", []string{"status.epoch", "an administrator must apply it"}},
		"not there":                      {newServer(), "", []string{"does not have it yet", "manifests crds | kubectl apply"}},
		"another manager's, good enough": {newServer(stranger), ReasonForeign, nil},
		"not readable but served":        {unreadable, ReasonUnread, nil},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			results, err := impatient(test.server).Check(t.Context(), all(t))
			wantSays(t, err, test.says...)
			if err == nil && results[0].Plan.Decision().Reason != test.reason {
				t.Errorf("reason %s, want %s", results[0].Plan.Decision().Reason, test.reason)
			}
			if test.server.written() != 0 {
				t.Error("checking wrote something")
			}
		})
	}
}

func TestPlanSaysWhatEnsureWouldDo(t *testing.T) {
	t.Parallel()
	there := ours(t).Object()
	edited(there)
	s := newServer(there)
	results, err := installer(s).Plan(t.Context(), all(t))
	if err != nil {
		t.Fatal(err)
	}
	if results[0].Plan.Decision().Action != Update || s.written() != 0 {
		t.Errorf("planned %s with %d writes", results[0].Plan.Decision().Action, s.written())
	}
}

// wantSays fails unless err contains every part; no parts mean that err must be nil.
func wantSays(t *testing.T, err error, parts ...string) {
	t.Helper()
	if len(parts) == 0 && err != nil {
		t.Error(err)
	}
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
}

// TestEnsureWaitsUntilTheSchemaIsInForce: served is not enough after an update, because the API server may still prune with the former
// schema.
func TestEnsureWaitsUntilTheSchemaIsInForce(t *testing.T) {
	t.Parallel()
	older := ours(t).Object()
	order("4")(older)
	s := newServer(older)
	s.stale = 3
	if _, err := installer(s).Ensure(t.Context(), all(t)); err != nil {
		t.Fatal(err)
	}
	if s.stale != 0 {
		t.Error("returned before the schema was in force")
	}
}

// TestACreationWhoseAnswerWasLostIsDecidedAnew: a newer operator may have been faster. A second try must not overwrite its definition.
func TestACreationWhoseAnswerWasLostIsDecidedAnew(t *testing.T) {
	t.Parallel()
	newer := ours(t).Object()
	order("6")(newer)
	s := newServer()
	var once sync.Once
	s.before = func(verb string) (err error) {
		if verb == "patch" {
			once.Do(func() {
				s.put(newer)
				err = syscall.ECONNRESET
			})
		}
		return err
	}
	results, err := installer(s).Ensure(t.Context(), all(t))
	if err != nil {
		t.Fatal(err)
	}
	if results[0].Plan.Decision().Reason != ReasonNewer || s.written() != 0 {
		t.Errorf("%v with %d writes", results[0].Plan.Steps, s.written())
	}
}

type checker func() (Objects, error)

func (c checker) Check(context.Context, *apiextensionsv1.CustomResourceDefinition, *apiextensionsv1.CustomResourceDefinition) (Objects, error) {
	return c()
}

func TestEnsureLooksAtObjectsBeforeAnUpdate(t *testing.T) {
	t.Parallel()
	for story, test := range map[string]struct {
		found Objects
		fault error
		says  []string
	}{
		"all fit":         {found: Objects{Seen: 7}},
		"one does not":    {found: *misfit(), says: []string{"shop/a would lose spec.invented", "--crds-allow-breaking"}},
		"the check fails": {fault: errors.New("no permission"), says: []string{"check the objects of definition widgets.example.com", "no permission"}},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			there := ours(t).Object()
			narrower(there)
			s := newServer(there)
			one := installer(s)
			one.Objects = checker(func() (Objects, error) { return test.found, test.fault })
			_, err := one.Ensure(t.Context(), all(t))
			wantSays(t, err, test.says...)
			if refused := len(test.says) > 0; refused != (s.written() == 0) {
				t.Errorf("%d writes", s.written())
			}
		})
	}
}

// TestCheckWaitsForTheAdministrator: Check reports once what it waits for, and continues when the administrator has done it.
func TestCheckWaitsForTheAdministrator(t *testing.T) {
	t.Parallel()
	s := newServer()
	one, told := installer(s), atomic.Int32{}
	one.Waiting = func(string, string) {
		told.Add(1)
		s.put(ours(t).Object())
	}
	if _, err := one.Check(t.Context(), all(t)); err != nil {
		t.Fatal(err)
	}
	if told.Load() != 1 || s.written() != 0 {
		t.Errorf("reported %d times, wrote %d times", told.Load(), s.written())
	}
}
