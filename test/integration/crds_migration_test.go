package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/mysql-operator/mysql-operator/crds/migration"
	"github.com/mysql-operator/mysql-operator/test/integration/internal/apiserver"
)

// TestMigrationFacts shows what migration relies on: how the API server behaves.
func TestMigrationFacts(t *testing.T) {
	t.Parallel()
	for story, test := range map[string]func(t *testing.T, server *apiserver.Server){
		"a merge patch without content stores the object again, and changes nothing else":       factEmptyPatch,
		"entries of a version that is gone break applying, and a write loses all managedFields": factVersionGone,
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			test(t, pool.Shared(t))
		})
	}
}

func factEmptyPatch(t *testing.T, server *apiserver.Server) {
	a := newArchive(t, server, "pages", "v1 served storage", "v2 served")
	before := a.mustApply("v1", "one", "owner", map[string]any{"text": "hello"})
	a.define("v1 served", "v2 served storage")
	if got := a.storedIn(); got != "1 in v1" {
		t.Fatalf("before: %s", got)
	}
	after := a.patch("v2", "one", `{}`)
	if got := a.storedIn(); got != "1 in v2" {
		t.Errorf("after: %s", got)
	}
	if after.GetResourceVersion() == before.GetResourceVersion() {
		t.Error("the resourceVersion is the same: nothing was written")
	}
	if after.GetGeneration() != before.GetGeneration() {
		t.Errorf("the generation went from %d to %d", before.GetGeneration(), after.GetGeneration())
	}
	equal := cmp.Comparer(func(a, b metav1.FieldsV1) bool { return a.Equal(b) })
	if diff := cmp.Diff(before.GetManagedFields(), after.GetManagedFields(), equal); diff != "" {
		t.Errorf("managedFields changed, times included (-before +after):\n%s", diff)
	}
	if again := a.patch("v2", "one", `{}`); again.GetResourceVersion() != after.GetResourceVersion() {
		t.Error("an object that is stored in the right version was written")
	}
}

func factVersionGone(t *testing.T, server *apiserver.Server) {
	a := newArchive(t, server, "papers", "v1 served storage", "v2 served")
	a.mustApply("v1", "one", "owner", map[string]any{"text": "hello"})
	a.define("v1 served", "v2 served storage")
	a.patch("v2", "one", `{}`)
	a.setStored("v2")
	a.define("v2 served storage")
	for _, manager := range []string{"owner", "other"} {
		if _, err := a.apply("v2", "one", manager, map[string]any{"text": "hello"}); err == nil || !strings.Contains(err.Error(), "invalid group/version: "+archiveGroup+"/v1") {
			t.Errorf("apply by %s: error %v", manager, err)
		}
	}
	// Up to Kubernetes 1.36; later ones keep them.
	if left := managers(a.patch("v2", "one", `{"spec":{"note":"written"}}`)); len(left) != 0 {
		t.Errorf("managedFields after a write: %v", left)
	}
}

// TestMigration migrates a few objects, each in a state of its own.
func TestMigration(t *testing.T) {
	t.Parallel()
	for story, test := range map[string]func(t *testing.T, server *apiserver.Server){
		"who applied in a version that goes still owns its fields afterwards":                       migrateOwners,
		"a version that is still served keeps its entries until it goes":                            migrateServed,
		"objects broken by a version that went before are healed":                                   migrateBroken,
		"with a conversion webhook entries are dropped, and no owner gets a conflict":               migrateConverted,
		"an object being deleted is rewritten all the same":                                         migrateDeleting,
		"the rights in Rules are enough":                                                            migrateLeastRights,
		"what a policy refuses is named, all others are rewritten, and the version stays":           migrateRefused,
		"nothing to do is done at once, and a cursor left behind is cleared away":                   migrateNothing,
		"a definition that changes meanwhile keeps its stored versions, and is then migrated again": migrateChanged,
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			test(t, pool.Shared(t))
		})
	}
}

