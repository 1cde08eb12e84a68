package crds

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// server behaves like the API server for definitions: it has resourceVersions and conflicts, conditions that come later, and discovery that
// comes even later. A test injects failures through its fields, and sets them before use.
type server struct {
	// before runs at the start of each request, without the lock; an error is the answer. verb is get, patch, discover or list.
	before func(verb string) error
	// slow is how many reads after a write show a definition as not established yet, or do not list it in discovery.
	slow int
	// namesTaken makes NamesAccepted False.
	namesTaken bool
	// stale is how many requests still get the former schema.
	stale int

	lock     sync.Mutex
	objects  map[string]*apiextensionsv1.CustomResourceDefinition
	revision int
	lag      int
	writes   int
}

func newServer(objects ...*apiextensionsv1.CustomResourceDefinition) *server {
	s := &server{objects: map[string]*apiextensionsv1.CustomResourceDefinition{}}
	for _, object := range objects {
		s.put(object)
	}
	return s
}

// put stores a definition as if another client had written it.
func (s *server) put(object *apiextensionsv1.CustomResourceDefinition) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.store(object.DeepCopy())
}

func (s *server) store(object *apiextensionsv1.CustomResourceDefinition) {
	s.revision++
	s.lag = s.slow
	object.ResourceVersion = strconv.Itoa(s.revision)
	if object.UID == "" {
		object.UID = "uid"
	}
	s.objects[object.Name] = object
}

func (s *server) call(verb string) error {
	if s.before == nil {
		return nil
	}
	return s.before(verb)
}

func (s *server) Get(_ context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	if err := s.call("get"); err != nil {
		return nil, err
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	object, found := s.objects[name]
	if !found {
		return nil, notFound(name)
	}
	copied := object.DeepCopy()
	established := apiextensionsv1.ConditionTrue
	if s.lag > 0 {
		established = apiextensionsv1.ConditionFalse
		s.lag--
	}
	accepted := apiextensionsv1.ConditionTrue
	if s.namesTaken {
		accepted, established = apiextensionsv1.ConditionFalse, apiextensionsv1.ConditionFalse
	}
	copied.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
		{Type: apiextensionsv1.NamesAccepted, Status: accepted, Message: "the words of the API server"},
		{Type: apiextensionsv1.Established, Status: established, Message: "the words of the API server"},
	}
	return copied, nil
}

func (s *server) Apply(_ context.Context, name string, body []byte, _ ApplyOptions) (*apiextensionsv1.CustomResourceDefinition, error) {
	if err := s.call("patch"); err != nil {
		return nil, err
	}
	applied := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(body, applied); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	s.writes++
	if existing, found := s.objects[name]; found {
		if applied.ResourceVersion != "" && applied.ResourceVersion != existing.ResourceVersion {
			return nil, apierrors.NewConflict(groupResource(), name, fmt.Errorf("the object has been modified"))
		}
		applied.Labels, applied.Annotations = merged(existing.Labels, applied.Labels), merged(existing.Annotations, applied.Annotations)
		applied.Status = *existing.Status.DeepCopy()
		if len(applied.Spec.Names.Categories) == 0 { // fields that others own stay
			applied.Spec.Names.Categories = existing.Spec.Names.Categories
		}
	} else if applied.ResourceVersion != "" {
		return nil, notFound(name)
	}
	s.store(applied)
	return applied.DeepCopy(), nil
}

// Patch knows the patches that the installer sends.
func (s *server) Patch(_ context.Context, name string, body []byte, _ string, _ ...string) error {
	if err := s.call("patch"); err != nil {
		return err
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	before, err := json.Marshal(s.objects[name])
	if err != nil {
		return err
	}
	after, err := jsonpatch.MergePatch(before, body)
	if err != nil {
		return err
	}
	object := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(after, object); err != nil {
		return err
	}
	if object.ResourceVersion != s.objects[name].ResourceVersion {
		return apierrors.NewConflict(groupResource(), name, fmt.Errorf("the object has been modified"))
	}
	s.writes++
	s.store(object)
	return nil
}

func (s *server) Resources(_ context.Context, group, version string) (*metav1.APIResourceList, error) {
	if err := s.call("discover"); err != nil {
		return nil, err
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	list := &metav1.APIResourceList{GroupVersion: group + "/" + version}
	for object := range maps.Values(s.objects) {
		if object.Spec.Group == group && s.lag == 0 {
			plural := object.Spec.Names.Plural
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: plural}, metav1.APIResource{Name: plural + "/status"}, metav1.APIResource{Name: plural + "/scale"})
		}
	}
	if len(list.APIResources) == 0 {
		s.lag = max(0, s.lag-1)
		return nil, notFound(group)
	}
	return list, nil
}

// Columns answers with the schema in force, which is the former one while stale is not 0.
func (s *server) Columns(_ context.Context, of schema.GroupVersionResource, _ string) ([]metav1.TableColumnDefinition, error) {
	if err := s.call("list"); err != nil {
		return nil, err
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	object, found := s.objects[of.Resource+"."+of.Group]
	if !found {
		return nil, notFound(of.Resource)
	}
	if s.stale > 0 {
		s.stale--
		return []metav1.TableColumnDefinition{{Name: "Age", Description: "of the schema before"}}, nil
	}
	columns := findVersion(object, of.Version).AdditionalPrinterColumns
	return []metav1.TableColumnDefinition{{Name: "Age", Description: columns[len(columns)-1].Description}}, nil
}

func (s *server) Count(context.Context, schema.GroupVersionResource) (int, error) { return 3, nil }

func (s *server) Watch(context.Context, string, string) (watch.Interface, error) {
	return watch.NewFake(), nil
}

func (s *server) live(name string) *apiextensionsv1.CustomResourceDefinition {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.objects[name].DeepCopy()
}

func (s *server) written() int {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.writes
}

func (s *server) remove(name string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	delete(s.objects, name)
}

func groupResource() schema.GroupResource {
	return schema.GroupResource{Group: apiextensionsv1.GroupName, Resource: resource}
}

func notFound(name string) error {
	return apierrors.NewNotFound(groupResource(), name)
}

func installer(s *server) Installer {
	return Installer{API: s, Timeout: 10 * time.Second, Log: logr.Discard()}
}

// impatient is for waits that must end by themselves.
func impatient(s *server) Installer {
	return Installer{API: s, Timeout: 150 * time.Millisecond, Log: logr.Discard()}
}

func all(t *testing.T) []Definition {
	t.Helper()
	return []Definition{ours(t)}
}

func schemaKind() schema.GroupKind {
	return schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}
}

func onPatch(verb string, err error) error {
	if verb == "patch" {
		return err
	}
	return nil
}
