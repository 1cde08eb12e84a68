package migration

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

const (
	group      = "books.example.com"
	plural     = "books"
	name       = plural + "." + group
	annotation = group + "/migrated-up-to"
)

// server is an API server with one definition, as far as a migration uses it. It knows in which version each object is stored. It fails the
// test when status.storedVersions loses a version that objects are stored in.
type server struct {
	t *testing.T

	lock       sync.Mutex
	definition apiextensionsv1.CustomResourceDefinition
	objects    map[string]*book
	version    int // the last resourceVersion

	requests []string
	// before is called for each request, counted from 0. A reply that is not zero replaces the server's own.
	before func(number int, request *http.Request) reply
	// after is the same, but is called when the request has taken effect.
	after func(number int, request *http.Request) reply
}

// reply is what a client gets; the zero value stands for the server's own answer.
type reply struct {
	response *http.Response
	err      error
}

type book struct {
	metav1.PartialObjectMetadata
	stored string
}

// newServer has books in two namespaces, stored in v1. v2 is now the storage version, and v1 is not served any more.
func newServer(t *testing.T, books int) *server {
	t.Helper()
	s := &server{t: t, objects: map[string]*book{}, version: 100}
	s.definition = apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "definition-1", Generation: 2, ResourceVersion: "100"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: "Book"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1"}, {Name: "v2", Served: true, Storage: true}},
		},
		Status: apiextensionsv1.CustomResourceDefinitionStatus{StoredVersions: []string{"v1", "v2"}},
	}
	for number := range books {
		s.add(fmt.Sprintf("shelf-%d", number%2), fmt.Sprintf("book-%04d", number), "v1")
	}
	return s
}

func (s *server) add(namespace, name, version string, entries ...metav1.ManagedFieldsEntry) {
	s.version++
	kind := metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}
	object := metav1.PartialObjectMetadata{TypeMeta: kind, ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: "object-1", ResourceVersion: strconv.Itoa(s.version), ManagedFields: entries,
	}}
	s.objects[keyOf(&object)] = &book{PartialObjectMetadata: object, stored: version}
}

// migrator returns a migrator for this server with small pages, and otherwise the defaults.
func (s *server) migrator() Migrator {
	s.t.Helper()
	m, err := New(&rest.Config{Host: "http://server", Transport: s}, "migrator", annotation)
	if err != nil {
		s.t.Fatal(err)
	}
	m.PageSize = 5
	return m
}

// storedIn counts the objects by the version they are stored in, as "2 in v1, 1 in v2".
func (s *server) storedIn() string {
	s.lock.Lock()
	defer s.lock.Unlock()
	counts := map[string]int{}
	for _, object := range s.objects {
		counts[object.stored]++
	}
	parts := []string{}
	for _, version := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d in %s", counts[version], version))
	}
	return strings.Join(parts, ", ")
}

func (s *server) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := request.Context().Err(); err != nil {
		return nil, err
	}
	s.lock.Lock()
	number := len(s.requests)
	s.requests = append(s.requests, request.Method+" "+request.URL.Path)
	s.lock.Unlock()
	if s.before != nil {
		if other := s.before(number, request); other != (reply{}) {
			return other.response, other.err
		}
	}
	answer, err := s.serve(request)
	if s.after != nil {
		if other := s.after(number, request); other != (reply{}) {
			return other.response, other.err
		}
	}
	if err != nil {
		return failure(err), nil
	}
	return respond(http.StatusOK, answer), nil
}

// count returns the number of requests with this method, to a path that contains this text.
func (s *server) count(method, path string) int {
	s.lock.Lock()
	defer s.lock.Unlock()
	count := 0
	for _, request := range s.requests {
		if strings.HasPrefix(request, method) && strings.Contains(request, path) {
			count++
		}
	}
	return count
}

func respond(status int, answer any) *http.Response {
	body, _ := json.Marshal(answer)
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body))}
}

// failure returns the answer with an error of the API server.
func failure(err error) *http.Response {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(err)
	}
	status := known.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	response := respond(int(status.Code), status)
	if details := status.Details; details != nil && details.RetryAfterSeconds > 0 {
		response.Header.Set("Retry-After", strconv.Itoa(int(details.RetryAfterSeconds)))
	}
	return response
}

func resourceOfBooks() apischema.GroupResource {
	return apischema.GroupResource{Group: group, Resource: plural}
}

func (s *server) serve(request *http.Request) (any, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	var patch struct {
		Metadata struct {
			UID             string                       `json:"uid"`
			ResourceVersion string                       `json:"resourceVersion"`
			Annotations     map[string]string            `json:"annotations"`
			ManagedFields   *[]metav1.ManagedFieldsEntry `json:"managedFields"`
		} `json:"metadata"`
		Status struct {
			StoredVersions []string `json:"storedVersions"`
		} `json:"status"`
	}
	if request.Method == http.MethodPatch {
		if err := json.NewDecoder(request.Body).Decode(&patch); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	path := strings.Split(strings.TrimPrefix(request.URL.Path, "/apis/"), "/")
	conflict := apierrors.NewConflict(apischema.GroupResource{Resource: plural}, path[len(path)-1], io.ErrShortWrite)
	switch request.Method + " " + strings.Join(path[2:], "/") {
	case "GET customresourcedefinitions/" + name:
		return s.definition, nil
	case "PATCH customresourcedefinitions/" + name:
		if patch.Metadata.UID != string(s.definition.UID) {
			return nil, conflict
		}
		s.definition.Annotations = patch.Metadata.Annotations
		s.definition.ResourceVersion = s.next()
		return s.definition, nil
	case "PATCH customresourcedefinitions/" + name + "/status":
		if patch.Metadata.ResourceVersion != s.definition.ResourceVersion {
			return nil, conflict
		}
		s.trim(patch.Status.StoredVersions)
		return s.definition, nil
	case "GET " + plural:
		return s.list(request)
	}
	object, found := s.objects[path[3]+"/"+path[len(path)-1]]
	if !found {
		return nil, apierrors.NewNotFound(resourceOfBooks(), path[len(path)-1])
	}
	if request.Method == http.MethodGet {
		return object.PartialObjectMetadata, nil
	}
	if expected := patch.Metadata.ResourceVersion; expected != "" && expected != object.ResourceVersion {
		return nil, conflict
	}
	if patch.Metadata.ManagedFields != nil {
		object.ManagedFields = *patch.Metadata.ManagedFields
	}
	object.stored, object.ResourceVersion = storageVersion(&s.definition), s.next()
	return object.PartialObjectMetadata, nil
}

func (s *server) next() string {
	s.version++
	return strconv.Itoa(s.version)
}

func (s *server) trim(versions []string) {
	for key, object := range s.objects {
		if !slices.Contains(versions, object.stored) {
			s.t.Errorf("status.storedVersions becomes %v, and %s is stored in %s", versions, key, object.stored)
		}
	}
	s.definition.Status.StoredVersions = versions
	s.definition.ResourceVersion = s.next()
}

// list continues after the key in the token.
func (s *server) list(request *http.Request) (any, error) {
	limit, _ := strconv.Atoi(request.URL.Query().Get("limit"))
	behind := request.URL.Query().Get("continue")
	list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
	left := int64(0)
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		switch {
		case key <= behind:
		case len(list.Items) == cmp.Or(limit, len(s.objects)):
			left++
		default:
			list.Items = append(list.Items, s.objects[key].PartialObjectMetadata)
			list.Continue = key
		}
	}
	if left == 0 {
		list.Continue = ""
	} else {
		list.RemainingItemCount = &left
	}
	return list, nil
}