func migrateOwners(t *testing.T, server *apiserver.Server) {
	a := newArchive(t, server, "prints", "v1 served storage", "v2 served")
	a.mustApply("v1", "one", "owner", map[string]any{"text": "hello", "note": "by the owner"})
	// The same manager wrote in both versions: two entries, which become one.
	for version, body := range map[string]string{"v1": `{"spec":{"number":1}}`, "v2": `{"spec":{"edits":2}}`} {
		a.patch(version, "one", body)
	}
	if _, err := a.objects("v1").Patch(t.Context(), "one", types.MergePatchType, []byte(`{"status":{"phase":"Ready"}}`), metav1.PatchOptions{FieldManager: "reporter"}, "status"); err != nil {
		t.Fatal(err)
	}
	a.define("v1", "v2 served storage")
	a.wantStoredVersions("v1", "v2")

	if result := a.migrate(); !result.Trimmed || result.Progress.Done != 1 || result.Progress.Total != 1 {
		t.Errorf("result %+v", result)
	}
	a.wantStoredVersions("v2")
	a.define("v2 served storage")
	want := []string{
		`owner Apply v2 {"f:spec":{"f:note":{},"f:text":{}}}`,
		`patcher Update v2 {"f:spec":{"f:edits":{},"f:number":{}}}`,
		`reporter Update v2 {"f:status":{".":{},"f:phase":{}}}`,
	}
	migrated := a.get("v2", "one")
	if diff := cmp.Diff(want, managers(migrated)); diff != "" {
		t.Errorf("managedFields (-want +got):\n%s", diff)
	}
	if migrated.GetGeneration() != 3 {
		t.Errorf("generation %d, want 3: one for each write of spec", migrated.GetGeneration())
	}
	spec := a.mustApply("v2", "one", "owner", map[string]any{"text": "again"}).Object["spec"]
	if diff := cmp.Diff(map[string]any{"text": "again", "number": int64(1), "edits": int64(2)}, spec); diff != "" {
		t.Errorf("applied without the note it owns (-want +got):\n%s", diff)
	}
	if _, err := a.apply("v2", "one", "owner", map[string]any{"edits": 7}); err == nil || !strings.Contains(err.Error(), `conflict with "patcher" using migration.example.com/v2`) {
		t.Errorf("applying a field of another manager: error %v, want a conflict", err)
	}
}

func migrateServed(t *testing.T, server *apiserver.Server) {
	a := newArchive(t, server, "posters", "v1 served storage", "v2 served")
	a.mustApply("v1", "one", "owner", map[string]any{"text": "hello"})
	a.define("v1 served", "v2 served storage")
	a.migrate()
	if diff := cmp.Diff([]string{`owner Apply v1 {"f:spec":{"f:text":{}}}`}, managers(a.get("v2", "one"))); diff != "" || a.storedIn() != "1 in v2" {
		t.Errorf("%s; managedFields (-want +got):\n%s", a.storedIn(), diff)
	}
	// Before v1 goes it must be migrated once more, and status.storedVersions can say so.
	a.setStored("v2", "v1")
	a.define("v1", "v2 served storage")
	a.migrate()
	a.wantStoredVersions("v2")
	a.define("v2 served storage")
	a.mustApply("v2", "one", "owner", map[string]any{"text": "again"})
}

func migrateBroken(t *testing.T, server *apiserver.Server) {
	a := newArchive(t, server, "pamphlets", "v1 served storage", "v2 served")
	a.mustApply("v1", "one", "owner", map[string]any{"text": "hello"})
	a.define("v1 served", "v2 served storage")
	a.patch("v2", "one", `{}`)
	a.setStored("v2")
	a.define("v2 served", "v3 served storage") // v1 is gone, and no migration ran before
	if _, err := a.apply("v3", "one", "owner", map[string]any{"text": "again"}); err == nil {
		t.Error("the object is not broken")
	}
	a.migrate()
	a.mustApply("v3", "one", "owner", map[string]any{"text": "again"})
}

func migrateConverted(t *testing.T, server *apiserver.Server) {
	a := newArchive(t, server, "postcards", "v1 served storage", "v2 served")
	a.conversion = convertByName(t)
	a.define("v1 served storage", "v2 served")
	a.mustApply("v1", "one", "owner", map[string]any{"text": "hello"})
	a.mustApply("v1", "two", "owner", map[string]any{"text": "hello"})
	a.mustApply("v2", "two", "other", map[string]any{"note": "in the new version"})
	a.define("v1", "v2 served storage")
	a.migrate()
	a.define("v2 served storage")
	if got := a.storedIn(); got != "2 in v2" {
		t.Error(got)
	}
	want := map[string][]string{
		"one": {`archivist Apply v2 {"f:metadata":{"f:name":{}}}`},
		"two": {`other Apply v2 {"f:spec":{"f:note":{}}}`},
	}
	for name, entries := range want {
		if diff := cmp.Diff(entries, managers(a.get("v2", name))); diff != "" {
			t.Errorf("managedFields of %s (-want +got):\n%s", name, diff)
		}
		a.mustApply("v2", name, "owner", map[string]any{"text": "again"})
	}
}

