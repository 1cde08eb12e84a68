package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/mysql-operator/mysql-operator/crds"
)

// pages answers lists as the API server does: page by page, in the order of namespace and name.
type pages struct {
	things []*unstructured.Unstructured
	// before may return an error, which is then the answer.
	before func(call int, next string) *apierrors.StatusError
	calls  int
}

// client is a client of a server that answers with the pages, one request at a time.
func (p *pages) client(t *testing.T) dynamic.Interface {
	t.Helper()
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	checker, err := New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return checker.Client
}

func (p *pages) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	p.calls++
	next := request.URL.Query().Get("continue")
	writer.Header().Set("Content-Type", "application/json")
	if p.before != nil {
		if refusal := p.before(p.calls, next); refusal != nil {
			refusal.ErrStatus.APIVersion, refusal.ErrStatus.Kind = "v1", "Status"
			writer.WriteHeader(int(refusal.ErrStatus.Code))
			_ = json.NewEncoder(writer).Encode(refusal.ErrStatus)
			return
		}
	}
	_, namespace, _ := strings.Cut(strings.TrimSuffix(request.URL.Path, "/things"), "/namespaces/")
	all := slices.DeleteFunc(slices.Clone(p.things), func(object *unstructured.Unstructured) bool {
		return namespace != "" && object.GetNamespace() != namespace
	})
	from, _ := strconv.Atoi(next)
	limit, _ := strconv.Atoi(request.URL.Query().Get("limit"))
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "ThingList"}}
	for _, object := range all[from:min(len(all), from+limit)] {
		list.Items = append(list.Items, *object)
	}
	if from+limit < len(all) {
		list.SetContinue(strconv.Itoa(from + limit))
	}
	content, err := list.MarshalJSON()
	if err != nil {
		panic(err)
	}
	_, _ = writer.Write(content)
}

// things are n objects in each namespace; every tenth has a field that the update removes.
func things(t *testing.T, n int, namespaces ...string) []*unstructured.Unstructured {
	t.Helper()
	made := []*unstructured.Unstructured{}
	for _, namespace := range namespaces {
		for at := range n {
			spec := `a: v`
			if at%10 == 3 {
				spec = `a: v, b: w`
			}
			object := thing(t, fmt.Sprintf("thing-%04d", at), spec)
			object.SetNamespace(namespace)
			made = append(made, object)
		}
	}
	return made
}

func editions(t *testing.T) (has, wants *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	return definition(t, "v1! properties: {a: {type: string}, b: {type: string}}"), definition(t, "v1! properties: {a: {type: string}}")
}

func TestCheckReadsAllPages(t *testing.T) {
	t.Parallel()
	has, wants := editions(t)
	server := &pages{things: things(t, 600, "one", "two")}
	got, err := Checker{Client: server.client(t)}.Check(t.Context(), has, wants)
	if err != nil {
		t.Fatal(err)
	}
	if got.Seen != 1200 || got.Harmed != 120 || len(got.Findings) != maxFindings || got.Namespaces != nil || server.calls != 5 {
		t.Errorf("seen %d, harmed %d, findings %d, namespaces %v in %d requests", got.Seen, got.Harmed, len(got.Findings), got.Namespaces, server.calls)
	}
	want := crds.Finding{Namespace: "one", Name: "thing-0193", Lost: []string{"spec.b"}}
	if diff := cmp.Diff(want, got.Findings[maxFindings-1], ignoreEmpty()); diff != "" {
		t.Errorf("the last finding (-want +got):\n%s", diff)
	}
}

func TestCheckReadsOnlyItsNamespaces(t *testing.T) {
	t.Parallel()
	has, wants := editions(t)
	server := &pages{things: things(t, 10, "one", "three", "two")}
	got, err := Checker{Client: server.client(t), Namespaces: []string{"two", "one"}}.Check(t.Context(), has, wants)
	if err != nil {
		t.Fatal(err)
	}
	want := crds.Objects{Seen: 20, Harmed: 2, Namespaces: []string{"two", "one"}, Findings: []crds.Finding{
		{Namespace: "one", Name: "thing-0003", Lost: []string{"spec.b"}}, {Namespace: "two", Name: "thing-0003", Lost: []string{"spec.b"}}}}
	if diff := cmp.Diff(want, got, ignoreEmpty()); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	has.Spec.Scope, wants.Spec.Scope = apiextensionsv1.ClusterScoped, apiextensionsv1.ClusterScoped
	got, err = Checker{Client: server.client(t), Namespaces: []string{"two"}}.Check(t.Context(), has, wants)
	if err != nil || got.Seen != 30 || got.Namespaces != nil {
		t.Errorf("objects without namespaces: seen %d in %v, error %v", got.Seen, got.Namespaces, err)
	}
}

// expired is the API server's answer when a continue token has expired; next is the token to continue with the current state, if any.
func expired(next string) *apierrors.StatusError {
	err := apierrors.NewResourceExpired("the provided continue parameter is too old")
	err.ErrStatus.Continue = next
	return err
}

// TestCheckEndsWhereTheListDoesNot: a server that returns pages indefinitely does not hold the check.
func TestCheckEndsWhereTheListDoesNot(t *testing.T) {
	t.Parallel()
	has, wants := editions(t)
	server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
		writer.Header().Set("Content-Type", "application/json")
		_, _ = writer.Write([]byte(`{"apiVersion": "example.com/v1", "kind": "ThingList", "metadata": {"continue": "again"}, "items": []}`))
	}))
	t.Cleanup(server.Close)
	checker, err := New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	_, err = checker.Check(t.Context(), has, wants)
	if err == nil || !strings.Contains(err.Error(), "the same page twice") {
		t.Errorf("error %v", err)
	}
}

