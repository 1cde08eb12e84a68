//go:build !race

package vsphere

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/mysql-operator/mysql-operator/reconcile/vmgroup/vcenter"
	"github.com/mysql-operator/mysql-operator/test/vcsim"
)

// withMachine is a vCenter with the group's first machine, and its ID.
func withMachine(t *testing.T, service *Service) (*vcsim.VCenter, vcenter.Group, string) {
	t.Helper()
	v := vcsim.New(t)
	group := groupOf(v)
	must(t, service.Do(t.Context(), vcenter.Order{Group: group, Verb: vcenter.CreateFolder}))
	must(t, service.Do(t.Context(), clone(group, "shop-web-0")))
	return v, group, until(t, service, group, "the machine", rests(1)).Machines[0].ID
}

// TestAMachineThatTheVCenterHasLost is not taken for one that is being made, and nothing is done to it.
func TestAMachineThatTheVCenterHasLost(t *testing.T) {
	t.Parallel()
	for state, test := range map[types.VirtualMachineConnectionState]struct {
		configuration bool
		want          vcenter.Machine
	}{
		types.VirtualMachineConnectionStateInaccessible: {false, vcenter.Machine{Unread: true, Broken: "inaccessible"}},
		types.VirtualMachineConnectionStateInvalid:      {false, vcenter.Machine{Unread: true, Broken: "invalid"}},
		types.VirtualMachineConnectionStateOrphaned:     {true, vcenter.Machine{Owner: "uid-1", Slot: "shop-web-0", Broken: "orphaned"}},
		types.VirtualMachineConnectionStateDisconnected: {false, vcenter.Machine{Unread: true}},
		types.VirtualMachineConnectionStateConnected:    {false, vcenter.Machine{Making: true}},
	} {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			service := New(time.Now)
			v, group, id := withMachine(t, service)
			v.Lose("shop-web/shop-web-0", state, test.configuration)
			found, err := service.Look(t.Context(), group)
			must(t, err)
			one := found.Machines[0]
			got := vcenter.Machine{Owner: one.Owner, Slot: one.Slot, Making: one.Making, Unread: one.Unread, Broken: one.Broken, Connected: one.Connected}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !test.configuration {
				wantReason(t, service.Do(t.Context(), vcenter.Order{Group: group, Verb: vcenter.Destroy, Machine: "shop-web-0", ID: id}), vcenter.Moved, "")
			}
		})
	}
}
