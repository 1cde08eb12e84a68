package vmgroup

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
)

// scripted is a vCenter that answers orders as a test says, and records their machines.
type scripted struct {
	answer func(order vcenter.Order) error
	asked  []string
}

// Look is vcenter.API's.
func (s *scripted) Look(context.Context, vcenter.Group) (vcenter.Inventory, error) {
	return vcenter.Inventory{}, errors.New("no test looks here")
}

// Do is vcenter.API's.
func (s *scripted) Do(_ context.Context, order vcenter.Order) error {
	s.asked = append(s.asked, order.Machine)
	return s.answer(order)
}

func refused(reason vcenter.Reason) error { return &vcenter.Error{Reason: reason, Message: "no"} }

// TestOrdersThatAreRefused: an error about one machine does not stop the other orders; an error about the vCenter ends the pass; a slow
// pass leaves the rest to the next.
func TestOrdersThatAreRefused(t *testing.T) {
	t.Parallel()
	steps := []step{{verb: vcenter.Shutdown, machine: "a", id: "1"}, {verb: vcenter.Clone, machine: "b"}, {verb: vcenter.Start, machine: "c", id: "3"}}
	for story, test := range map[string]struct {
		of       map[string]error
		takes    time.Duration
		asked    []string
		reason   vcenter.Reason
		events   []string
		stopping []string
	}{
		"all are taken":                       {nil, 0, []string{"a", "b", "c"}, "", []string{"Normal Shutdown", "Normal Clone", "Normal PowerOn"}, []string{"1"}},
		"a guest refuses, which counts":       {map[string]error{"a": refused(vcenter.Failed)}, 0, []string{"a", "b", "c"}, vcenter.Failed, []string{"Normal Clone", "Normal PowerOn"}, []string{"1"}},
		"a guest may not be asked":            {map[string]error{"a": refused(vcenter.Forbidden)}, 0, []string{"a", "b", "c"}, vcenter.Forbidden, []string{"Normal Clone", "Normal PowerOn"}, []string{"1"}},
		"the template is not there":           {map[string]error{"a": refused(vcenter.NoTemplate), "b": refused(vcenter.NoTemplate)}, 0, []string{"a", "b", "c"}, vcenter.NoTemplate, []string{"Normal PowerOn"}, nil},
		"things have moved":                   {map[string]error{"a": refused(vcenter.Moved)}, 0, []string{"a", "b", "c"}, "", []string{"Normal Clone", "Normal PowerOn"}, nil},
		"the first of two errors is returned": {map[string]error{"b": refused(vcenter.NoPlace), "c": refused(vcenter.Failed)}, 0, []string{"a", "b", "c"}, vcenter.NoPlace, []string{"Normal Shutdown"}, []string{"1"}},
		"the vCenter goes away":               {map[string]error{"b": refused(vcenter.Unreachable)}, 0, []string{"a", "b"}, vcenter.Unreachable, []string{"Normal Shutdown"}, []string{"1"}},
		"a machine is refused, and then all":  {map[string]error{"a": refused(vcenter.Failed), "b": refused(vcenter.LoginRefused)}, 0, []string{"a", "b"}, vcenter.LoginRefused, nil, []string{"1"}},
		"the vCenter is slow":                 {nil, 20 * time.Second, []string{"a", "b"}, "", []string{"Normal Shutdown", "Normal Clone"}, []string{"1"}},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			now := noon
			api := &scripted{answer: func(order vcenter.Order) error {
				now = now.Add(test.takes)
				return test.of[order.Machine]
			}}
			r := &reconciler{settings: Settings{VCenter: api}, now: func() time.Time { return now }, stopping: map[types.NamespacedName]map[string]time.Time{}}
			events, err := r.act(t.Context(), passContext{group: web(), begun: noon}, steps)
			var known *vcenter.Error
			if errors.As(err, &known) != (test.reason != "") || known != nil && known.Reason != test.reason {
				t.Errorf("error %v, want %s", err, test.reason)
			}
			if diff := cmp.Diff(test.asked, api.asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(append([]string{}, test.events...), told(events)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if got := r.stoppingOf(keyOf(web())); len(got) != len(test.stopping) {
				t.Errorf("shutting down are %v, want %v", got, test.stopping)
			}
		})
	}
}

// TestWhoIsAskedToShutDownIsForgotten: when a shutdown is no longer wanted, the operator forgets its time. Asked again later, the guest has
// its whole time again.
func TestWhoIsAskedToShutDownIsForgotten(t *testing.T) {
	t.Parallel()
	r := &reconciler{now: func() time.Time { return noon }, stopping: map[types.NamespacedName]map[string]time.Time{}}
	fewer, key := web(), keyOf(web())
	fewer.Spec.Replicas = 2
	seen := folder(machine(0), machine(1), machine(2, tools))
	r.noteStopping(key, "vm-2")
	pass := func(group, want int) {
		t.Helper()
		one := web()
		if group == 2 {
			one = fewer
		}
		r.stopsOnly(key, decide(one, observed{now: noon, inventory: seen, stopping: r.stoppingOf(key)}).mustStop)
		if got := len(r.stoppingOf(key)); got != want {
			t.Errorf("with %d replicas %d are shutting down, want %d", group, got, want)
		}
	}
	pass(2, 1)
	pass(3, 0)
}

// TestWhatTakesDownIsNotDoneForAnOldSpec: before these orders the operator reads the group again.
func TestWhatTakesDownIsNotDoneForAnOldSpec(t *testing.T) {
	t.Parallel()
	for verb, want := range map[vcenter.Verb]bool{
		vcenter.CreateFolder: false, vcenter.Clone: false, vcenter.Start: false, vcenter.Grow: false,
		vcenter.Shutdown: true, vcenter.Stop: true, vcenter.Resize: true, vcenter.Destroy: true, vcenter.DeleteFolder: true,
	} {
		if got := takesDown([]step{{verb: vcenter.Start}, {verb: verb}}); got != want {
			t.Errorf("%s takes down: %v, want %v", verb, got, want)
		}
	}
	if takesDown(nil) {
		t.Error("nothing takes nothing down")
	}
}
