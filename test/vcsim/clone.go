//go:build !without_vcenter

package vcsim

import (
	"slices"
	"sync"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// cloner is a machine that clones as a vCenter does. The simulator takes no notice of what a clone is to have other than its template
// (VirtualMachineCloneSpec.config): here it has the CPUs, the memory, the instanceUuid and the extraConfig asked for.
type cloner struct {
	*simulator.VirtualMachine
	extra *extras
}

// CloneVMTask clones a copy of the machine that has what the clone is to have.
func (c *cloner) CloneVMTask(ctx *simulator.Context, req *types.CloneVM_Task) soap.HasFault {
	source, config := *c.VirtualMachine, *c.Config
	source.Config = &config
	if wanted := req.Spec.Config; wanted != nil {
		if wanted.NumCPUs > 0 {
			config.Hardware.NumCPU = wanted.NumCPUs
		}
		if wanted.MemoryMB > 0 {
			config.Hardware.MemoryMB = int32(wanted.MemoryMB)
		}
		c.extra.expect(req.Name, *wanted)
	}
	answer := source.CloneVMTask(ctx, req)
	if body, is := answer.(*methods.CloneVM_TaskBody); is && body.Res != nil {
		if task, is := ctx.Map.Get(body.Res.Returnval).(*simulator.Task); is {
			c.extra.begun(task)
		}
	}
	return answer
}

// extras gives machines their instanceUuid and extraConfig at the end of their making.
type extras struct {
	mu      sync.Mutex
	waiting map[string]types.VirtualMachineConfigSpec
	tasks   []*simulator.Task
}

func (e *extras) begun(task *simulator.Task) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tasks = append(e.tasks, task)
}

// finish waits until the clones that have begun are at their end. A vCenter deletes no machine before; the simulator would, and panic.
func (e *extras) finish() {
	e.mu.Lock()
	tasks := slices.Clone(e.tasks)
	e.mu.Unlock()
	for _, one := range tasks {
		one.Wait()
	}
}

func newExtras() *extras { return &extras{waiting: map[string]types.VirtualMachineConfigSpec{}} }

func (e *extras) expect(name string, wanted types.VirtualMachineConfigSpec) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting[name] = wanted
}

// Reference is what the simulator's registry knows it by.
func (e *extras) Reference() types.ManagedObjectReference {
	return types.ManagedObjectReference{Type: "Extras", Value: "extras"}
}

// UpdateObject is called when an object changes. A machine gets its name last.
func (e *extras) UpdateObject(_ *simulator.Context, made mo.Reference, changes []types.PropertyChange) {
	machine, is := made.(*mo.VirtualMachine)
	if !is || machine.Config == nil || len(changes) == 0 || changes[0].Name != "name" {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	wanted := e.waiting[machine.Name]
	machine.Config.ExtraConfig = append(machine.Config.ExtraConfig, wanted.ExtraConfig...)
	if wanted.InstanceUuid != "" {
		machine.Config.InstanceUuid = wanted.InstanceUuid
	}
	delete(e.waiting, machine.Name)
}

// PutObject and RemoveObject are of no interest.
func (e *extras) PutObject(*simulator.Context, mo.Reference) {}

// RemoveObject is of no interest either.
func (e *extras) RemoveObject(*simulator.Context, types.ManagedObjectReference) {}
