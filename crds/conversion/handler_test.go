package conversion

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// widgets converts between v1 (spec.size) and v2 (spec.width). Some sizes make the converter fail.
func widgets(t testing.TB) *Registry {
	t.Helper()
	rename := func(from, to string) Func {
		return func(object map[string]any) (map[string]any, error) {
			spec, _ := object["spec"].(map[string]any)
			value, has := spec[from]
			switch value {
			case "refuse":
				return nil, errors.New("spec.size: it is no size")
			case "panic":
				panic("no such size")
			case "huge":
				return map[string]any{"spec": map[string]any{}}, nil
			}
			if has {
				delete(spec, from)
				spec[to] = value
			}
			return object, nil
		}
	}
	registry, err := NewRegistry("example.com", Kind{
		GroupKind: schema.GroupKind{Group: "example.com", Kind: "Widget"}, Hub: "v2",
		Spokes: []Spoke{{Version: "v1", ToHub: rename("size", "width"), FromHub: rename("width", "size")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return registry
}

func widget(name, size string) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":%q,"namespace":"n","uid":"u"},"spec":{"size":%q}}`, name, size)
}

func review(to string, objects ...string) string {
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"1","desiredAPIVersion":%q,"objects":[%s]}}`, to, strings.Join(objects, ","))
}

func ask(ctx context.Context, t *testing.T, handler http.Handler, body string) (int, apiextensionsv1.ConversionReview) {
	t.Helper()
	request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/convert", strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	given := apiextensionsv1.ConversionReview{}
	if answer.Code == http.StatusOK {
		if err := json.Unmarshal(answer.Body.Bytes(), &given); err != nil {
			t.Fatal(err)
		}
	} else {
		given.Response = &apiextensionsv1.ConversionResponse{}
		given.Response.Result.Message = answer.Body.String()
	}
	return answer.Code, given
}

func TestHandler(t *testing.T) {
	t.Parallel()
	const v2 = "example.com/v2"
	tests := map[string]struct {
		body string
		code int
		// says are parts of the message of a failure; empty means success.
		says []string
		// objects are the returned sizes, in their order.
		objects  []string
		outcomes []Outcome
	}{
		"one object":            {review(v2, widget("a", "1")), 200, nil, []string{"1"}, []Outcome{""}},
		"a list":                {review(v2, widget("a", "1"), widget("b", "2")), 200, nil, []string{"1", "2"}, []Outcome{"", ""}},
		"an empty list":         {review(v2), 200, nil, []string{}, nil},
		"one of a list refused": {review(v2, widget("a", "1"), widget("b", "refuse")), 200, []string{"objects[1]", "Widget n/b", "spec.size: it is no size"}, nil, []Outcome{"", OutcomeRefused}},
		"a panic":               {review(v2, widget("a", "panic")), 200, []string{"Widget n/a", "panicked: no such size"}, nil, []Outcome{OutcomePanic}},
		"an unknown version":    {review("example.com/v9", widget("a", "1")), 200, []string{"Widget n/a", "example.com/v9", "does not convert"}, nil, []Outcome{OutcomeUnknown}},
		"another group":         {review("else.com/v2", widget("a", "1")), 200, []string{"Widget n/a", "else.com/v2"}, nil, []Outcome{OutcomeUnknown}},
		"an unknown kind":       {review(v2, strings.Replace(widget("a", "1"), "Widget", "Gadget", 1)), 200, []string{"Gadget n/a"}, nil, []Outcome{OutcomeUnknown}},
		"no object":             {review(v2, `"text"`), 200, []string{"objects[0]", "not a JSON object"}, nil, []Outcome{OutcomeMalformed}},
		"an object of nothing":  {review(v2, `{}`), 200, []string{"objects[0]", "apiVersion or kind is missing"}, nil, []Outcome{OutcomeMalformed}},
		"fields of the future":  {strings.Replace(review(v2, widget("a", "1")), `"uid":`, `"later":true,"uid":`, 1), 200, nil, []string{"1"}, []Outcome{""}},
		"no JSON":               {"x", 400, []string{"decode"}, nil, []Outcome{OutcomeMalformed}},
		"another review":        {strings.Replace(review(v2), "apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1", 1), 400, []string{"conversionReviewVersions"}, nil, []Outcome{OutcomeMalformed}},
		"no uid":                {strings.Replace(review(v2), `"uid":"1"`, `"uid":""`, 1), 400, []string{"request.uid"}, nil, []Outcome{OutcomeMalformed}},
		"too much":              {review(v2, widget("a", strings.Repeat("x", maxBody))), 413, []string{"fewer objects"}, nil, []Outcome{OutcomeMalformed}},
		"too much to keep":      {review(v2, strings.Replace(widget("a", "huge"), `"spec":{`, `"spec":{"more":"`+strings.Repeat("x", maxAnnotations)+`",`, 1)), 200, []string{"Widget n/a", "metadata.annotations", "262144"}, nil, []Outcome{OutcomeRefused}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen []Outcome
			handler := NewHandler(widgets(t), func(o Observation) { seen = append(seen, o.Outcome) })
			code, given := ask(t.Context(), t, handler, test.body)
			if code != test.code {
				t.Errorf("status %d, want %d: %s", code, test.code, given.Response.Result.Message)
			}
			if code == http.StatusOK && given.Response.UID != "1" {
				t.Errorf("the answer has uid %q", given.Response.UID)
			}
			for _, want := range test.says {
				if !strings.Contains(given.Response.Result.Message, want) {
					t.Errorf("the message %q does not contain %q", given.Response.Result.Message, want)
				}
			}
			if succeeded := given.Response.Result.Status == "Success"; succeeded != (test.says == nil) {
				t.Errorf("result %+v", given.Response.Result)
			}
			var sizes []string
			for _, raw := range given.Response.ConvertedObjects {
				width, _, _ := unstructured.NestedString(read(t, string(raw.Raw)).Object, "spec", "width")
				sizes = append(sizes, width)
			}
			if diff := cmp.Diff(strings.Join(test.objects, ","), strings.Join(sizes, ",")); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.outcomes, seen); diff != "" {
				t.Errorf("observed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHandlerEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var once sync.Once
	seen := []Outcome{}
	handler := NewHandler(widgets(t), func(o Observation) {
		seen = append(seen, o.Outcome)
		once.Do(cancel)
	})
	_, given := ask(ctx, t, handler, review("example.com/v2", widget("a", "1"), widget("b", "2"), widget("c", "3")))
	if diff := cmp.Diff([]Outcome{OutcomeConverted, OutcomeCanceled}, seen); diff != "" || given.Response.Result.Status != "Failure" {
		t.Errorf("after the caller left (-want +got):\n%s", diff)
	}
}

func TestHandlerMethods(t *testing.T) {
	t.Parallel()
	handler := NewHandler(widgets(t), nil)
	for method, want := range map[string]int{http.MethodGet: 405, http.MethodPost: 415} {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), method, "/convert", strings.NewReader(review("example.com/v2"))))
		if answer.Code != want {
			t.Errorf("%s without a content type: %d, want %d", method, answer.Code, want)
		}
	}
}