func migrateDeleting(t *testing.T, server *apiserver.Server) {
	a := newArchive(t, server, "plates", "v1 served storage", "v2 served")
	a.mustApply("v1", "one", "owner", map[string]any{"text": "hello"})
	a.patch("v1", "one", `{"metadata":{"finalizers":["example.com/hold"]}}`)
	if err := a.objects("v1").Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	a.define("v1", "v2 served storage")
	a.migrate()
	if got := a.storedIn(); got != "1 in v2" {
		t.Error(got)
	}
	a.define("v2 served storage")
	a.patch("v2", "one", `{"metadata":{"finalizers":null}}`)
	if got := a.storedIn(); got != "" {
		t.Errorf("the finalizer is gone, and still there are %s", got)
	}
}

func migrateRefused(t *testing.T, server *apiserver.Server) {
	a := newArchive(t, server, "proofs", "v1 served storage", "v2 served")
	for _, name := range []string{"one", "two", "three"} {
		a.mustApply("v1", name, "owner", map[string]any{"text": "hello"})
	}
	a.define("v1", "v2 served storage")
	lift := a.forbidUpdatesOf("two")
	result, err := a.migrator(&traffic{}).Run(t.Context(), a.name())
	var refused *migration.RefusedError
	if !errors.As(err, &refused) || refused.Count != 1 || refused.Refusals[0].Name != "two" || !strings.Contains(err.Error(), "no client may change two") {
		t.Fatalf("error %v", err)
	}
	t.Log(err)
	if result.Trimmed || result.Progress.Done != 2 || result.Progress.Refused != 1 {
		t.Errorf("result %+v", result)
	}
	a.wantStoredVersions("v1", "v2")
	if diff := cmp.Diff(map[string]string{"one": "v2", "two": "v1", "three": "v2"}, a.stored()); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	lift()
	a.migrate()
	a.wantStoredVersions("v2")
}

// forbidUpdatesOf has the API server refuse updates of one object until lifted.
func (a archive) forbidUpdatesOf(name string) (lift func()) {
	a.t.Helper()
	resource := func(plural string) apischema.GroupVersionResource {
		return apischema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: plural}
	}
	documents := fmt.Sprintf(`
validatingadmissionpolicies:
  apiVersion: admissionregistration.k8s.io/v1
  kind: ValidatingAdmissionPolicy
  metadata: {name: %[1]s}
  spec:
    matchConstraints: {resourceRules: [{apiGroups: [%[2]s], apiVersions: ["*"], resources: [%[1]s], operations: [UPDATE]}]}
    validations: [{expression: "object.metadata.name != '%[3]s'", message: no client may change %[3]s}]
validatingadmissionpolicybindings:
  apiVersion: admissionregistration.k8s.io/v1
  kind: ValidatingAdmissionPolicyBinding
  metadata: {name: %[1]s}
  spec: {policyName: %[1]s, validationActions: [Deny]}
`, a.plural, archiveGroup, name)
	objects := map[string]map[string]any{}
	if err := yaml.Unmarshal([]byte(documents), &objects); err != nil {
		a.t.Fatal(err)
	}
	for plural, content := range objects {
		if _, err := a.Dynamic.Resource(resource(plural)).Create(a.t.Context(), &unstructured.Unstructured{Object: content}, metav1.CreateOptions{}); err != nil {
			a.t.Fatal(err)
		}
	}
	refused := func(ctx context.Context) bool {
		_, err := a.objects("v2").Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"note":"probe"}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil
	}
	apiserver.Eventually(a.t, func(ctx context.Context) string {
		if !refused(ctx) {
			return "the policy is not in force"
		}
		return ""
	})
	return func() {
		a.t.Helper()
		for plural := range objects {
			if err := a.Dynamic.Resource(resource(plural)).Delete(a.t.Context(), a.plural, metav1.DeleteOptions{}); err != nil {
				a.t.Fatal(err)
			}
		}
		apiserver.Eventually(a.t, func(ctx context.Context) string {
			if refused(ctx) {
				return "the policy is still in force"
			}
			return ""
		})
	}
}

