package integration

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/mysql-operator/mysql-operator/crds"
	"github.com/mysql-operator/mysql-operator/crds/objects"
	"github.com/mysql-operator/mysql-operator/deploy"
	"github.com/mysql-operator/mysql-operator/schema"
	"github.com/mysql-operator/mysql-operator/schema/definitions"
	"github.com/mysql-operator/mysql-operator/test/integration/internal/apiserver"
)

// registry is a control plane whose definitions are the test's to change.
type registry struct {
	*apiserver.Server
	t           *testing.T
	definitions []crds.Definition
}

func newRegistry(t *testing.T, server *apiserver.Server) registry {
	t.Helper()
	defined, err := definitions.Load(schema.Kinds())
	if err != nil {
		t.Fatal(err)
	}
	return registry{Server: server, t: t, definitions: defined}
}

func (r registry) installer(config *rest.Config) crds.Installer {
	r.t.Helper()
	api, err := crds.NewAPI(config)
	if err != nil {
		r.t.Fatal(err)
	}
	checker, err := objects.New(config)
	if err != nil {
		r.t.Fatal(err)
	}
	return crds.Installer{API: api, Objects: checker, Log: logr.Discard()}
}

// ensure returns what was done about each definition, as "Action Reason".
func (r registry) ensure() []string {
	r.t.Helper()
	results, err := r.installer(r.Config).Ensure(r.t.Context(), r.definitions)
	if err != nil {
		r.t.Fatal(err)
	}
	return outcomes(results)
}

func outcomes(results []crds.Result) []string {
	lines := []string{}
	for _, result := range results {
		lines = append(lines, fmt.Sprintf("%s %s", result.Plan.Decision().Action, result.Plan.Decision().Reason))
	}
	return lines
}

func (r registry) wantOutcome(got []string, want string) {
	r.t.Helper()
	for _, line := range got {
		if line != want {
			r.t.Errorf("did %v, want %q for each", got, want)
		}
	}
}

func definitionResource() apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

func (r registry) clusterDefinition() *unstructured.Unstructured {
	r.t.Helper()
	object, err := r.Dynamic.Resource(definitionResource()).Get(r.t.Context(), r.definitions[0].Name(), metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return object
}

// patch changes the definition of MySQLCluster as another client would.
func (r registry) patch(kind types.PatchType, body string, subresources ...string) {
	r.t.Helper()
	options := metav1.PatchOptions{FieldManager: "someone"}
	if _, err := r.Dynamic.Resource(definitionResource()).Patch(r.t.Context(), r.definitions[0].Name(), kind, []byte(body), options, subresources...); err != nil {
		r.t.Fatal(err)
	}
}

// TestDefinitions is the life of the definitions in one cluster, from the first boot on.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	server := apiserver.Own(t)
	//nolint:paralleltest // each step continues from where the one before left the cluster
	for _, step := range []struct {
		story string
		test  func(registry)
	}{
		{"four operators boot at once in a new cluster", bootTogether},
		{"nothing is written when nothing changed", bootUnchanged},
		{"a definition edited by hand is healed, what others added stays", healEdit},
		{"a newer operator's definition is left alone", keepNewer},
		{"a version with stored objects is carried over, then dropped", carryOver},
		{"the definition of another client is used, or refused with a remedy", respectForeign},
		{"a deleted definition is created again when it is gone", recreateDeleted},
		{"the manifests' rights are enough, and enough only for ours", leastRights},
		{"the documents of the seed apply, bad ones are refused", applyDocuments},
	} {
		t.Run(step.story, func(t *testing.T) { step.test(newRegistry(t, server)) })
	}
}

func bootTogether(r registry) {
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if _, err := r.installer(r.Config).Ensure(r.t.Context(), r.definitions); err != nil {
				r.t.Error(err)
			}
		})
	}
	group.Wait()
	r.wantOutcome(r.ensure(), "Keep Unchanged")
}

func bootUnchanged(r registry) {
	before := r.clusterDefinition().GetResourceVersion()
	r.wantOutcome(r.ensure(), "Keep Unchanged")
	if after := r.clusterDefinition().GetResourceVersion(); after != before {
		r.t.Errorf("the definition went from resourceVersion %s to %s", before, after)
	}
}

func healEdit(r registry) {
	r.patch(types.JSONPatchType, `[
		{"op":"remove","path":"/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/epoch"},
		{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/mine","value":{"type":"string"}},
		{"op":"add","path":"/metadata/labels/team","value":"ours"}]`)
	if got := r.ensure(); got[0] != "Update Edited" || got[1] != "Keep Unchanged" {
		r.t.Errorf("did %v", got)
	}
	healed := r.clusterDefinition()
	if healed.GetLabels()["team"] != "ours" {
		r.t.Error("a label of another client is gone")
	}
	properties, _, err := unstructured.NestedMap(versions(r.t, healed)[0], "schema", "openAPIV3Schema", "properties", "spec", "properties")
	if _, left := properties["mine"]; left || err != nil {
		r.t.Errorf("the field added by hand is still there (error %v)", err)
	}
	r.wantOutcome(r.ensure(), "Keep Unchanged")
}

