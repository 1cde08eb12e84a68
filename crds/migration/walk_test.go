package migration

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// patchOf reports whether the request is a patch of an object with this text in its path.
func patchOf(request *http.Request, name string) bool {
	return request.Method == http.MethodPatch && strings.Contains(request.URL.Path, "/namespaces/") && strings.Contains(request.URL.Path, name)
}

func denial(name string) reply {
	return reply{response: failure(apierrors.NewForbidden(resourceOfBooks(), name, errors.New("a policy says no")))}
}

func TestRefusedObjectsAreNamed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, 40)
		s.before = func(_ int, request *http.Request) reply {
			if patchOf(request, "book-002") { // 0020 to 0029; the even ones are on shelf 0
				return denial("x")
			}
			return reply{}
		}
		m := s.migrator()
		m.Rate = 0.5 // a cursor would be due after each page
		result, err := m.Run(t.Context(), name)
		var refused *RefusedError
		if !errors.As(err, &refused) || refused.Count != 10 || refused.GivenUp {
			t.Fatalf("error %v", err)
		}
		want := "migrate objects of definition books.books.example.com to v2: the API server refuses 10 objects as they are: correct or delete them, " +
			"or grant the missing permission; until then version v1 cannot be dropped: shelf-0/book-0020: "
		if !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "shelf-1/book-0029: ") {
			t.Errorf("error %v", err)
		}
		if p := result.Progress; result.Trimmed || p.Done != 30 || p.Refused != 10 || s.storedIn() != "10 in v1, 30 in v2" {
			t.Errorf("result %+v, %s", result, s.storedIn())
		}
		if after := resume(s.definition.Annotations[annotation], identityOf(&s.definition)); after != "shelf-0/book-0018" {
			t.Errorf("the cursor is at %q, want it before the first that was refused", after)
		}
		s.before = nil
		s.wantMigrated(m.Run(t.Context(), name))
	})
}

func TestHopelessIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, 1000)
		s.before = func(_ int, request *http.Request) reply {
			if patchOf(request, "book") {
				return denial("x")
			}
			return reply{}
		}
		_, err := s.migrator().Run(t.Context(), name)
		var refused *RefusedError
		if !errors.As(err, &refused) || !refused.GivenUp || len(refused.Refusals) != refusalsKept || !strings.Contains(err.Error(), "more") {
			t.Errorf("error %v", err)
		}
		if tried := s.count("PATCH", "/namespaces/"); tried < maxRefusals || tried > maxRefusals+DefaultConcurrency {
			t.Errorf("%d objects were tried", tried)
		}
	})
}

func TestDeletedObjectsAreSkipped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, 12)
		s.before = func(_ int, request *http.Request) reply {
			if patchOf(request, "book-0006") {
				s.lock.Lock()
				defer s.lock.Unlock()
				delete(s.objects, "shelf-0/book-0006")
			}
			return reply{}
		}
		result, err := s.migrator().Run(t.Context(), name)
		s.wantMigrated(result, err)
		if p := result.Progress; p.Done != 11 || p.Skipped != 1 || p.Total != 12 {
			t.Errorf("progress %+v", p)
		}
	})
}

func TestKindThatIsNotServedIsNoDeletedObject(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, 12)
		s.before = func(_ int, request *http.Request) reply {
			if patchOf(request, "book") {
				return reply{response: &http.Response{StatusCode: http.StatusNotFound, Body: io.NopCloser(strings.NewReader("404 page not found"))}}
			}
			return reply{}
		}
		result, err := s.migrator().Run(t.Context(), name)
		if err == nil || result.Trimmed || result.Progress.Skipped != 0 {
			t.Errorf("result %+v, error %v", result, err)
		}
	})
}

func TestChangedDefinitionIsNotTrimmed(t *testing.T) {
	t.Parallel()
	for story, test := range map[string]struct {
		change func(*server)
		want   string
	}{
		"another schema":                {func(s *server) { s.definition.Generation++ }, "its generation is 3, no longer 2"},
		"created again":                 {func(s *server) { s.definition.UID = "definition-2" }, "it was deleted and created again"},
		"stored in v1 again":            {func(s *server) { s.storeIn("v1") }, "its storage version is v1, no longer v2, its generation is 3, no longer 2"},
		"another version is stored":     {func(s *server) { s.definition.Status.StoredVersions = []string{"v1", "v2", "v0"} }, "its status.storedVersions is [v1 v2 v0], no longer [v1 v2]"},
		"forth and back":                {func(s *server) { s.storeIn("v1"); s.storeIn("v2") }, "its generation is 4, no longer 2"},
		"another program migrated, too": {func(s *server) { s.definition.Status.StoredVersions = []string{"v2"} }, ""},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, 12)
				s.before = func(_ int, request *http.Request) reply {
					if patchOf(request, "shelf-1/books/book-0011") { // the last
						s.lock.Lock()
						defer s.lock.Unlock()
						test.change(s)
						s.definition.ResourceVersion = s.next()
					}
					return reply{}
				}
				_, err := s.migrator().Run(t.Context(), name)
				var changed *ChangedError
				switch {
				case test.want == "" && err == nil:
				case !errors.As(err, &changed) || changed.Difference != test.want:
					t.Errorf("error %v, want %q", err, test.want)
				case len(s.definition.Status.StoredVersions) < 2:
					t.Error("it was trimmed")
				}
			})
		})
	}
}

func (s *server) storeIn(version string) {
	s.definition.Generation++
	for i := range s.definition.Spec.Versions {
		s.definition.Spec.Versions[i].Storage = s.definition.Spec.Versions[i].Name == version
	}
}

func TestChangeIsNoticedOnTheWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, 5000)
		s.before = func(number int, _ *http.Request) reply {
			if number == 1000 {
				s.lock.Lock()
				defer s.lock.Unlock()
				s.definition.Generation++
			}
			return reply{}
		}
		_, err := s.migrator().Run(t.Context(), name)
		var changed *ChangedError
		if tried := s.count("PATCH", "/namespaces/"); !errors.As(err, &changed) || tried > 1100 {
			t.Errorf("error %v after %d objects", err, tried)
		}
	})
}

func TestExpiredListGoesOn(t *testing.T) {
	t.Parallel()
	for story, test := range map[string]struct {
		token string // that comes with the error
		lists int
	}{
		"from the token of the API server":     {token: "shelf-0/book-0008", lists: 6},
		"from the beginning, if it sends none": {lists: 7},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, 24)
				expired := false
				s.before = func(_ int, request *http.Request) reply {
					if token := request.URL.Query().Get("continue"); token == "" || expired {
						return reply{}
					}
					expired = true
					gone := apierrors.NewResourceExpired("too old")
					gone.ErrStatus.Continue = test.token
					return reply{response: failure(gone)}
				}
				result, err := s.migrator().Run(t.Context(), name)
				s.wantMigrated(result, err)
				if lists, patches := s.count("GET", "/v2/books"), s.count("PATCH", "/namespaces/"); lists != test.lists || patches != 24 {
					t.Errorf("%d lists, %d patches", lists, patches)
				}
				if result.Progress.Done != 24 {
					t.Errorf("progress %+v", result.Progress)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, 24)
		s.before = func(_ int, request *http.Request) reply {
			if request.URL.Query().Get("continue") != "" {
				return reply{response: failure(apierrors.NewResourceExpired("too old"))}
			}
			return reply{}
		}
		if _, err := s.migrator().Run(t.Context(), name); err == nil || !strings.Contains(err.Error(), "list books.books.example.com: too old") {
			t.Errorf("expired every time: error %v", err)
		}
	})
}

// TestEditAtTheSameTimeIsKept: another client writes between the list and the patch that renames managedFields.
func TestEditAtTheSameTimeIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, 0)
		old := entry("owner", metav1.ManagedFieldsOperationApply, "v1", `{"f:spec":{"f:old":{}}}`)
		s.add("shelf", "book", "v1", old)
		edited := false
		s.before = func(_ int, request *http.Request) reply {
			if patchOf(request, "book") && !edited {
				edited = true
				s.add("shelf", "book", "v2", old, entry("editor", metav1.ManagedFieldsOperationUpdate, "v2", `{"f:spec":{"f:new":{}}}`))
			}
			return reply{}
		}
		s.wantMigrated(s.migrator().Run(t.Context(), name))
		want := []metav1.ManagedFieldsEntry{
			entry("owner", metav1.ManagedFieldsOperationApply, "v2", `{"f:spec":{"f:old":{}}}`),
			entry("editor", metav1.ManagedFieldsOperationUpdate, "v2", `{"f:spec":{"f:new":{}}}`),
		}
		if diff := cmp.Diff(want, s.objects["shelf/book"].ManagedFields, equalFields()); diff != "" {
			t.Errorf("managedFields (-want +got):\n%s", diff)
		}
	})
}

func TestSettle(t *testing.T) {
	t.Parallel()
	for story, test := range map[string]struct {
		settle  time.Duration
		changes int // of the definition, one at each read of it
		want    time.Duration
		failure string
	}{
		"ten seconds by default":           {want: 10 * time.Second},
		"a change starts the wait again":   {settle: 4 * time.Second, changes: 2, want: 12 * time.Second},
		"a definition that always changes": {changes: 100, want: 60 * time.Second, failure: "other clients change it repeatedly"},
		"one API server needs no wait":     {settle: -1},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, 1)
				looks := 0
				s.before = func(_ int, request *http.Request) reply {
					if strings.HasSuffix(request.URL.Path, name) && looks <= test.changes && s.count("GET", "/v2/") == 0 {
						looks++
						if looks > 1 {
							s.definition.Generation++
						}
					}
					return reply{}
				}
				m := s.migrator()
				m.Settle = test.settle
				begun := time.Now()
				result, err := m.Run(t.Context(), name)
				if took := time.Since(begun); took < test.want || took > test.want+time.Second {
					t.Errorf("it took %v, want %v", took, test.want)
				}
				if test.failure == "" {
					s.wantMigrated(result, err)
				} else if err == nil || !strings.Contains(err.Error(), test.failure) {
					t.Errorf("error %v", err)
				}
			})
		})
	}
}

// TestTwoAtOnce: two leaders migrate at once, as after a network partition.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, 300)
		ends := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := s.migrator().Run(t.Context(), name)
				ends <- err
			}()
		}
		s.wantMigrated(Result{Trimmed: true}, errors.Join(<-ends, <-ends))
	})
}

func TestRunNeedsItsParts(t *testing.T) {
	t.Parallel()
	if _, err := (Migrator{}).Run(t.Context(), name); err == nil || !strings.Contains(err.Error(), "must be set") {
		t.Errorf("error %v", err)
	}
}

func TestNothingServed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, 1)
		s.definition.Spec.Versions[1].Served = false
		if _, err := s.migrator().Run(t.Context(), name); err == nil || !strings.Contains(err.Error(), "it serves no version") {
			t.Errorf("error %v", err)
		}
	})
}

// entry is an entry of managedFields, without a time.
func entry(manager string, operation metav1.ManagedFieldsOperationType, version, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, APIVersion: group + "/" + version, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

func equalFields() cmp.Option {
	return cmp.Comparer(func(a, b metav1.FieldsV1) bool { return a.Equal(b) })
}