func migrateNothing(t *testing.T, server *apiserver.Server) {
	a := newArchive(t, server, "pictures", "v1 served storage")
	before := a.definition()
	seen := &traffic{}
	if result, err := a.migrator(seen).Run(t.Context(), a.name()); result.Trimmed || err != nil || seen.patches.Load() != 0 {
		t.Errorf("result %+v, error %v", result, err)
	}
	if after := a.definition(); after.ResourceVersion != before.ResourceVersion {
		t.Error("the definition was written")
	}
	definitions := migration.NewDefinitions(server.Dynamic)
	if _, err := definitions.Annotate(t.Context(), a.name(), before.UID, "archivist", map[string]string{migrationCursor: "{}"}); err != nil {
		t.Fatal(err)
	}
	a.migrate()
	if _, there := a.definition().Annotations[migrationCursor]; there {
		t.Error("the cursor is still there")
	}
	if _, err := definitions.Annotate(t.Context(), a.name(), "another", "archivist", map[string]string{migrationCursor: "{}"}); err == nil {
		t.Error("a definition of another UID can be annotated")
	}
}

func migrateChanged(t *testing.T, server *apiserver.Server) {
	a := newArchive(t, server, "paintings", "v1 served storage", "v2 served")
	a.mustApply("v1", "one", "owner", map[string]any{"text": "hello"})
	a.define("v1 served", "v2 served storage")
	seen := &traffic{at: func(int64) { a.define("v1 served storage", "v2 served") }}
	_, err := a.migrator(seen).Run(t.Context(), a.name())
	if _, changed := errors.AsType[*migration.ChangedError](err); !changed {
		t.Fatalf("error %v", err)
	}
	t.Log(err)
	a.wantStoredVersions("v1", "v2")
	a.migrate()
	a.wantStoredVersions("v1")
	if got := a.storedIn(); got != "1 in v1" {
		t.Error(got)
	}
}

func migrateLeastRights(t *testing.T, server *apiserver.Server) {
	a := newArchive(t, server, "packets", "v1 served storage", "v2 served")
	a.mustApply("v1", "one", "owner", map[string]any{"text": "hello"})
	a.define("v1", "v2 served storage")
	everybody := *server
	everybody.Config = rest.CopyConfig(server.Config)
	a.Server = &everybody
	a.Config.Impersonate = rest.ImpersonationConfig{UserName: "packer", Groups: []string{"system:authenticated"}}
	if _, err := a.migrator(&traffic{}).Run(t.Context(), a.name()); !apierrors.IsForbidden(err) {
		t.Errorf("without rights: error %v", err)
	}

	rules := []any{}
	for _, rule := range migration.Rules([]*apiextensionsv1.CustomResourceDefinition{a.definition()}) {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&rule)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, content)
	}
	const group = "rbac.authorization.k8s.io"
	for plural, content := range map[string]map[string]any{
		"clusterroles": {"kind": "ClusterRole", "rules": rules},
		"clusterrolebindings": {
			"kind":     "ClusterRoleBinding",
			"roleRef":  map[string]any{"apiGroup": group, "kind": "ClusterRole", "name": a.plural},
			"subjects": []any{map[string]any{"apiGroup": group, "kind": "User", "name": "packer"}},
		},
	} {
		content["apiVersion"], content["metadata"] = group+"/v1", map[string]any{"name": a.plural}
		resource := a.Dynamic.Resource(apischema.GroupVersionResource{Group: group, Version: "v1", Resource: plural})
		if _, err := resource.Create(t.Context(), &unstructured.Unstructured{Object: content}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resource.Delete(context.WithoutCancel(t.Context()), a.plural, metav1.DeleteOptions{}) })
	}
	apiserver.Eventually(t, func(ctx context.Context) string {
		if _, err := a.migrator(&traffic{}).Run(ctx, a.name()); err != nil {
			return err.Error()
		}
		return ""
	})
	a.wantStoredVersions("v2")
}
