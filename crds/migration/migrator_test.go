package migration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
)

// wantMigrated checks the state at the end of a migration.
func (s *server) wantMigrated(result Result, err error) {
	s.t.Helper()
	if err != nil || !result.Trimmed {
		s.t.Errorf("result %+v, error %v", result, err)
	}
	if stored := s.storedIn(); strings.Contains(stored, "v1") {
		s.t.Errorf("stored: %s", stored)
	}
	if diff := cmp.Diff([]string{"v2"}, s.definition.Status.StoredVersions); diff != "" {
		s.t.Errorf("status.storedVersions (-want +got):\n%s", diff)
	}
	if _, there := s.definition.Annotations[annotation]; there {
		s.t.Error("the cursor is still there")
	}
}

func TestRunRewritesEveryObject(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, 2402)
		var reports []Progress
		m := s.migrator()
		m.PageSize = 100
		m.Report = func(p Progress) { reports = append(reports, p) }
		begun := time.Now()
		s.wantMigrated(m.Run(t.Context(), name))

		if took := time.Since(begun); took < 21*time.Second || took > 23*time.Second {
			t.Errorf("it took %v: 10 s to settle and 2402 objects at 200 in a second are 22 s", took)
		}
		if lists, patches := s.count("GET", "/v2/books"), s.count("PATCH", "/namespaces/"); lists != 25 || patches != 2402 {
			t.Errorf("%d lists and %d patches", lists, patches)
		}
		if cursors := s.count("PATCH", name) - s.count("PATCH", name+"/status"); cursors != 3 {
			t.Errorf("the definition was annotated %d times, want twice for 2402 objects, and once at the end", cursors)
		}
		lines := []string{}
		for _, p := range reports {
			lines = append(lines, fmt.Sprintf("%s %v-%s %d/%d", p.Definition, p.From, p.To, p.Done/100*100, p.Total))
		}
		want := []string{"0/2402", "2000/2402", "2400/2402"}
		for i := range want {
			want[i] = name + " [v1]-v2 " + want[i]
		}
		if diff := cmp.Diff(want, lines); diff != "" {
			t.Errorf("reports (-want +got):\n%s", diff)
		}
		if rate := reports[2].Rate; rate < 195 || rate > 205 {
			t.Errorf("rate %f", rate)
		}
		requests := len(s.requests)
		if result, err := m.Run(t.Context(), name); result.Trimmed || err != nil || len(s.requests) > requests+2 {
			t.Errorf("again: result %+v, error %v, %d requests", result, err, len(s.requests)-requests)
		}
	})
}

// faults are the failures that a request may have. took says that the request took effect all the same.
func faults() map[string]struct {
	took   bool
	answer func() reply
} {
	books := apischema.GroupResource{Group: group, Resource: plural}
	return map[string]struct {
		took   bool
		answer func() reply
	}{
		"conflict":          {false, func() reply { return reply{response: failure(apierrors.NewConflict(books, "x", io.EOF))} }},
		"too many requests": {false, func() reply { return reply{response: failure(apierrors.NewTooManyRequests("busy", 3))} }},
		"internal error":    {false, func() reply { return reply{response: failure(apierrors.NewInternalError(io.EOF))} }},
		"unavailable":       {false, func() reply { return reply{response: failure(apierrors.NewServiceUnavailable("starting"))} }},
		"no route": {false, func() reply {
			return reply{response: &http.Response{StatusCode: http.StatusNotFound, Body: io.NopCloser(strings.NewReader("404 page not found"))}}
		}},
		"connection refused":   {false, func() reply { return reply{err: syscall.ECONNREFUSED} }},
		"timeout, took effect": {true, func() reply { return reply{response: failure(apierrors.NewTimeoutError("too slow", 1))} }},
		"reset, took effect":   {true, func() reply { return reply{err: syscall.ECONNRESET} }},
		"cut off":              {true, func() reply { return reply{err: io.ErrUnexpectedEOF} }},
	}
}

// withFault answers the request with this number so.
func (s *server) withFault(at int, took bool, answer func() reply) {
	fault := func(number int, _ *http.Request) reply {
		if number == at {
			return answer()
		}
		return reply{}
	}
	if s.before = fault; took {
		s.before, s.after = nil, fault
	}
}

// small is a server whose migration sends every kind of request, also one that renames managedFields, and a cursor after each page.
func small(t *testing.T) (*server, Migrator) {
	t.Helper()
	s := newServer(t, 11)
	s.add("shelf-9", "owned", "v1", entry("owner", metav1.ManagedFieldsOperationApply, "v1", `{"f:spec":{}}`))
	m := s.migrator()
	m.Rate = 0.4 // two and a half seconds for one, so that the cursor is due after each page
	return s, m
}

