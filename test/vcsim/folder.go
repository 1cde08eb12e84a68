//go:build !without_vcenter

package vcsim

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// lasting is a folder whose deletion the vCenter begins, and cannot end.
type lasting struct {
	*simulator.Folder
}

// DestroyTask begins a task that fails.
func (l *lasting) DestroyTask(ctx *simulator.Context, _ *types.Destroy_Task) soap.HasFault {
	failing := simulator.CreateTask(l.Folder, "destroy", func(*simulator.Task) (types.AnyType, types.BaseMethodFault) {
		return nil, &types.ResourceInUse{}
	})
	return &methods.Destroy_TaskBody{Res: &types.Destroy_TaskResponse{Returnval: failing.Run(ctx)}}
}

// KeepFolder has the tasks fail that delete a folder below the folder of machines.
func (v *VCenter) KeepFolder(name string) {
	v.t.Helper()
	folder, err := v.finder().Folder(v.t.Context(), "/DC0/vm/"+name)
	if err != nil {
		v.t.Fatal(err)
	}
	registered, is := v.inside.Map.Get(folder.Reference()).(*simulator.Folder)
	if !is {
		v.t.Fatal(name + " is not the simulator's")
	}
	v.inside.Map.Put(&lasting{registered})
}

// RenameDatacenter renames the datacenter.
func (v *VCenter) RenameDatacenter(to string) {
	v.t.Helper()
	datacenter, err := v.finder().DefaultDatacenter(v.t.Context())
	if err != nil {
		v.t.Fatal(err)
	}
	v.done(datacenter.Rename(v.t.Context(), to))
}
