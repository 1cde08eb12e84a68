//go:build !race && !without_vcenter

package vsphere

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
	"github.com/mysql-operator/mysql-operator/test/vcsim"
)

// withMachine returns a vCenter with the group's first machine, and its ID.
func withMachine(t *testing.T, service *Service) (*vcsim.VCenter, vcenter.Group, string) {
	t.Helper()
	v := vcsim.New(t)
	group := groupOf(v)
	must(t, service.Do(t.Context(), vcenter.Order{Group: group, Verb: vcenter.CreateFolder}))
	must(t, service.Do(t.Context(), clone(group, "shop-web-0")))
	return v, group, until(t, service, group, "the machine", rests(1)).Machines[0].ID
}

// TestAMachineThatTheVCenterHasLost: it is not reported as being created, and no order changes it.
func TestAMachineThatTheVCenterHasLost(t *testing.T) {
	t.Parallel()
	for state, test := range map[types.VirtualMachineConnectionState]struct {
		configuration bool
		want          vcenter.Machine
	}{
		types.VirtualMachineConnectionStateInaccessible: {false, vcenter.Machine{ConfigUnreadable: true, Broken: "inaccessible"}},
		types.VirtualMachineConnectionStateInvalid:      {false, vcenter.Machine{ConfigUnreadable: true, Broken: "invalid"}},
		types.VirtualMachineConnectionStateOrphaned:     {true, vcenter.Machine{Owner: "uid-1", Slot: "shop-web-0", Broken: "orphaned"}},
		types.VirtualMachineConnectionStateDisconnected: {false, vcenter.Machine{ConfigUnreadable: true}},
		types.VirtualMachineConnectionStateConnected:    {false, vcenter.Machine{Creating: true}},
	} {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			service := New(time.Now)
			v, group, id := withMachine(t, service)
			v.Lose("shop-web/shop-web-0", state, test.configuration)
			found, err := service.Look(t.Context(), group)
			must(t, err)
			one := found.Machines[0]
			got := vcenter.Machine{Owner: one.Owner, Slot: one.Slot, Creating: one.Creating, ConfigUnreadable: one.ConfigUnreadable, Broken: one.Broken, Connected: one.Connected}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !test.configuration {
				wantReason(t, service.Do(t.Context(), vcenter.Order{Group: group, Verb: vcenter.Destroy, Machine: "shop-web-0", ID: id}), vcenter.Moved, "")
			}
		})
	}
}

// TestAMachineThatWasMoved: it is not created a second time, and its group is not released without it.
func TestAMachineThatWasMoved(t *testing.T) {
	t.Parallel()
	watch := &clock{}
	service := New(watch.now)
	v, group, _ := withMachine(t, service)
	v.Folder("theirs")
	v.Move("shop-web/shop-web-0", "theirs")
	wantReason(t, service.Do(t.Context(), clone(group, "shop-web-0")), vcenter.MachineMoved, "/DC0/vm/theirs/shop-web-0")
	found, err := service.Look(t.Context(), group)
	must(t, err)
	if len(found.Failures) != 1 || found.Failures[0].Reason != vcenter.MachineMoved || !found.Failures[0].InBackoff || found.Elsewhere != "" {
		t.Errorf("found %+v", found)
	}
	for range 10 {
		watch.forward(retryAway + time.Second)
		wantReason(t, service.Do(t.Context(), clone(group, "shop-web-0")), vcenter.MachineMoved, "move it back into folder /DC0/vm/shop-web")
	}
	if count := v.Calls("CloneVM_Task"); count != 1 {
		t.Errorf("%d clones, want the first only", count)
	}

	group.DeletingMachines = 2
	found, err = service.Look(t.Context(), group)
	must(t, err)
	if found.Folder == "" || found.Elsewhere != "/DC0/vm/theirs/shop-web-0" {
		t.Errorf("while the group is being deleted: %+v", found)
	}
	v.Move("theirs/shop-web-0", "shop-web")
	found, err = service.Look(t.Context(), group)
	must(t, err)
	if found.Elsewhere != "" || len(found.Machines) != 1 {
		t.Errorf("back in its folder: %+v", found)
	}
	v.Destroy("shop-web/shop-web-0")
	found, err = service.Look(t.Context(), group)
	must(t, err)
	if found.Elsewhere != "" {
		t.Errorf("it is deleted, but reported at %s", found.Elsewhere)
	}

	asked := v.Calls("FindByUuid")
	for range 3 {
		_, err = service.Look(t.Context(), group)
		must(t, err)
	}
	if again := v.Calls("FindByUuid") - asked; again != 0 {
		t.Errorf("there were %d more searches for machines that do not exist", again)
	}
	watch.forward(searchLife)
	_, err = service.Look(t.Context(), group)
	must(t, err)
	if again := v.Calls("FindByUuid") - asked; again != 2 {
		t.Errorf("after a while there were %d more searches for both", again)
	}
}