func keepNewer(r registry) {
	r.patch(types.MergePatchType, `{"metadata":{"annotations":{"`+definitions.Identity().VersionAnnotation()+`":"1000"}}}`)
	if got := r.ensure(); got[0] != "Keep Newer" {
		r.t.Errorf("did %v", got)
	}
	r.patch(types.MergePatchType, `{"metadata":{"annotations":{"`+definitions.Identity().VersionAnnotation()+`":"0"}}}`)
	if got := r.ensure(); got[0] != "Update Older" {
		r.t.Errorf("did %v", got)
	}
}

func carryOver(r registry) {
	former := versions(r.t, r.clusterDefinition())[0]
	former["name"], former["storage"] = "v1alpha1", false
	body, err := yaml.Marshal([]any{map[string]any{"op": "add", "path": "/spec/versions/-", "value": former}})
	if err != nil {
		r.t.Fatal(err)
	}
	patch, err := yaml.YAMLToJSON(body)
	if err != nil {
		r.t.Fatal(err)
	}
	r.patch(types.JSONPatchType, string(patch))
	r.patch(types.MergePatchType, `{"status":{"storedVersions":["v1alpha1","v1"]}}`, "status")

	if got := r.ensure(); got[0] != "Update Edited" {
		r.t.Errorf("did %v", got)
	}
	carried := versions(r.t, r.clusterDefinition())
	if len(carried) != 2 || carried[1]["name"] != "v1alpha1" || carried[1]["served"] != false {
		r.t.Fatalf("the versions are %d: the former one is not carried over unserved", len(carried))
	}
	r.wantOutcome(r.ensure(), "Keep Unchanged")
	r.patch(types.MergePatchType, `{"status":{"storedVersions":["v1"]}}`, "status")
	r.ensure()
	if left := versions(r.t, r.clusterDefinition()); len(left) != 1 {
		r.t.Errorf("%d versions are left once nothing is stored in the former one", len(left))
	}
}

func respectForeign(r registry) {
	r.patch(types.MergePatchType, `{"metadata":{"labels":{"`+crds.OwnerLabel+`":"Helm"}}}`)
	if got := r.ensure(); got[0] != "Keep Foreign" {
		r.t.Errorf("did %v", got)
	}
	r.patch(types.JSONPatchType, `[{"op":"remove","path":"/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/epoch"}]`)
	_, err := r.installer(r.Config).Ensure(r.t.Context(), r.definitions)
	if err == nil || !strings.Contains(err.Error(), "status.epoch") || !strings.Contains(err.Error(), "kubectl label crd") {
		r.t.Errorf("error %v, want the field that would be dropped and the remedy", err)
	}
	r.patch(types.MergePatchType, `{"metadata":{"labels":{"`+crds.OwnerLabel+`":"`+definitions.Identity().Owner+`"}}}`)
	if got := r.ensure(); got[0] != "Update Edited" {
		r.t.Errorf("handed over: did %v", got)
	}
}

func recreateDeleted(r registry) {
	before := r.clusterDefinition().GetUID()
	if err := r.Dynamic.Resource(definitionResource()).Delete(r.t.Context(), r.definitions[0].Name(), metav1.DeleteOptions{}); err != nil {
		r.t.Fatal(err)
	}
	if got := r.ensure(); got[0] != "Create NotFound" {
		r.t.Errorf("did %v", got)
	}
	if after := r.clusterDefinition().GetUID(); after == before {
		r.t.Error("it is still the definition that was deleted")
	}
}

