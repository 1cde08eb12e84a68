package twoversions

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/mysql-operator/mysql-operator/crds/conversion"
)

const (
	apiV1 = "magalix.com/v1"
	apiV2 = "magalix.com/v2"
)

// generator draws objects, from few values so that fields often agree. Now and then a field has a value that is no use, or one that no
// schema knows: what is stored was not always written under today's schema.
type generator struct{ *rand.Rand }

func (g generator) pick(values ...any) any { return values[g.IntN(len(values))] }

// some fills an object: each field is set more often than not.
func (g generator) some(fields map[string]func() any) map[string]any {
	made := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if g.IntN(3) > 0 {
			made[name] = fields[name]()
		}
	}
	return made
}

func (g generator) text() any   { return g.pick("a", "b", "", "ü\n\"", "0") }
func (g generator) number() any { return g.pick(int64(0), int64(1), int64(1)<<60, int64(-1)) }
func (g generator) time() any   { return g.pick("2026-01-01T00:00:00Z", "2026-11-21T12:00:00Z") }
func (g generator) anything() any {
	return g.pick(g.text(), g.number(), true, 1.5, map[string]any{}, []any{}, map[string]any{"a": g.text()}, []any{g.number()})
}

func (g generator) labels() any {
	return g.some(map[string]func() any{"app": g.text, "tier": g.text})
}

func (g generator) list(element func() map[string]any) any {
	made := []any{}
	for range g.IntN(4) {
		made = append(made, element())
	}
	return made
}

func (g generator) condition() map[string]any {
	return map[string]any{"type": g.pick("Ready", "Stalled"), "status": "True", "reason": g.text(), "message": g.text(), "lastTransitionTime": g.time()}
}

func (g generator) workload(extra string) func() map[string]any {
	return func() map[string]any {
		made := g.some(map[string]func() any{"uid": g.text, "time": g.time, "message": g.text, extra: func() any {
			if extra == "percent" {
				return g.number()
			}
			return g.text()
		}})
		made["kind"], made["name"], made["action"] = g.pick("Pod", "Deployment"), g.pick("a", "b", "c"), g.pick("Pending", "Rolled")
		return made
	}
}

func (g generator) object(version string) *unstructured.Unstructured {
	content := map[string]any{}
	if version == apiV1 {
		content["spec"] = g.some(map[string]func() any{"configMap": g.text, "configmap": g.text, "podSelector": g.labels, "unknown": g.anything})
		content["status"] = g.some(map[string]func() any{
			"observedGeneration": g.number, "observedConfigMap": g.text, "observedHash": g.text, "unknown": g.anything,
			"conditions": func() any { return g.list(g.condition) },
			"lastRestart": func() any {
				made := g.some(map[string]func() any{
					"completionTime": g.time, "configMapResourceVersion": g.text, "generation": g.number, "hash": g.text, "reason": g.text,
					"workloads": func() any { return g.list(g.workload("owner")) },
				})
				made["time"] = g.time()
				return made
			},
		})
	} else {
		content["spec"] = g.some(map[string]func() any{
			"source": func() any {
				return g.some(map[string]func() any{"name": g.text, "keys": func() any { return []any{g.text()} }})
			},
			"targets": func() any {
				return g.some(map[string]func() any{
					"selector": func() any {
						return g.some(map[string]func() any{"matchLabels": g.labels, "matchExpressions": func() any {
							return []any{map[string]any{"key": g.text(), "operator": "Exists"}}
						}})
					},
					"batch": g.number,
				})
			},
			"unknown": g.anything,
		})
		content["status"] = g.some(map[string]func() any{
			"observedGeneration": g.number, "unknown": g.anything,
			"conditions": func() any { return g.list(g.condition) },
			"observed":   func() any { return g.some(map[string]func() any{"source": g.text, "hash": g.text}) },
			"restart": func() any {
				made := g.some(map[string]func() any{
					"ended": g.time, "by": g.text, "generation": g.number, "hash": g.text, "reason": g.text,
					"workloads": func() any { return g.list(g.workload("percent")) },
				})
				made["began"] = g.time()
				return made
			},
		})
	}
	content["apiVersion"], content["kind"] = version, "ConfigMonitor"
	content["metadata"] = map[string]any{
		"name": "m", "namespace": "n", "uid": "u", "resourceVersion": "1", "generation": int64(3), "finalizers": []any{"x/y"},
		"creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": []any{map[string]any{"manager": "m", "time": "2026-01-01T00:00:00Z"}},
	}
	metadata, _ := content["metadata"].(map[string]any)
	if g.IntN(2) == 0 {
		metadata["labels"] = map[string]any{"a": g.text()}
	}
	if g.IntN(2) == 0 {
		metadata["annotations"] = map[string]any{"b": g.text()}
	}
	return &unstructured.Unstructured{Object: content}
}

func mustConvert(t *testing.T, registry *conversion.Registry, object *unstructured.Unstructured, to string) *unstructured.Unstructured {
	t.Helper()
	converted, err := registry.Convert(throughJSON(t, object), to)
	if err != nil {
		t.Fatal(err)
	}
	return throughJSON(t, converted)
}

