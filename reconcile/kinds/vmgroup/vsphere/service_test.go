//go:build !race && !without_vcenter

// The race detector finds a race of the vCenter simulator itself: two machines that are deleted at the same time share a datastore without
// a lock. So these tests run without it (make test-unit).

package vsphere

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
	"github.com/mysql-operator/mysql-operator/test/vcsim"
)

// clock is a clock that the test sets forward.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time              { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) forward(by time.Duration)    { c.ahead.Add(int64(by)) }
func groupOf(v *vcsim.VCenter) vcenter.Group { return groupNamed(v, "shop-web", "uid-1") }

func groupNamed(v *vcsim.VCenter, folder, uid string) vcenter.Group {
	account := vcenter.Account{Host: v.Host, User: vcsim.User, Password: vcsim.Password, Authorities: v.Authorities}
	return vcenter.Group{Account: account, Folder: folder, UID: uid, Template: vcsim.Template}
}

func clone(group vcenter.Group, name string) vcenter.Order {
	return vcenter.Order{Group: group, Verb: vcenter.Clone, Machine: name, CPU: 2, MemoryMiB: 1024}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refusal fails the test unless an error has this reason and these words, and returns it.
func refusal(t *testing.T, err error, reason vcenter.Reason, words string) vcenter.Error {
	t.Helper()
	var known *vcenter.Error
	if !errors.As(err, &known) || known.Reason != reason || !strings.Contains(known.Message, words) {
		t.Fatalf("error %v, want %s with %q", err, reason, words)
	}
	return *known
}

// wantReason fails the test unless an error has this reason and these words.
func wantReason(t *testing.T, err error, reason vcenter.Reason, words string) {
	t.Helper()
	_ = refusal(t, err, reason, words)
}

// until looks until satisfies returns true.
func until(t *testing.T, service *Service, group vcenter.Group, what string, satisfies func(vcenter.Inventory) bool) vcenter.Inventory {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		found, err := service.Look(ctx, group)
		if err == nil && satisfies(found) {
			return found
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waited for %s; there is %+v, error %v", what, found, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// rests reports whether a group has this many machines, and nothing is in progress.
func rests(machines int) func(vcenter.Inventory) bool {
	return func(found vcenter.Inventory) bool {
		for _, one := range found.Machines {
			if one.Busy || one.Creating {
				return false
			}
		}
		return len(found.Machines) == machines && len(found.Cloning) == 0
	}
}

// TestTheLifeOfAMachine sends every order for a machine, and checks the results.
func TestTheLifeOfAMachine(t *testing.T) {
	t.Parallel()
	v, watch := vcsim.New(t), &clock{}
	service, group := New(watch.now), groupOf(v)
	found, err := service.Look(t.Context(), group)
	must(t, err)
	if found.Folder != "" || found.Path != "/DC0/vm/shop-web" {
		t.Errorf("before there is anything: %+v", found)
	}
	must(t, service.Do(t.Context(), vcenter.Order{Group: group, Verb: vcenter.CreateFolder}))
	must(t, service.Do(t.Context(), vcenter.Order{Group: group, Verb: vcenter.CreateFolder}))
	must(t, service.Do(t.Context(), clone(group, "shop-web-0")))
	found, err = service.Look(t.Context(), group)
	must(t, err)
	if diff := cmp.Diff([]string{"shop-web-0"}, found.Cloning); diff != "" {
		t.Errorf("being made (-want +got):\n%s", diff)
	}
	wantReason(t, service.Do(t.Context(), clone(group, "shop-web-0")), vcenter.Moved, "busy")

	found = until(t, service, group, "the machine", rests(1))
	made := found.Machines[0]
	want := vcenter.Machine{ID: made.ID, Name: "shop-web-0", Owner: "uid-1", Slot: "shop-web-0", Original: true, Template: vcsim.Template, CPU: 2, MemoryMiB: 1024, Power: vcenter.PowerOff, Connected: true}
	want.GrowsCPU, want.GrowsMemory, want.Tools, want.Source = made.GrowsCPU, made.GrowsMemory, made.Tools, made.Source
	if diff := cmp.Diff(want, made); diff != "" {
		t.Errorf("made (-want +got):\n%s", diff)
	}
	order := func(verb vcenter.Verb) vcenter.Order {
		return vcenter.Order{Group: group, Verb: verb, Machine: made.Name, ID: made.ID, CPU: 4, MemoryMiB: 2048}
	}
	for _, step := range []struct {
		verb vcenter.Verb
		is   func(vcenter.Machine) bool
	}{
		{vcenter.Start, func(m vcenter.Machine) bool { return m.Power == vcenter.PowerOn }},
		{vcenter.Shutdown, func(m vcenter.Machine) bool { return m.Power == vcenter.PowerOff }},
		{vcenter.Start, func(m vcenter.Machine) bool { return m.Power == vcenter.PowerOn }},
		{vcenter.Stop, func(m vcenter.Machine) bool { return m.Power == vcenter.PowerOff }},
		{vcenter.Resize, func(m vcenter.Machine) bool { return m.CPU == 4 && m.MemoryMiB == 2048 }},
	} {
		must(t, service.Do(t.Context(), order(step.verb)))
		until(t, service, group, string(step.verb), func(found vcenter.Inventory) bool { return rests(1)(found) && step.is(found.Machines[0]) })
	}
	wantReason(t, service.Do(t.Context(), vcenter.Order{Group: group, Verb: vcenter.DeleteFolder}), vcenter.Moved, "not empty")
	must(t, service.Do(t.Context(), order(vcenter.Destroy)))
	until(t, service, group, "its end", rests(0))
	must(t, service.Do(t.Context(), vcenter.Order{Group: group, Verb: vcenter.DeleteFolder}))
	until(t, service, group, "the folder's end", func(found vcenter.Inventory) bool { return found.Folder == "" })
}

// TestACloneBegunTwiceIsMadeOnce: a second operator does not know the tasks of the first.
func TestACloneBegunTwiceIsMadeOnce(t *testing.T) {
	t.Parallel()
	v := vcsim.New(t)
	killed, next, group := New(time.Now), New(time.Now), groupOf(v)
	must(t, killed.Do(t.Context(), vcenter.Order{Group: group, Verb: vcenter.CreateFolder}))
	_, err := next.Look(t.Context(), group) // it logs in and finds the place first, because a clone does not take long
	must(t, err)
	must(t, killed.Do(t.Context(), clone(group, "shop-web-0")))
	// The machine is not visible yet, and its folder cannot be deleted either.
	wantReason(t, next.Do(t.Context(), vcenter.Order{Group: group, Verb: vcenter.DeleteFolder}), vcenter.Moved, "being cloned")
	must(t, next.Do(t.Context(), clone(group, "shop-web-0")))
	found := until(t, next, group, "one machine", rests(1))
	if len(found.Failures) > 0 && !strings.Contains(found.Failures[0].Message, "is already being created") {
		t.Errorf("failures: %+v", found.Failures)
	}
	machines, err := v.Machines(t.Context())
	if diff := cmp.Diff(map[string]string{"shop-web-0": "2 CPU, 1 GiB, off"}, machines); diff != "" || err != nil {
		t.Errorf("error %v, machines (-want +got):\n%s", err, diff)
	}
}

// TestNothingIsDoneToWhatIsNotTheGroups: an order with an ID changes only a machine with the group's mark, in its folder.
func TestNothingIsDoneToWhatIsNotTheGroups(t *testing.T) {
	t.Parallel()
	v := vcsim.New(t)
	service, group := New(time.Now), groupOf(v)
	must(t, service.Do(t.Context(), vcenter.Order{Group: group, Verb: vcenter.CreateFolder}))
	v.Clone(vcsim.Template, "shop-web", "shop-web-0")
	id := v.Find("shop-web/shop-web-0").Reference().Value
	template := v.Find(vcsim.Template).Reference().Value
	for _, order := range []vcenter.Order{
		{Group: group, Verb: vcenter.Destroy, Machine: "shop-web-0", ID: id},
		{Group: group, Verb: vcenter.Destroy, Machine: vcsim.Template, ID: template},
		{Group: group, Verb: vcenter.Stop, Machine: "shop-web-0", ID: id},
		{Group: group, Verb: vcenter.Resize, Machine: "shop-web-0", ID: id, CPU: 1, MemoryMiB: 1024},
		{Group: group, Verb: vcenter.Destroy, Machine: "shop-web-0", ID: "vm-0000"},
	} {
		wantReason(t, service.Do(t.Context(), order), vcenter.Moved, "")
	}
	if v.Calls("Destroy_Task")+v.Calls("PowerOffVM_Task")+v.Calls("ReconfigVM_Task") != 0 {
		t.Error("the vCenter was asked to do it")
	}
}

func TestWhatIsNotThere(t *testing.T) {
	t.Parallel()
	v := vcsim.New(t)
	service := New(time.Now)
	group := groupOf(v)
	must(t, service.Do(t.Context(), vcenter.Order{Group: group, Verb: vcenter.CreateFolder}))
	for story, test := range map[string]struct {
		change func(*vcenter.Order)
		reason vcenter.Reason
		words  string
	}{
		"no template":          {func(o *vcenter.Order) { o.Group.Template = "none" }, vcenter.NoTemplate, `spec.template: there is no virtual machine or template "none"`},
		"no path":              {func(o *vcenter.Order) { o.Group.Template = "a/none" }, vcenter.NoTemplate, "correct the path"},
		"no datacenter":        {func(o *vcenter.Order) { o.Group.Place.Datacenter = "DC9" }, vcenter.NoPlace, `spec.datacenter: there is no "DC9"`},
		"no folder":            {func(o *vcenter.Order) { o.Group.Place.Folder = "none" }, vcenter.NoPlace, `spec.folder: there is no "/DC0/vm/none"`},
		"no pool":              {func(o *vcenter.Order) { o.Group.Place.ResourcePool = "none" }, vcenter.NoPlace, "VC_POOL"},
		"no datastore":         {func(o *vcenter.Order) { o.Group.Place.Datastore = "none" }, vcenter.NoPlace, `spec.datastore: there is no "none"`},
		"a pool that is there": {func(o *vcenter.Order) { o.Group.Place.ResourcePool = "DC0_C0_RP0"; o.Group.Template = "none" }, vcenter.NoTemplate, "spec.template"},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			order := clone(group, "shop-web-0")
			test.change(&order)
			wantReason(t, service.Do(t.Context(), order), test.reason, test.words)
		})
	}
}

// TestTasksThatFail: they are reported, and the pauses grow.
func TestTasksThatFail(t *testing.T) {
	t.Parallel()
	v, watch := vcsim.New(t), &clock{}
	service, group := New(watch.now), groupOf(v)
	must(t, service.Do(t.Context(), vcenter.Order{Group: group, Verb: vcenter.CreateFolder}))
	v.Fail(func(method string) types.BaseMethodFault {
		if method == "CloneVM_Task" {
			return &types.InsufficientResourcesFault{}
		}
		return nil
	})
	wantReason(t, service.Do(t.Context(), clone(group, "shop-web-0")), vcenter.Failed, "InsufficientResourcesFault")
	found, err := service.Look(t.Context(), group)
	must(t, err)
	if len(found.Failures) != 1 || !found.Failures[0].InBackoff || found.Failures[0].Machine != "shop-web-0" {
		t.Fatalf("failures %+v", found.Failures)
	}
	wantReason(t, service.Do(t.Context(), clone(group, "shop-web-0")), vcenter.Moved, "not tried again yet")
	if count := v.Calls("CloneVM_Task"); count != 1 {
		t.Errorf("tried %d times", count)
	}
	v.Fail(nil)
	watch.forward(retryFirst + time.Second)
	must(t, service.Do(t.Context(), clone(group, "shop-web-0")))
	if found := until(t, service, group, "the machine", rests(1)); len(found.Failures) != 0 {
		t.Errorf("failures %+v", found.Failures)
	}
}

// TestFailuresPass: a failure is for one verb. The service forgets it if there was no retry for long, or if the machine is gone.
func TestFailuresPass(t *testing.T) {
	t.Parallel()
	v, watch := vcsim.New(t), &clock{}
	service, group := New(watch.now), groupOf(v)
	must(t, service.Do(t.Context(), vcenter.Order{Group: group, Verb: vcenter.CreateFolder}))
	must(t, service.Do(t.Context(), clone(group, "shop-web-0")))
	order := vcenter.Order{Group: group, Verb: vcenter.Start, Machine: "shop-web-0", ID: until(t, service, group, "the machine", rests(1)).Machines[0].ID}
	v.Fail(func(method string) types.BaseMethodFault {
		if method == "PowerOnVM_Task" || method == "CloneVM_Task" {
			return &types.InsufficientResourcesFault{}
		}
		return nil
	})
	wantReason(t, service.Do(t.Context(), order), vcenter.Failed, "")
	wantReason(t, service.Do(t.Context(), order), vcenter.Moved, "not tried again yet")
	order.Verb = vcenter.Destroy
	must(t, service.Do(t.Context(), order))
	until(t, service, group, "its end, and that of its failure", func(found vcenter.Inventory) bool { return rests(0)(found) && len(found.Failures) == 0 })
	wantReason(t, service.Do(t.Context(), clone(group, "shop-web-0")), vcenter.Failed, "")
	watch.forward(retryCap)
	if found, err := service.Look(t.Context(), group); err != nil || len(found.Failures) != 1 {
		t.Errorf("failures %+v, error %v", found.Failures, err)
	}
	watch.forward(time.Minute)
	_, err := service.Look(t.Context(), groupNamed(v, "other", "uid-2"))
	must(t, err)
	one, _, err := service.session(group.Account)
	must(t, err)
	if left := len(one.failed); left != 0 {
		t.Errorf("%d failures are kept indefinitely", left)
	}
}

// TestAGuestThatCannotBeAsked: the operator powers its machine off immediately.
func TestAGuestThatCannotBeAsked(t *testing.T) {
	t.Parallel()
	v := vcsim.New(t)
	service, group := New(time.Now), groupOf(v)
	must(t, service.Do(t.Context(), vcenter.Order{Group: group, Verb: vcenter.CreateFolder}))
	must(t, service.Do(t.Context(), clone(group, "shop-web-0")))
	order := vcenter.Order{Group: group, Machine: "shop-web-0", ID: until(t, service, group, "the machine", rests(1)).Machines[0].ID}
	is := func(power vcenter.Power) func(vcenter.Inventory) bool {
		return func(found vcenter.Inventory) bool { return rests(1)(found) && found.Machines[0].Power == power }
	}
	for _, why := range []types.BaseMethodFault{&types.ToolsUnavailable{}, &types.NotSupported{}} {
		order.Verb = vcenter.Start
		must(t, service.Do(t.Context(), order))
		until(t, service, group, "it to run", is(vcenter.PowerOn))
		v.Fail(func(method string) types.BaseMethodFault {
			if method == "ShutdownGuest" {
				return why
			}
			return nil
		})
		order.Verb = vcenter.Shutdown
		must(t, service.Do(t.Context(), order))
		until(t, service, group, "its end", is(vcenter.PowerOff))
	}
}

func TestAMissingPrivilegeIsNamed(t *testing.T) {
	t.Parallel()
	v := vcsim.New(t)
	service, group := New(time.Now), groupOf(v)
	v.Fail(func(method string) types.BaseMethodFault {
		if method == "CreateFolder" {
			return &types.NoPermission{PrivilegeId: "Folder.Create"}
		}
		return nil
	})
	wantReason(t, service.Do(t.Context(), vcenter.Order{Group: group, Verb: vcenter.CreateFolder}), vcenter.Forbidden, "Folder.Create")
}

// TestClonesAreBounded: one vCenter clones only a few machines at the same time, for all groups.
func TestClonesAreBounded(t *testing.T) {
	t.Parallel()
	v := vcsim.New(t)
	service, begun := New(time.Now), 0
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		group := groupNamed(v, name, name)
		must(t, service.Do(t.Context(), vcenter.Order{Group: group, Verb: vcenter.CreateFolder}))
		if err := service.Do(t.Context(), clone(group, name+"-0")); err == nil {
			begun++
		}
	}
	if begun > maxClones {
		t.Errorf("%d were started at the same time", begun)
	}
}
