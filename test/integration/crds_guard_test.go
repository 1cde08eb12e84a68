package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/crds"
	"github.com/mysql-operator/mysql-operator/deploy"
	"github.com/mysql-operator/mysql-operator/test/integration/internal/apiserver"
)

// watched is a kind whose operator of the third release is running: it has booted, guards its definition, and leads.
type watched struct {
	product
	guard *crds.Guard
	lock  sync.Mutex
	told  []string
	some  bool
}

func newWatched(t *testing.T, server *apiserver.Server, plural string, migrate func(context.Context, string) error) *watched {
	t.Helper()
	w := &watched{product: product{t: t, server: server, plural: plural}}
	o := w.operator(3, nil)
	if _, err := o.boot(t.Context()); err != nil {
		t.Fatal(err)
	}
	installer, err := o.installer()
	if err != nil {
		t.Fatal(err)
	}
	w.guard = crds.NewGuard(installer, []crds.Definition{w.definition(3)}, func(_ context.Context, notice crds.Notice) {
		w.lock.Lock()
		defer w.lock.Unlock()
		w.told = append(w.told, fmt.Sprintf("%t %s: %s", notice.Warning, notice.Reason, notice.Message))
	})
	leader := crds.Leader{Guard: w.guard, Migrate: migrate, InUse: func(crds.Definition) (bool, bool) {
		w.lock.Lock()
		defer w.lock.Unlock()
		return w.some, true
	}}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.guard.Run(ctx) })
	running.Go(func() { leader.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
		w.remove()
	})
	return w
}

func (w *watched) awaitTold(part string) {
	w.t.Helper()
	apiserver.Eventually(w.t, func(context.Context) string {
		w.lock.Lock()
		defer w.lock.Unlock()
		if slices.ContainsFunc(w.told, func(line string) bool { return strings.Contains(line, part) }) {
			return ""
		}
		return fmt.Sprintf("the guard gave no notice %q, only %q", part, w.told)
	})
}

func (p product) patch(body string) {
	p.t.Helper()
	if _, err := p.server.Dynamic.Resource(definitionResource()).Patch(p.t.Context(), p.name(), types.JSONPatchType, []byte(body), metav1.PatchOptions{FieldManager: "someone"}); err != nil {
		p.t.Fatal(err)
	}
}

// awaitNewest waits until the definition is as the third release has it.
func (w *watched) awaitNewest() {
	w.t.Helper()
	apiserver.Eventually(w.t, func(ctx context.Context) string {
		result, err := w.operator(3, nil).boot(ctx)
		switch {
		case err != nil:
			return err.Error()
		case result.Plan.Decision().Action != crds.Keep:
			return fmt.Sprint(result.Plan.Steps)
		default:
			return ""
		}
	})
}

func TestGuardHealsAnEdit(t *testing.T) {
	t.Parallel()
	w := newWatched(t, pool.Shared(t), "edits", nil)
	w.patch(`[{"op":"remove","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/tags"}]`)
	w.awaitTold("false DefinitionHealed: Update: it differs from what the operator applied")
	w.awaitNewest()
}

// TestGuardServesAVersionAgain: objects cannot be read where no version is served, and need not be looked at.
func TestGuardServesAVersionAgain(t *testing.T) {
	t.Parallel()
	w := newWatched(t, pool.Shared(t), "serves", nil)
	spec := map[string]any{"size": int64(1)}
	if err := w.create(t.Context(), "v1", "default", "a", spec); err != nil {
		t.Fatal(err)
	}
	w.patch(`[{"op":"replace","path":"/spec/versions/0/served","value":false}]`)
	w.awaitTold("false DefinitionHealed: Update: it differs from what the operator applied")
	w.awaitNewest()
	w.wantObjects(map[string]map[string]any{"a": spec})
}

