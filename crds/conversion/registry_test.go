package conversion

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// only makes a converter that knows the given fields of spec and drops all others, like a converter on Go types.
func only(names map[string]string) Func {
	return func(object map[string]any) (map[string]any, error) {
		spec, _ := object["spec"].(map[string]any)
		kept := map[string]any{}
		for from, to := range names {
			if value, has := spec[from]; has {
				kept[to] = value
			}
		}
		return map[string]any{"spec": kept}, nil
	}
}

// three is a registry of three versions: the hub v2 knows a and b (v1 calls a "x"), v1 has a field of its own, v3 has another.
func three(t *testing.T) *Registry {
	t.Helper()
	registry, err := NewRegistry("example.com", Kind{
		GroupKind: schema.GroupKind{Group: "example.com", Kind: "Widget"}, Hub: "v2",
		Spokes: []Spoke{
			{Version: "v1", ToHub: only(map[string]string{"x": "a"}), FromHub: only(map[string]string{"a": "x"})},
			{Version: "v3", ToHub: only(map[string]string{"a": "a", "b": "b"}), FromHub: only(map[string]string{"a": "a", "b": "b"})},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return registry
}

func read(t *testing.T, document string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal([]byte(document), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

// TestTravels converts an object from version to version, with edits in between ("FIELD=VALUE" sets a field of spec, "FIELD" removes it),
// and checks the spec at the end.
func TestTravels(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		from, spec string
		way        []string
		want       string
	}{
		"there and back":                                 {"v1", `{"x":1,"own":"m"}`, []string{"v2", "v1"}, `{"x":1,"own":"m"}`},
		"by way of every version":                        {"v1", `{"x":1,"own":"m"}`, []string{"v2", "v3", "v2", "v1", "v3", "v1"}, `{"x":1,"own":"m"}`},
		"from one spoke to another and through the hub":  {"v3", `{"a":1,"b":2,"own":"m"}`, []string{"v1", "v2", "v3"}, `{"a":1,"b":2,"own":"m"}`},
		"fields that only one version has, all together": {"v1", `{"x":1,"own":"m"}`, []string{"v3", "own=n", "b=2", "v1", "v2", "v3", "v1", "v3"}, `{"a":1,"b":2,"own":"n"}`},
		"the same, seen from the first":                  {"v1", `{"x":1,"own":"m"}`, []string{"v3", "own=n", "b=2", "v1", "v2", "v3", "v1"}, `{"x":1,"own":"m"}`},
		"an edit of a shared field":                      {"v1", `{"x":1,"own":"m"}`, []string{"v2", "a=5", "v3", "v1"}, `{"x":5,"own":"m"}`},
		"a field removed in another version":             {"v1", `{"x":1,"own":"m"}`, []string{"v3", "a", "v2", "v1"}, `{"own":"m"}`},
		"a version's own field removed":                  {"v1", `{"x":1,"own":"m"}`, []string{"v2", "v1", "own", "v2", "v1"}, `{"x":1}`},
		"a null":                                         {"v1", `{"x":null,"own":null}`, []string{"v2", "v1"}, `{"x":null,"own":null}`},
		"whole numbers beyond floats, and floats":        {"v1", `{"own":[9007199254740993,1.5]}`, []string{"v2", "v3", "v1"}, `{"own":[9007199254740993,1.5]}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			registry := three(t)
			object := read(t, `{"apiVersion":"example.com/`+test.from+`","kind":"Widget","metadata":{"name":"a","uid":"u","labels":{"l":"1"}},"spec":`+test.spec+`}`)
			for _, stop := range test.way {
				if !strings.HasPrefix(stop, "v") {
					edit(t, object, stop)
					continue
				}
				document, err := json.Marshal(object.Object)
				if err != nil {
					t.Fatal(err)
				}
				if object, err = registry.Convert(read(t, string(document)), "example.com/"+stop); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(read(t, test.want).Object, object.Object["spec"]); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(map[string]string{"l": "1"}, object.GetLabels()); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
}

func edit(t *testing.T, object *unstructured.Unstructured, how string) {
	t.Helper()
	spec, _ := object.Object["spec"].(map[string]any)
	field, text, set := strings.Cut(how, "=")
	delete(spec, field)
	if !set {
		return
	}
	var value any = text
	if text[0] >= '0' && text[0] <= '9' {
		value = int64(text[0] - '0')
	}
	spec[field] = value
}

// TestDamagedAnnotation: no value of the annotation makes an object unreadable, or changes fields that converters may not change.
func TestDamagedAnnotation(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		``, `null`, `[]`, `{`, `{"v1":null}`, `{"v1":{"changes":[{}]}}`, `{"v1":{"in":"v2","changes":[{"at":[]}]}}`, `{"v1":{"in":"v2","changes":[{"at":[1,2]}]}}`,
		`{"v1":{"in":"v2","changes":[{"at":["metadata","uid"],"set":"z"},{"at":["kind"],"set":"z"},{"at":["metadata"],"remove":true}]}}`,
		`{"v1":{"in":"v2","changes":[{"at":["spec","x"],"set":9,"was":"6b86b273ff34fce1"}]}}`,
		`{"v1":{"in":"v2","changes":[{"at":["spec","l",{}],"set":9},{"at":["spec","l",{"a":1},"b"],"set":9},{"at":[{"a":1},"b"],"set":9}]}}`,
	} {
		object := read(t, `{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"name":"a","uid":"u"},"spec":{"a":1}}`)
		object.SetAnnotations(map[string]string{"example.com/kept-for-conversion": text})
		converted, err := three(t).Convert(object, "example.com/v1")
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		want := read(t, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","uid":"u"},"spec":{"x":1}}`)
		if diff := cmp.Diff(want.Object, converted.Object); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// TestNewerVersion: the changes that a newer operator kept stay.
func TestNewerVersion(t *testing.T) {
	t.Parallel()
	const kept = `{"v9":{"in":"v1","changes":[{"at":["spec","future"],"set":1}]}}`
	object := read(t, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"x":1}}`)
	object.SetAnnotations(map[string]string{"example.com/kept-for-conversion": kept})
	for _, version := range []string{"example.com/v2", "example.com/v1"} {
		converted, err := three(t).Convert(object, version)
		if err != nil {
			t.Fatal(err)
		}
		object = converted
	}
	if got := object.GetAnnotations()["example.com/kept-for-conversion"]; got != kept {
		t.Errorf("the annotation is %s, want %s", got, kept)
	}
}

func TestNewRegistry(t *testing.T) {
	t.Parallel()
	of, same := schema.GroupKind{Group: "g", Kind: "K"}, only(nil)
	for name, kinds := range map[string][]Kind{
		"no hub":             {{GroupKind: of, Spokes: []Spoke{{Version: "v1", ToHub: same, FromHub: same}}}},
		"no other version":   {{GroupKind: of, Hub: "v1"}},
		"a hub that is one":  {{GroupKind: of, Hub: "v1", Spokes: []Spoke{{Version: "v1", ToHub: same, FromHub: same}}}},
		"only one direction": {{GroupKind: of, Hub: "v2", Spokes: []Spoke{{Version: "v1", ToHub: same}}}},
		"a kind twice":       {{GroupKind: of, Hub: "v2", Spokes: []Spoke{{Version: "v1", ToHub: same, FromHub: same}}}, {GroupKind: of}},
	} {
		if _, err := NewRegistry("d", kinds...); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
