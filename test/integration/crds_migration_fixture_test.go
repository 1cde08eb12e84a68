package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/yaml"

	"github.com/mysql-operator/mysql-operator/crds/migration"
	"github.com/mysql-operator/mysql-operator/test/integration/internal/apiserver"
)

// archive is a kind whose versions come and go.
type archive struct {
	*apiserver.Server
	t *testing.T
	// plural is the kind's name, one for each test: tests share a control plane.
	plural    string
	namespace string
	// conversion is spec.conversion; nil: strategy None.
	conversion map[string]any
}

const archiveGroup = "migration.example.com"

// migrationCursor is the annotation with the cursor.
const migrationCursor = archiveGroup + "/migrated-up-to"

// newArchive registers a kind in these versions, as define has them.
func newArchive(t *testing.T, server *apiserver.Server, plural string, versions ...string) archive {
	t.Helper()
	a := archive{Server: server, t: t, plural: plural, namespace: server.Namespace(t)}
	a.define(versions...)
	t.Cleanup(func() {
		_ = a.Dynamic.Resource(definitionGVR()).Delete(context.WithoutCancel(t.Context()), a.name(), metav1.DeleteOptions{})
	})
	return a
}

func definitionGVR() apischema.GroupVersionResource {
	return apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
}

func (a archive) name() string { return a.plural + "." + archiveGroup }

// define applies the definition with these versions, each with its marks: "v1 served", "v2 served storage", "v3".
func (a archive) define(versions ...string) {
	a.t.Helper()
	list := []any{}
	for _, version := range versions {
		words := strings.Fields(version)
		list = append(list, map[string]any{
			"name": words[0], "served": slices.Contains(words, "served"), "storage": slices.Contains(words, "storage"),
			"subresources": map[string]any{"status": map[string]any{}},
			"schema":       map[string]any{"openAPIV3Schema": archiveSchema(a.t)},
			// Shows in the answers to a list as a table which definition is enforced.
			"additionalPrinterColumns": []any{map[string]any{"name": "Edition", "type": "string", "jsonPath": ".kind", "description": strings.Join(versions, ",")}},
		})
	}
	spec := map[string]any{
		"group": archiveGroup, "scope": "Namespaced", "versions": list,
		"names": map[string]any{"plural": a.plural, "singular": strings.TrimSuffix(a.plural, "s"), "kind": a.kind(), "listKind": a.kind() + "List"},
	}
	if a.conversion != nil {
		spec["conversion"] = a.conversion
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": a.name()}, "spec": spec,
	}}
	if _, err := a.Dynamic.Resource(definitionGVR()).Apply(a.t.Context(), a.name(), object, metav1.ApplyOptions{FieldManager: "definer", Force: true}); err != nil {
		a.t.Fatal(err)
	}
	a.awaitEnforced(versions)
}

func archiveSchema(t *testing.T) map[string]any {
	t.Helper()
	schema := map[string]any{}
	err := yaml.Unmarshal([]byte(`{type: object, properties: {
		spec: {type: object, properties: {number: {type: integer}, edits: {type: integer}, text: {type: string}, note: {type: string}}},
		status: {type: object, properties: {phase: {type: string}}}}}`), &schema)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// awaitEnforced waits until the served versions have the columns of this definition: then the API server works by it.
func (a archive) awaitEnforced(versions []string) {
	a.t.Helper()
	for _, version := range versions {
		if !strings.Contains(version, "served") {
			continue
		}
		config := rest.CopyConfig(a.Config)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(request *http.Request) (*http.Response, error) {
				request.Header.Set("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
				return next.RoundTrip(request)
			})
		})
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			a.t.Fatal(err)
		}
		resource := client.Resource(a.gvr(strings.Fields(version)[0]))
		apiserver.Eventually(a.t, func(ctx context.Context) string {
			table, err := resource.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=none"})
			if err != nil {
				return err.Error()
			}
			// The quotes count: the versions of one definition may be the last ones of another.
			if body, _ := table.MarshalJSON(); !bytes.Contains(body, []byte(strconv.Quote(strings.Join(versions, ",")))) {
				return "the new definition is not enforced yet"
			}
			return ""
		})
	}
}

func (a archive) kind() string {
	return strings.ToUpper(a.plural[:1]) + strings.TrimSuffix(a.plural[1:], "s")
}

func (a archive) gvr(version string) apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Group: archiveGroup, Version: version, Resource: a.plural}
}

func (a archive) objects(version string) dynamic.ResourceInterface {
	return a.Dynamic.Resource(a.gvr(version)).Namespace(a.namespace)
}

func (a archive) object(version, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": archiveGroup + "/" + version, "kind": a.kind(), "metadata": map[string]any{"name": name, "namespace": a.namespace}, "spec": spec,
	}}
}

// apply is a server-side apply without force.
func (a archive) apply(version, name, manager string, spec map[string]any) (*unstructured.Unstructured, error) {
	return a.objects(version).Apply(a.t.Context(), name, a.object(version, name, spec), metav1.ApplyOptions{FieldManager: manager})
}

func (a archive) mustApply(version, name, manager string, spec map[string]any) *unstructured.Unstructured {
	a.t.Helper()
	applied, err := a.apply(version, name, manager, spec)
	if err != nil {
		a.t.Fatal(err)
	}
	return applied
}