// TestASizeThatIsDisturbed: another task ran on the machine at that moment. That is not a failure of the size.
func TestASizeThatIsDisturbed(t *testing.T) {
	t.Parallel()
	watch := &clock{}
	service := New(watch.now)
	v, group, id := withMachine(t, service)
	for _, busy := range []types.BaseMethodFault{&types.TaskInProgress{}, &types.ConcurrentAccess{}} {
		v.Fail(func(method string) types.BaseMethodFault {
			if method == "ReconfigVM_Task" {
				return busy
			}
			return nil
		})
		order := vcenter.Order{Group: group, Verb: vcenter.Resize, Machine: "shop-web-0", ID: id, CPU: 4, MemoryMiB: 1024}
		wantReason(t, service.Do(t.Context(), order), vcenter.Moved, "another task is running on it")
		found, err := service.Look(t.Context(), group)
		must(t, err)
		if len(found.Failures) != 1 || found.Failures[0].Reason != vcenter.Moved || !found.Failures[0].InBackoff {
			t.Errorf("found %+v", found.Failures)
		}
		watch.forward(3 * retryFirst)
	}
	v.Fail(nil)
	must(t, service.Do(t.Context(), vcenter.Order{Group: group, Verb: vcenter.Resize, Machine: "shop-web-0", ID: id, CPU: 4, MemoryMiB: 1024}))
}

// TestAMachineThatIsThereIsNotMade: a machine that exists is not created again, whatever its name is now.
func TestAMachineThatIsThereIsNotMade(t *testing.T) {
	t.Parallel()
	service := New(time.Now)
	v, group, _ := withMachine(t, service)
	wantReason(t, service.Do(t.Context(), clone(group, "shop-web-0")), vcenter.Moved, "is in the group's folder already")
	if count := v.Calls("CloneVM_Task"); count != 1 {
		t.Errorf("%d clones, want the first only", count)
	}
}

// TestASizeThatIsRefused: it is not retried soon, also when the machine runs again. Another size is tried.
func TestASizeThatIsRefused(t *testing.T) {
	t.Parallel()
	service := New(time.Now)
	v, group, id := withMachine(t, service)
	v.Fail(func(method string) types.BaseMethodFault {
		if method == "ReconfigVM_Task" {
			return &types.InsufficientResourcesFault{}
		}
		return nil
	})
	order := func(verb vcenter.Verb, cpu int32) error {
		return service.Do(t.Context(), vcenter.Order{Group: group, Verb: verb, Machine: "shop-web-0", ID: id, CPU: cpu, MemoryMiB: 1024})
	}
	wantReason(t, order(vcenter.Grow, 4), vcenter.Failed, "InsufficientResourcesFault")
	wantReason(t, order(vcenter.Resize, 4), vcenter.Failed, "InsufficientResourcesFault")
	must(t, order(vcenter.Start, 4))
	found := until(t, service, group, "it to run", func(found vcenter.Inventory) bool {
		return rests(1)(found) && found.Machines[0].Power == vcenter.PowerOn
	})
	kept := []vcenter.Failure{}
	for _, one := range found.Failures {
		one.Message = ""
		kept = append(kept, one)
	}
	want := []vcenter.Failure{
		{Machine: "shop-web-0", Verb: vcenter.Grow, CPU: 4, MemoryMiB: 1024, Reason: vcenter.Failed, InBackoff: true, Times: 1},
		{Machine: "shop-web-0", Verb: vcenter.Resize, CPU: 4, MemoryMiB: 1024, Reason: vcenter.Failed, InBackoff: true, Times: 1},
	}
	if diff := cmp.Diff(want, kept); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
	wantReason(t, order(vcenter.Resize, 4), vcenter.Moved, "not tried again yet")
	wantReason(t, order(vcenter.Resize, 3), vcenter.Failed, "InsufficientResourcesFault")
	v.Fail(nil)
	must(t, order(vcenter.Resize, 1))
	until(t, service, group, "the end of its failures", func(found vcenter.Inventory) bool { return rests(1)(found) && len(found.Failures) == 0 })
}