func TestEachFaultAtEachRequest(t *testing.T) {
	t.Parallel()
	for fault, it := range faults() {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			for at, last := 0, 1; at < last; at++ {
				synctest.Test(t, func(t *testing.T) {
					s, m := small(t)
					s.withFault(at, it.took, it.answer)
					s.wantMigrated(m.Run(t.Context(), name))
					if last = len(s.requests); last < 20 {
						t.Errorf("only %d requests: %v", last, s.requests)
					}
					if t.Failed() {
						t.Errorf("at request %d of %d, %s", at, last, s.requests[at])
					}
				})
			}
		})
	}
}

func TestKilledAtEachRequest(t *testing.T) {
	t.Parallel()
	for story, took := range map[string]bool{"before it took effect": false, "after it took effect": true} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			resumed, complete := 0, 0
			for at := 0; complete == 0; at++ {
				synctest.Test(t, func(t *testing.T) {
					s, m := small(t)
					ctx, kill := context.WithCancel(t.Context())
					defer kill()
					s.withFault(at, took, func() reply { kill(); return reply{err: context.Canceled} })
					_, err := m.Run(ctx, name)
					if s.before, s.after = nil, nil; len(s.requests) <= at {
						complete = at
					} else if !errors.Is(err, context.Canceled) {
						t.Errorf("killed at request %d: error %v", at, err)
					}
					before := s.count("PATCH", "/namespaces/")
					result, err := m.Run(t.Context(), name)
					if result.Progress.Resumed {
						resumed++
						if again := s.count("PATCH", "/namespaces/") - before; again >= 12 {
							t.Errorf("killed at request %d: all %d objects were rewritten again", at, again)
						}
						if p := result.Progress; p.Done != p.Total {
							t.Errorf("killed at request %d: %d of %d are done", at, p.Done, p.Total)
						}
					}
					result.Trimmed = true // by one of the two runs
					s.wantMigrated(result, err)
				})
			}
			if resumed < 5 || complete < 20 {
				t.Errorf("%d of %d runs were resumed", resumed, complete)
			}
		})
	}
}

func TestCancellationIsHonouredAtOnce(t *testing.T) {
	t.Parallel()
	hang := func(_ int, request *http.Request) reply {
		<-request.Context().Done()
		return reply{err: request.Context().Err()}
	}
	down := func(int, *http.Request) reply { return reply{err: syscall.ECONNREFUSED} }
	for story, test := range map[string]struct {
		after  time.Duration
		before func(int, *http.Request) reply
	}{
		"while the definition settles": {after: 3 * time.Second},
		"while objects are rewritten":  {after: 12 * time.Second},
		"while a request hangs":        {after: 7 * time.Second, before: hang},
		"while the API server is down": {after: 70 * time.Second, before: down},
		"while the API server has asked for a pause": {after: 15 * time.Second, before: func(number int, _ *http.Request) reply {
			if number < 5 {
				return reply{}
			}
			return reply{response: failure(apierrors.NewTooManyRequests("busy", 60))}
		}},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, m := small(t)
				s.before = test.before
				ctx, cancel := context.WithTimeout(t.Context(), test.after)
				defer cancel()
				begun := time.Now()
				if _, err := m.Run(ctx, name); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("error %v", err)
				}
				if late := time.Since(begun) - test.after; late != 0 {
					t.Errorf("it ended %v after it was cancelled", late)
				}
			})
		})
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, 1)
		refused := false
		s.before = func(_ int, request *http.Request) reply {
			if refused || !patchOf(request, "book") {
				return reply{}
			}
			refused = true
			return reply{response: failure(apierrors.NewTooManyRequests("busy", 25))}
		}
		begun := time.Now()
		s.wantMigrated(s.migrator().Run(t.Context(), name))
		if took := time.Since(begun) - DefaultSettle; took < 25*time.Second || took > 26*time.Second {
			t.Errorf("it continued after %v, want 25 s, the time in Retry-After", took)
		}
	})
}

func TestPatienceEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, m := small(t)
		s.before = func(_ int, request *http.Request) reply {
			if strings.HasSuffix(request.URL.Path, "book-0004") {
				return reply{response: failure(apierrors.NewServiceUnavailable("storage is full"))}
			}
			return reply{}
		}
		result, err := m.Run(t.Context(), name)
		if err == nil || !strings.Contains(err.Error(), "rewrite books.books.example.com shelf-0/book-0004: no success within 2m0s: storage is full") {
			t.Errorf("error %v", err)
		}
		if result.Trimmed || len(s.definition.Status.StoredVersions) != 2 {
			t.Errorf("result %+v", result)
		}
	})
}