func throughJSON(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	document, err := json.Marshal(object.Object)
	if err != nil {
		t.Fatal(err)
	}
	content := map[string]any{}
	if err := utiljson.Unmarshal(document, &content); err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

func other(version string) string {
	if version == apiV1 {
		return apiV2
	}
	return apiV1
}

// checkRound converts an object there and back twice: it comes back as it was, and the other version is the same both times.
func checkRound(t *testing.T, registry *conversion.Registry, version string, seed uint64) {
	t.Helper()
	object := generator{rand.New(rand.NewPCG(seed, 1))}.object(version)
	there := mustConvert(t, registry, object, other(version))
	back := mustConvert(t, registry, there, version)
	if diff := cmp.Diff(throughJSON(t, object).Object, back.Object); diff != "" {
		t.Errorf("seed %d from %s: there and back (-was +got):\n%s\nin between: %s", seed, version, diff, document(there))
	}
	if diff := cmp.Diff(there.Object, mustConvert(t, registry, back, other(version)).Object); diff != "" {
		t.Errorf("seed %d from %s: there a second time:\n%s", seed, version, diff)
	}
	for _, field := range []string{"uid", "resourceVersion", "generation", "finalizers", "managedFields", "creationTimestamp", "labels"} {
		was, _, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata", field)
		is, _, _ := unstructured.NestedFieldNoCopy(there.Object, "metadata", field)
		if diff := cmp.Diff(was, is); diff != "" {
			t.Errorf("seed %d from %s: metadata.%s:\n%s", seed, version, field, diff)
		}
	}
}

// checkEdit converts an object, edits the result in random places as a client may, and stores it as the first version. When the object is
// read again, the edit is there, and so is everything that the client did not edit.
func checkEdit(t *testing.T, registry *conversion.Registry, version string, seed uint64) {
	t.Helper()
	g := generator{rand.New(rand.NewPCG(seed, 2))}
	object := g.object(version)
	edited := mustConvert(t, registry, object, other(version))
	mix(g, edited.Object, g.object(other(version)).Object)
	stored := mustConvert(t, registry, edited, version)
	again := mustConvert(t, registry, stored, other(version))
	for _, field := range []string{"spec", "status"} {
		if diff := cmp.Diff(edited.Object[field], again.Object[field]); diff != "" {
			t.Errorf("seed %d from %s: %s as edited, and as read again (-was +got):\n%s\nfirst: %s\nedited: %s\nstored: %s", seed, version, field, diff, document(object), document(edited), document(stored))
		}
	}
	// A client could not edit in the other version what only the first version knows.
	for _, path := range [][]string{{"spec", "unknown"}, {"status", "unknown"}} {
		was, _, _ := unstructured.NestedFieldNoCopy(throughJSON(t, object).Object, path...)
		is, _, _ := unstructured.NestedFieldNoCopy(stored.Object, path...)
		_, given, _ := unstructured.NestedFieldNoCopy(edited.Object, path...)
		if diff := cmp.Diff(was, is); diff != "" && !given {
			t.Errorf("seed %d from %s: %v was lost by an edit elsewhere (-was +got):\n%s\nedited: %s", seed, version, path, diff, document(edited))
		}
	}
}

// mix takes over some fields of spec and status.
func mix(g generator, into, from map[string]any) {
	for _, name := range []string{"spec", "status"} {
		target, isMap := into[name].(map[string]any)
		source, areMaps := from[name].(map[string]any)
		if !isMap || !areMaps {
			continue
		}
		for _, field := range slices.Sorted(maps.Keys(source)) {
			if field != "unknown" && g.IntN(2) == 0 {
				target[field] = source[field]
			}
		}
		for _, field := range slices.Sorted(maps.Keys(target)) {
			if g.IntN(8) == 0 {
				delete(target, field)
			}
		}
	}
}

func document(object *unstructured.Unstructured) string {
	text, err := json.Marshal(object.Object)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func newRegistry(t testing.TB) *conversion.Registry {
	t.Helper()
	registry, err := Registry()
	if err != nil {
		t.Fatal(err)
	}
	return registry
}

// TestRoundTrip draws objects from a new seed every run; CONVERSION_SEED repeats one, CONVERSION_ROUNDS for more than 300.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	registry := newRegistry(t)
	first, rounds := rand.Uint64()>>16, 300
	if given, err := strconv.ParseUint(os.Getenv("CONVERSION_SEED"), 10, 64); err == nil {
		first, rounds = given, 1
	}
	if given, err := strconv.Atoi(os.Getenv("CONVERSION_ROUNDS")); err == nil {
		rounds = given
	}
	for seed := first; seed < first+uint64(rounds) && !t.Failed(); seed++ {
		for _, version := range []string{apiV1, apiV2} {
			checkRound(t, registry, version, seed)
			checkEdit(t, registry, version, seed)
		}
	}
}

func FuzzRoundTrip(f *testing.F) {
	registry := newRegistry(f)
	for seed := range uint64(20) {
		f.Add(seed, seed%2 == 0)
	}
	f.Fuzz(func(t *testing.T, seed uint64, first bool) {
		version := apiV2
		if first {
			version = apiV1
		}
		checkRound(t, registry, version, seed)
		checkEdit(t, registry, version, seed)
	})
}

func BenchmarkConvert(b *testing.B) {
	registry := newRegistry(b)
	objects := []*unstructured.Unstructured{}
	for seed := range uint64(100) {
		objects = append(objects, generator{rand.New(rand.NewPCG(seed, 1))}.object(apiV1))
	}
	b.ResetTimer()
	for index := range b.N {
		if _, err := registry.Convert(objects[index%len(objects)], apiV2); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "objects/s")
}
