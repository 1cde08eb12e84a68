package reconcile

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// scriptedLock is a Lease with the answers that the test sets.
type scriptedLock struct {
	holder string
	err    error
}

func (s *scriptedLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: s.holder}, nil, s.err
}
func (s *scriptedLock) Create(context.Context, resourcelock.LeaderElectionRecord) error { return s.err }
func (s *scriptedLock) Update(context.Context, resourcelock.LeaderElectionRecord) error { return s.err }
func (s *scriptedLock) RecordEvent(string)                                              {}
func (s *scriptedLock) Identity() string                                                { return "us" }
func (s *scriptedLock) Describe() string                                                { return "shop/mysql-operator" }

func newTestLease() (*lease, *scriptedLock, *[]string) {
	lines := &[]string{}
	logger := funcr.New(func(_, line string) { *lines = append(*lines, line) }, funcr.Options{})
	scripted := &scriptedLock{}
	return &lease{Interface: scripted, logger: logger, hold: newHold(time.Hour)}, scripted, lines
}

func TestAnOutageOfTheLeaseIsToldAtItsBeginAndItsEnd(t *testing.T) {
	t.Parallel()
	leases := apischema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	refused := errors.New("connection refused")
	forbidden := apierrors.NewForbidden(leases, LeaseName, errors.New("no rule"))
	// The elector's calls: a leader writes, and reads if that fails; a standby reads, and writes if no process holds the Lease.
	tests := map[string]struct {
		calls []string
		want  []string
	}{
		"a leader through an outage":            {calls: []string{"write", "write:refused", "read:refused", "write:refused", "read:refused", "write", "write"}, want: []string{"failed to", "written again"}},
		"a standby through an outage":           {calls: []string{"read", "read:refused", "read:refused", "read", "read", "read"}, want: []string{"failed to", "written again"}},
		"a leader that comes back as a standby": {calls: []string{"write:refused", "read:refused", "read", "read"}, want: []string{"failed to", "written again"}},
		"the permission to write is missing":    {calls: []string{"read", "write:forbidden", "read", "write:forbidden", "read", "write:forbidden"}, want: []string{"failed to"}},
		"two candidates at once":                {calls: []string{"read:absent", "write:taken", "read", "write:conflict", "read"}},
		"two outages":                           {calls: []string{"read:refused", "read", "read", "read:refused", "write"}, want: []string{"failed to", "written again", "failed to", "written again"}},
	}
	answers := map[string]error{
		"": nil, "refused": refused, "forbidden": forbidden,
		"absent": apierrors.NewNotFound(leases, LeaseName), "taken": apierrors.NewAlreadyExists(leases, LeaseName), "conflict": apierrors.NewConflict(leases, LeaseName, refused),
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, lock, lines := newTestLease()
			for _, call := range test.calls {
				verb, answer, _ := strings.Cut(call, ":")
				lock.err = answers[answer]
				if verb == "read" {
					_, _, _ = one.Get(t.Context())
					continue
				}
				_ = one.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "us"})
			}
			if len(*lines) != len(test.want) {
				t.Fatalf("logged %q, want %q", *lines, test.want)
			}
			for i, word := range test.want {
				if !strings.Contains((*lines)[i], word) {
					t.Errorf("line %d is %q, want one with %q", i, (*lines)[i], word)
				}
			}
		})
	}
}

func TestHoldEnds(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		lasts time.Duration
		does  func(h *leadership)
		want  bool
	}{
		"never by others' leases before it was won": {lasts: time.Hour, does: func(h *leadership) { h.lostToOther() }},
		"not while it is fresh":                     {lasts: time.Hour, does: func(h *leadership) { h.renewed(time.Now()) }},
		"when another is seen":                      {lasts: time.Hour, does: func(h *leadership) { h.renewed(time.Now()); h.lostToOther() }, want: true},
		"when it was not renewed":                   {lasts: time.Millisecond, does: func(h *leadership) { h.renewed(time.Now()); <-h.ended }, want: true},
		"counted from when a renewal was sent":      {lasts: time.Hour, does: func(h *leadership) { h.renewed(time.Now().Add(-2 * time.Hour)); <-h.ended }, want: true},
		"with the elector":                          {lasts: time.Hour, does: func(h *leadership) { h.end(); h.end() }, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHold(test.lasts)
			t.Cleanup(h.release)
			test.does(h)
			select {
			case <-h.ended:
				if !test.want {
					t.Error("it ended")
				}
			default:
				if test.want {
					t.Error("it did not end")
				}
			}
		})
	}
}

func TestConfigOfAnElection(t *testing.T) {
	t.Parallel()
	one, err := Config{Rest: &rest.Config{}}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	other, err := Config{Rest: &rest.Config{}}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if one.Identity == other.Identity {
		t.Errorf("two processes of one host are both called %q: both would take the Lease for theirs", one.Identity)
	}
	if _, err := (Config{Rest: &rest.Config{}, LeaseDuration: 12 * time.Second}).withDefaults(); err == nil || !strings.Contains(err.Error(), "LeaseDuration 12s is too short") {
		t.Errorf("a lease that leaves passes no time to end: got %v", err)
	}
}