func (a archive) get(version, name string) *unstructured.Unstructured {
	a.t.Helper()
	object, err := a.objects(version).Get(a.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		a.t.Fatal(err)
	}
	return object
}

// patch is a merge patch.
func (a archive) patch(version, name, body string) *unstructured.Unstructured {
	a.t.Helper()
	object, err := a.objects(version).Patch(a.t.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "patcher"})
	if err != nil {
		a.t.Fatal(err)
	}
	return object
}

// stored returns the version each object is stored in, as etcd has it, by its name.
func (a archive) stored() map[string]string {
	a.t.Helper()
	versions := map[string]string{}
	prefix := fmt.Sprintf("/registry/%s/%s/", archiveGroup, a.plural)
	for key, value := range a.Stored(a.t, prefix) {
		var object metav1.PartialObjectMetadata
		if err := json.Unmarshal(value, &object); err != nil {
			a.t.Fatal(err)
		}
		versions[key[strings.LastIndex(key, "/")+1:]] = strings.TrimPrefix(object.APIVersion, archiveGroup+"/")
	}
	return versions
}

// storedIn counts the objects by the version they are stored in, as "2 in v1, 1 in v2".
func (a archive) storedIn() string {
	counts := map[string]int{}
	for _, version := range a.stored() {
		counts[version]++
	}
	parts := []string{}
	for version, count := range counts {
		parts = append(parts, fmt.Sprintf("%d in %s", count, version))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

func (a archive) definition() *apiextensionsv1.CustomResourceDefinition {
	a.t.Helper()
	definition, err := migration.NewDefinitions(a.Dynamic).Get(a.t.Context(), a.name())
	if err != nil {
		a.t.Fatal(err)
	}
	return definition
}

// setStored writes status.storedVersions.
func (a archive) setStored(versions ...string) {
	a.t.Helper()
	if err := migration.NewDefinitions(a.Dynamic).SetStoredVersions(a.t.Context(), a.name(), a.definition().ResourceVersion, versions); err != nil {
		a.t.Fatal(err)
	}
}

func (a archive) wantStoredVersions(want ...string) {
	a.t.Helper()
	if got := a.definition().Status.StoredVersions; !slices.Equal(got, want) {
		a.t.Errorf("status.storedVersions is %v, want %v", got, want)
	}
}

// managers returns what managedFields says, as "manager Operation version fields".
func managers(object *unstructured.Unstructured) []string {
	lines := []string{}
	for _, entry := range object.GetManagedFields() {
		version := strings.TrimPrefix(entry.APIVersion, archiveGroup+"/")
		lines = append(lines, fmt.Sprintf("%s %s %s %s", entry.Manager, entry.Operation, version, entry.FieldsV1.GetRawString()))
	}
	slices.Sort(lines)
	return lines
}

// traffic watches the patches of objects.
type traffic struct {
	patches atomic.Int64
	objects sync.Map // the paths that were patched
	// at is called with the number of each patch, before it is sent.
	at func(int64)
}

// count is how many objects were patched.
func (t *traffic) count() int {
	count := 0
	t.objects.Range(func(any, any) bool { count++; return true })
	return count
}

// migrator is one that need not settle, because there is one API server, and that works as fast as it can.
func (a archive) migrator(seen *traffic) migration.Migrator {
	a.t.Helper()
	config := rest.CopyConfig(a.Config)
	config.WrapTransport = transport.Wrappers(config.WrapTransport, func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method == http.MethodPatch && strings.Contains(request.URL.Path, "/"+a.plural+"/") {
				number := seen.patches.Add(1)
				seen.objects.Store(request.URL.Path, true)
				if seen.at != nil {
					seen.at(number)
				}
			}
			return next.RoundTrip(request)
		})
	})
	m, err := migration.New(config, "archivist", migrationCursor)
	if err != nil {
		a.t.Fatal(err)
	}
	m.Settle, m.Rate, m.Log = -1, -1, testr.New(a.t)
	return m
}

func (a archive) migrate() migration.Result {
	a.t.Helper()
	result, err := a.migrator(&traffic{}).Run(a.t.Context(), a.name())
	if err != nil {
		a.t.Fatal(err)
	}
	return result
}

// convertByName is a conversion webhook for versions that differ by name only.
func convertByName(t *testing.T) map[string]any {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		var review apiextensionsv1.ConversionReview
		if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
			http.Error(writer, err.Error(), http.StatusBadRequest)
			return
		}
		answer := &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
		for _, raw := range review.Request.Objects {
			object := &unstructured.Unstructured{}
			if err := object.UnmarshalJSON(raw.Raw); err != nil {
				http.Error(writer, err.Error(), http.StatusBadRequest)
				return
			}
			object.SetAPIVersion(review.Request.DesiredAPIVersion)
			raw.Raw, _ = object.MarshalJSON()
			answer.ConvertedObjects = append(answer.ConvertedObjects, raw)
		}
		review.Request, review.Response = nil, answer
		writer.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(writer).Encode(review)
	}))
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return map[string]any{"strategy": "Webhook", "webhook": map[string]any{
		"conversionReviewVersions": []any{"v1"},
		"clientConfig":             map[string]any{"url": server.URL, "caBundle": authority},
	}}
}

// within returns how long something took.
func within(work func()) time.Duration {
	begun := time.Now()
	work()
	return time.Since(begun)
}