// leastRights acts as the service account of the manifests, which has nothing but what they grant.
func leastRights(r registry) {
	account := deploy.Account{Namespace: "default", Name: deploy.Name}
	config := rest.CopyConfig(r.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:default:mysql-operator", Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	rights := deploy.Permissions{Definitions: crds.Rules(r.definitions)}

	_, err := r.installer(config).Ensure(r.t.Context(), r.definitions)
	if err == nil || !strings.Contains(err.Error(), `does not have the permission "get"`) {
		r.t.Errorf("without rights: error %v", err)
	}
	results, err := r.installer(config).Check(r.t.Context(), r.definitions)
	if err != nil || outcomes(results)[0] != "Keep Unread" {
		r.t.Errorf("check without rights: %v, error %v", outcomes(results), err)
	}
	shortage, err := deploy.FindMissingPermissions(r.t.Context(), config, deploy.Needs(account, nil, rights))
	if diff := cmp.Diff(map[deploy.Place][]rbacv1.PolicyRule{"": deploy.Compact(rights.Definitions)}, shortage.Missing); diff != "" || err != nil {
		r.t.Errorf("missing rights (-want +got), error %v:\n%s", err, diff)
	}
	if shortage.User != config.Impersonate.UserName {
		r.t.Errorf("the user is told to be %s", shortage.User)
	}

	r.applyObjects(deploy.RBAC(account, nil, rights))
	apiserver.Eventually(r.t, func(ctx context.Context) string {
		left, err := deploy.FindMissingPermissions(ctx, config, deploy.Needs(account, nil, rights))
		if err != nil {
			return err.Error()
		}
		return strings.Join(left.Lines(), "; ")
	})
	if err := r.Dynamic.Resource(definitionResource()).Delete(r.t.Context(), r.definitions[1].Name(), metav1.DeleteOptions{}); err != nil {
		r.t.Fatal(err)
	}
	r.patch(types.MergePatchType, `{"metadata":{"annotations":{"`+definitions.Identity().VersionAnnotation()+`":"0"}}}`)
	results, err = r.installer(config).Ensure(r.t.Context(), r.definitions)
	if diff := cmp.Diff([]string{"Update Older", "Create NotFound"}, outcomes(results)[:2]); diff != "" || err != nil {
		r.t.Errorf("with the rights granted (-want +got), error %v:\n%s", err, diff)
	}

	r.patch(types.JSONPatchType, `[{"op":"remove","path":"/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/epoch"}]`)
	_, err = r.installer(config).Ensure(r.t.Context(), r.definitions)
	if err == nil || !strings.Contains(err.Error(), `does not have the permission "list" on mysqlclusters`) {
		r.t.Errorf("another schema, without the right to look at objects: error %v", err)
	}
	if got := r.ensure(); got[0] != "Update Edited" {
		r.t.Errorf("with it: did %v", got)
	}
}

// applyObjects applies what manifests prints, as kubectl would.
func (r registry) applyObjects(manifests []any) {
	r.t.Helper()
	document, err := deploy.Render(manifests)
	if err != nil {
		r.t.Fatal(err)
	}
	for part := range strings.SplitSeq(string(document), "---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(part), &object.Object); err != nil {
			r.t.Fatal(err)
		}
		plural, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
		resource := r.Dynamic.Resource(plural)
		options := metav1.ApplyOptions{FieldManager: "administrator"}
		var applyErr error
		if object.GetNamespace() != "" {
			_, applyErr = resource.Namespace(object.GetNamespace()).Apply(r.t.Context(), object.GetName(), object, options)
		} else {
			_, applyErr = resource.Apply(r.t.Context(), object.GetName(), object, options)
		}
		if applyErr != nil {
			r.t.Fatal(applyErr)
		}
	}
}

func applyDocuments(r registry) {
	clusters := r.Dynamic.Resource(schema.Kinds()[0].GVR()).Namespace("default")
	document := func(name, spec string) *unstructured.Unstructured {
		object := &unstructured.Unstructured{}
		text := fmt.Sprintf("apiVersion: cr.mysqloperator.grtl.github.com/v1\nkind: MySQLCluster\nmetadata: {name: %s}\nspec: {%s}\n", name, spec)
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			r.t.Fatal(err)
		}
		return object
	}
	apply := func(object *unstructured.Unstructured) error {
		_, err := clusters.Apply(r.t.Context(), object.GetName(), object, metav1.ApplyOptions{FieldManager: "user", Force: true})
		return err
	}
	seed := `secret: "my-secret", fromBackup: "my-backup-2017-12-14-01-22", port: 3306, replicas: 2, storage: "1Gi", image: "mysql:latest"`
	if err := apply(document("my-cluster", seed)); err != nil {
		r.t.Fatalf("the seed's manifest is refused: %v", err)
	}
	if err := apply(document("my-cluster", strings.Replace(seed, "1Gi", "512Mi", 1))); err == nil || !strings.Contains(err.Error(), "may not shrink") {
		r.t.Errorf("shrinking: error %v", err)
	}
	if err := apply(document("bad", "secret: s, replicas: 0")); err == nil || !strings.Contains(err.Error(), "spec.replicas must be at least 1") {
		r.t.Errorf("no replicas: error %v", err)
	}
	if err := apply(document("bad", "secret: s, config: {server_id: '7'}")); err == nil || !strings.Contains(err.Error(), "must not set server-id") {
		r.t.Errorf("server_id: error %v", err)
	}
	scale := `{"spec":{"replicas":3}}`
	if _, err := clusters.Patch(r.t.Context(), "my-cluster", types.MergePatchType, []byte(scale), metav1.PatchOptions{}, "scale"); err != nil {
		r.t.Errorf("scale: %v", err)
	}
}

func versions(t *testing.T, definition *unstructured.Unstructured) []map[string]any {
	t.Helper()
	list, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if err != nil {
		t.Fatal(err)
	}
	typed := []map[string]any{}
	for _, item := range list {
		version, ok := item.(map[string]any)
		if !ok {
			t.Fatalf("a version is a %T", item)
		}
		typed = append(typed, version)
	}
	return typed
}