func TestCheckWhenTheListIsForgotten(t *testing.T) {
	t.Parallel()
	has, wants := editions(t)
	for _, test := range []struct {
		story  string
		before func(call int, next string) *apierrors.StatusError
		calls  int
		fails  bool
	}{
		{"it continues where it was", func(call int, next string) *apierrors.StatusError {
			if call == 3 {
				return expired(next)
			}
			return nil
		}, 6, false},
		{"it starts and counts again", func(call int, _ string) *apierrors.StatusError {
			if call == 3 {
				return expired("")
			}
			return nil
		}, 8, false},
		{"it gives up when this happens each time", func(_ int, next string) *apierrors.StatusError {
			if next != "" {
				return expired("")
			}
			return nil
		}, 8, true},
	} {
		t.Run(test.story, func(t *testing.T) {
			t.Parallel()
			server := &pages{things: things(t, 600, "one", "two"), before: test.before}
			got, err := Checker{Client: server.client(t)}.Check(t.Context(), has, wants)
			if test.fails != (err != nil) || server.calls != test.calls {
				t.Fatalf("error %v after %d requests", err, server.calls)
			}
			if !test.fails && (got.Seen != 1200 || got.Harmed != 120) {
				t.Errorf("seen %d, harmed %d", got.Seen, got.Harmed)
			}
		})
	}
}

// TestCheckCannotList specifies which refusals of the API server mean that there are no objects, and which that this is unknown.
func TestCheckCannotList(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Group: "example.com", Resource: "things"}
	for _, test := range []struct {
		story       string
		answer      *apierrors.StatusError
		established apiextensionsv1.ConditionStatus
		want        string
		is          func(error) bool
	}{
		{"it was never established", apierrors.NewNotFound(resource, ""), apiextensionsv1.ConditionFalse, "", nil},
		{"it is established, but not served", apierrors.NewNotFound(resource, ""), apiextensionsv1.ConditionTrue,
			"list things.example.com in namespace team: the definition is established, but version v1 is not served", apierrors.IsNotFound},
		{"a permission is missing", apierrors.NewForbidden(resource, "", errors.New("no")), apiextensionsv1.ConditionTrue,
			`list things.example.com in namespace team: the account does not have the permission "list" on things.example.com in namespace team: grant it`, apierrors.IsForbidden},
		{"the API server fails", apierrors.NewInternalError(errors.New("busy")), apiextensionsv1.ConditionTrue,
			"list things.example.com in namespace team: Internal error occurred: busy", apierrors.IsInternalError},
	} {
		t.Run(test.story, func(t *testing.T) {
			t.Parallel()
			has, wants := editions(t)
			has.Status.Conditions[0].Status = test.established
			server := &pages{before: func(int, string) *apierrors.StatusError { return test.answer }}
			got, err := Checker{Client: server.client(t), Namespaces: []string{"team"}}.Check(t.Context(), has, wants)
			if test.want == "" {
				if err != nil || got.Seen != 0 {
					t.Errorf("seen %d, error %v", got.Seen, err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), test.want) || !test.is(err) {
				t.Errorf("error %v, want %s", err, test.want)
			}
		})
	}
}

// TestCheckEndsWithinAPage: when the program must stop, the check does not continue with the rest of a page.
func TestCheckEndsWithinAPage(t *testing.T) {
	t.Parallel()
	has, wants := editions(t)
	ctx, cancel := context.WithCancel(t.Context())
	looked := 0
	wants.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
	wants.Spec.Versions = append(wants.Spec.Versions, versionOf(t, "v2 properties: {a: {type: string}}"))
	convert := func(object *unstructured.Unstructured, _ string) (*unstructured.Unstructured, error) {
		looked++
		if looked == 7 {
			cancel()
		}
		return object, nil
	}
	server := &pages{things: things(t, 100, "one")}
	_, err := Checker{Client: server.client(t), Convert: convert}.Check(ctx, has, wants)
	if !errors.Is(err, context.Canceled) || looked != 7 {
		t.Errorf("error %v after %d objects", err, looked)
	}
}

// TestFindingsAreTheFirst: findings are the first by namespace and name, in whatever order they are added, and their number is limited.
func TestFindingsAreTheFirst(t *testing.T) {
	t.Parallel()
	found := tally{}
	for at := range 1000 {
		name := fmt.Sprintf("%03d", (at*7)%1000) // 7 and 1000 have no common divisor: each number once
		found.add(crds.Finding{Namespace: "a", Name: name, Lost: []string{"x"}})
	}
	found.add(crds.Finding{Namespace: "a-b", Name: "000", Lost: []string{"x"}})
	if found.seen != 1001 || found.harmed != 1001 || len(found.findings) != maxFindings {
		t.Errorf("seen %d, harmed %d, findings %d", found.seen, found.harmed, len(found.findings))
	}
	for at, finding := range found.findings {
		if finding.Namespace != "a" || finding.Name != fmt.Sprintf("%03d", at) {
			t.Errorf("finding %d is %s", at, finding)
		}
	}
	lines := []string{}
	for at := range 50 {
		lines = append(lines, fmt.Sprintf("%02d", at), "00")
	}
	if got := details(lines); len(got) != maxDetails+1 || got[maxDetails] != "and 30 more" {
		t.Errorf("details %v", got)
	}
}