// TestNothingIsTakenAwayThatObjectsUse: a user added a field by hand, and objects use it. If the operator healed the definition, the API
// server would prune the field.
func TestNothingIsTakenAwayThatObjectsUse(t *testing.T) {
	t.Parallel()
	p := product{t: t, server: pool.Shared(t), plural: "harms"}
	defer p.remove()
	if _, err := p.operator(3, nil).boot(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.patch(`[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/mine","value":{"type":"string"}}]`)
	apiserver.Eventually(t, func(ctx context.Context) string {
		if err := p.create(ctx, "v1", "default", "a", map[string]any{"mine": "precious"}); err != nil {
			return err.Error()
		}
		return ""
	})
	_, err := p.operator(3, nil).boot(t.Context())
	if err == nil || !strings.Contains(err.Error(), "default/a would lose spec.mine") || !strings.Contains(err.Error(), "--crds-allow-breaking") {
		t.Errorf("error %v, want what would be lost and the way out", err)
	}
	p.wantObjects(map[string]map[string]any{"a": {"mine": "precious"}})

	installer, err := p.operator(3, nil).installer()
	if err != nil {
		t.Fatal(err)
	}
	installer.AllowBreaking = true
	results, err := installer.Ensure(t.Context(), []crds.Definition{p.definition(3)})
	if err != nil || !strings.Contains(results[0].Plan.Decision().Message, "default/a would lose spec.mine") {
		t.Errorf("allowed to break: %v, error %v", results, err)
	}
}

func TestGuardRegistersADeletedDefinitionAgain(t *testing.T) {
	t.Parallel()
	w := newWatched(t, pool.Shared(t), "losses", nil)
	w.lock.Lock()
	w.some = true
	w.lock.Unlock()
	if err := w.create(t.Context(), "v1", "default", "a", map[string]any{"size": int64(1)}); err != nil {
		t.Fatal(err)
	}
	before := w.live().GetUID()
	w.remove()
	w.awaitTold("true DefinitionDeleted: a client deleted definition " + w.name())
	w.awaitTold("false DefinitionHealed: Create")
	w.awaitNewest()
	if w.live().GetUID() == before {
		t.Error("it is the definition that was deleted")
	}
}

// TestAnOperatorStartsWhileADefinitionGoes: what holds its objects is perhaps a finalizer that this operator takes off.
func TestAnOperatorStartsWhileADefinitionGoes(t *testing.T) {
	t.Parallel()
	p := product{t: t, server: pool.Shared(t), plural: "stays"}
	if _, err := p.operator(3, nil).boot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.create(t.Context(), "v1", "default", "a", map[string]any{"size": int64(1)}); err != nil {
		t.Fatal(err)
	}
	finalizers := func(body string) error {
		_, err := p.client("v1").Namespace("default").Patch(t.Context(), "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":`+body+`}}`), metav1.PatchOptions{})
		return err
	}
	if err := finalizers(`["example.com/held"]`); err != nil {
		t.Fatal(err)
	}
	p.remove()
	defer p.remove()
	began, err := p.operator(3, nil).boot(t.Context())
	if decision := began.Plan.Decision(); err != nil || decision.Action != crds.Keep || decision.Reason != crds.ReasonBeingDeleted {
		t.Fatalf("did %s %s, error %v", decision.Action, decision.Reason, err)
	}
	if err := finalizers("null"); err != nil {
		t.Fatalf("what is being deleted cannot be written: %v", err)
	}
	apiserver.Eventually(t, func(ctx context.Context) string {
		again, err := p.operator(3, nil).boot(ctx)
		if decision := again.Plan.Decision(); err != nil || decision.Action != crds.Create {
			return fmt.Sprintf("did %s %s, error %v", decision.Action, decision.Reason, err)
		}
		return ""
	})
}

// TestPolicyProtectsDefinitionsWithObjects: what manifests protection prints, installed by an administrator.
func TestPolicyProtectsDefinitionsWithObjects(t *testing.T) {
	t.Parallel()
	server := pool.Shared(t)
	w := newWatched(t, server, "keeps", nil)
	other := product{t: t, server: server, plural: "others"}
	if _, err := other.operator(3, nil).boot(t.Context()); err != nil {
		t.Fatal(err)
	}
	registry{Server: server, t: t}.applyObjects(deploy.Protection(deploy.Protected{
		Definitions: []string{w.name(), other.name()}, UsageAnnotation: bootIdentity.UsageAnnotation(), Unused: crds.UsageNone, DeletionAnnotation: bootIdentity.DeletionAnnotation(),
	}))
	definitions := server.Dynamic.Resource(definitionResource())
	refused := func(name string) func(context.Context) string {
		return func(ctx context.Context) string {
			err := definitions.Delete(ctx, name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
			if err == nil || !strings.Contains(err.Error(), "kubectl annotate crd "+name+" "+bootIdentity.DeletionAnnotation()+"=true") {
				return fmt.Sprintf("deleting %s: %v, want a refusal with the remedy", name, err)
			}
			return ""
		}
	}
	apiserver.Eventually(t, refused(other.name())) // no operator leads there, so none knows whether it has objects

	allowed := func(ctx context.Context) string {
		if err := definitions.Delete(ctx, w.name(), metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			return err.Error()
		}
		return ""
	}
	apiserver.Eventually(t, allowed)
	w.lock.Lock()
	w.some = true
	w.lock.Unlock()
	apiserver.Eventually(t, refused(w.name()))
	if err := definitions.DeleteCollection(t.Context(), metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, metav1.ListOptions{}); err == nil {
		t.Error("deleting all definitions at once is not refused")
	}
	w.patch(`[{"op":"add","path":"/metadata/annotations/` + strings.ReplaceAll(bootIdentity.DeletionAnnotation(), "/", "~1") + `","value":"true"}]`)
	apiserver.Eventually(t, allowed)
}

// TestLeaderMigratesWhatAnUpgradeLeft: the operator of the third release starts where the first was; the rest happens by itself.
func TestLeaderMigratesWhatAnUpgradeLeft(t *testing.T) {
	t.Parallel()
	server := pool.Shared(t)
	p := product{t: t, server: server, plural: "moves"}
	before := p.firstRelease()
	w := newWatched(t, server, "moves", func(ctx context.Context, _ string) error { return p.operator(3, nil).lead(ctx) })
	apiserver.Eventually(t, func(context.Context) string {
		if len(versions(t, w.live())) != 1 {
			return "the old version is still there"
		}
		return ""
	})
	w.wantNewest()
	w.wantObjects(before)
}

// TestCheckWithoutAnyRight: an operator that may not even read definitions waits for the administrator. It continues when the definition
// is served.
func TestCheckWithoutAnyRight(t *testing.T) {
	t.Parallel()
	p := product{t: t, server: pool.Shared(t), plural: "checks"}
	o := p.operator(3, nil)
	o.config.Impersonate.UserName, o.config.Impersonate.Groups = "stranger", []string{"system:authenticated"}
	o.timeout = time.Minute
	installer, err := o.installer()
	if err != nil {
		t.Fatal(err)
	}
	waiting := make(chan string, 8)
	installer.Waiting = func(_, message string) { waiting <- message }
	checked := make(chan error, 1)
	go func() {
		_, err := installer.Check(t.Context(), []crds.Definition{p.definition(3)})
		checked <- err
	}()
	if message := <-waiting; !strings.Contains(message, "is not served") || !strings.Contains(message, "manifests crds | kubectl apply") {
		t.Errorf("it waits for %q", message)
	}
	if _, err := p.operator(3, nil).boot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-checked; err != nil {
		t.Error(err)
	}
}

// TestServedMeansInForce: the moment Ensure returns after an update, objects are validated and pruned by the new schema, on every try.
func TestServedMeansInForce(t *testing.T) {
	t.Parallel()
	server := pool.Shared(t)
	for round := range 10 {
		p := product{t: t, server: server, plural: fmt.Sprintf("forces%ds", round)}
		if _, err := p.operator(2, nil).boot(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := p.create(t.Context(), "v1", "default", "a", map[string]any{"tags": "too early"}); err == nil {
			t.Fatal("the second release knows tags already")
		}
		if _, err := p.operator(3, nil).boot(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := p.create(t.Context(), "v1", "default", "a", map[string]any{"tags": "at once"}); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		p.remove()
	}
}
