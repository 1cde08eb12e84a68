//go:build !without_vcenter

package vsphere

import (
	"cmp"
	"context"
	"path"
	"slices"

	"github.com/google/uuid"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
)

// The marks of a machine, in its extraConfig. They are part of the clone's specification, so a machine is never without them.
const (
	markOwner    = "vmgroup.vm.codeconnect.vmworld.com.uid"
	markSlot     = "vmgroup.vm.codeconnect.vmworld.com.machine"
	markTemplate = "vmgroup.vm.codeconnect.vmworld.com.template"
	markSource   = "vmgroup.vm.codeconnect.vmworld.com.source"
)

// instanceOf returns the instanceUuid of a new machine. When a user copies the machine, the vCenter gives the copy another one (vSphere Web
// Services API, VirtualMachineConfigInfo.instanceUuid).
func instanceOf(uid, slot string) string {
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte(markOwner+"/"+uid+"/"+slot)).String()
}

func (s openSession) look(ctx context.Context, group vcenter.Group) (vcenter.Inventory, error) {
	at, err := s.site(ctx, group.Place)
	if err != nil {
		return vcenter.Inventory{}, err
	}
	// It reads the tasks first: a task that ends after this is still reported as running, and the next look sees its result.
	found := vcenter.Inventory{Path: path.Join(at.parent.path, group.Folder), VCenter: s.client.ServiceContent.About.InstanceUuid}
	if err := s.settle(ctx); err != nil {
		return found, err
	}
	var worked []string
	found.Cloning, worked, found.Failures = s.underway(group)
	folder, err := s.folder(ctx, at, group.Folder)
	if isGone(err) {
		s.forgetSites()
	}
	if err != nil {
		return found, err
	}
	if folder == nil {
		found.Elsewhere, err = s.elsewhere(ctx, group)
		return found, err
	}
	found.Folder = folder.Value
	if found.Machines, found.Others, err = contents(ctx, s.client, *folder); err != nil {
		return found, err
	}
	ordered(found.Machines, group, worked)
	if group.DeletingMachines > 0 && len(found.Cloning) == 0 && !slices.ContainsFunc(found.Machines, func(one vcenter.Machine) bool { return isOf(group, one) }) {
		found.Elsewhere, err = s.elsewhere(ctx, group)
		return found, err
	}
	return found, s.respell(ctx, at, group, found.Machines)
}

// ordered marks the machines on which the group's tasks run.
func ordered(machines []vcenter.Machine, group vcenter.Group, worked []string) {
	for i, one := range machines {
		if one.Owner == group.UID && slices.Contains(worked, one.Slot) {
			machines[i].Busy, machines[i].Ordered = true, true
		}
	}
}

// folder returns the group's folder; nil if there is none.
func (s openSession) folder(ctx context.Context, at *site, name string) (*types.ManagedObjectReference, error) {
	child, err := object.NewSearchIndex(s.client).FindChild(ctx, at.parent.reference, name)
	if err != nil || child == nil {
		return nil, err
	}
	reference := child.Reference()
	if reference.Type != "Folder" {
		return nil, &vcenter.Error{Reason: vcenter.NoPlace, Message: path.Join(at.parent.path, name) + " has the name of the group's folder, and is not a folder: rename it"}
	}
	return &reference, nil
}

// isOf reports whether a machine has the group's mark, and is not a copy.
func isOf(group vcenter.Group, one vcenter.Machine) bool {
	return one.Owner == group.UID && (one.Original || one.Name == one.Slot)
}

// contents returns the machines and other objects in a folder.
func contents(ctx context.Context, client *vim25.Client, folder types.ManagedObjectReference) ([]vcenter.Machine, []string, error) {
	answer, err := property.DefaultCollector(client).RetrieveProperties(ctx, types.RetrieveProperties{SpecSet: []types.PropertyFilterSpec{contentsOf(folder)}})
	if err != nil {
		return nil, nil, err
	}
	var machines []mo.VirtualMachine
	var tasks []mo.Task
	others, running := []string{}, map[types.ManagedObjectReference]bool{}
	for _, content := range answer.Returnval {
		switch content.Obj.Type {
		case kindMachine:
			err = mo.LoadObjectContent([]types.ObjectContent{content}, &machines)
		case "Task":
			err = mo.LoadObjectContent([]types.ObjectContent{content}, &tasks)
		default:
			others = append(others, nameIn(content))
		}
		if err != nil {
			return nil, nil, err
		}
	}
	for _, task := range tasks {
		if task.Info.Entity != nil && isRunning(task.Info.State) {
			running[*task.Info.Entity] = true
		}
	}
	found := make([]vcenter.Machine, 0, len(machines))
	for i := range machines {
		found = append(found, machineOf(&machines[i], running[machines[i].Self]))
	}
	slices.SortFunc(found, func(a, b vcenter.Machine) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	slices.Sort(others)
	return found, others, nil
}

// contentsOf returns one request for the objects in a folder and for the tasks that run on the machines.
func contentsOf(folder types.ManagedObjectReference) types.PropertyFilterSpec {
	return types.PropertyFilterSpec{
		ObjectSet: []types.ObjectSpec{{Obj: folder, Skip: new(true), SelectSet: []types.BaseSelectionSpec{&types.TraversalSpec{
			Type: "Folder", Path: "childEntity", Skip: new(false),
			SelectSet: []types.BaseSelectionSpec{&types.TraversalSpec{Type: kindMachine, Path: "recentTask", Skip: new(false)}},
		}}}},
		PropSet: []types.PropertySpec{
			{Type: kindMachine, PathSet: []string{
				nameProperty, "config.hardware.numCPU", "config.hardware.memoryMB", "config.extraConfig", "config.instanceUuid", "config.cpuHotAddEnabled", "config.memoryHotAddEnabled",
				"runtime.powerState", "runtime.connectionState", "guest.toolsRunningStatus", "guest.guestStateChangeSupported",
			}},
			{Type: "Task", PathSet: []string{"info"}},
			{Type: "Folder", PathSet: []string{nameProperty}},
			{Type: "VirtualApp", PathSet: []string{nameProperty}},
		},
	}
}

func nameIn(content types.ObjectContent) string {
	for _, one := range content.PropSet {
		if name, is := one.Val.(string); is && one.Name == nameProperty {
			return name
		}
	}
	return content.Obj.Value
}

func isRunning(state types.TaskInfoState) bool {
	return state == types.TaskInfoStateRunning || state == types.TaskInfoStateQueued
}

// kindMachine is the vCenter's type of virtual machines.
const kindMachine = "VirtualMachine"

// nameProperty is the property with the name of any object.
const nameProperty = "name"

func machineOf(seen *mo.VirtualMachine, busy bool) vcenter.Machine {
	state := seen.Runtime.ConnectionState
	one := vcenter.Machine{ID: seen.Self.Value, Name: seen.Name, Busy: busy, Broken: brokenBy(state)}
	if seen.Config == nil || seen.Config.Hardware.NumCPU == 0 {
		// While the vCenter creates a machine, the machine has no configuration, or one without hardware. The same is true of a machine
		// that the vCenter has lost.
		one.ConfigUnreadable = one.Broken != "" || state == types.VirtualMachineConnectionStateDisconnected
		one.Creating = !one.ConfigUnreadable
		return one
	}
	one.CPU, one.MemoryMiB = seen.Config.Hardware.NumCPU, int64(seen.Config.Hardware.MemoryMB)
	one.GrowsCPU = seen.Config.CpuHotAddEnabled != nil && *seen.Config.CpuHotAddEnabled
	one.GrowsMemory = seen.Config.MemoryHotAddEnabled != nil && *seen.Config.MemoryHotAddEnabled
	one.Connected = state == types.VirtualMachineConnectionStateConnected
	one.Tools = seen.Guest != nil && seen.Guest.ToolsRunningStatus == string(types.VirtualMachineToolsRunningStatusGuestToolsRunning) &&
		(seen.Guest.GuestStateChangeSupported == nil || *seen.Guest.GuestStateChangeSupported)
	one.Power = powerOf(seen.Runtime.PowerState)
	readMarks(&one, seen.Config.ExtraConfig)
	one.Original = one.Owner != "" && seen.Config.InstanceUuid == instanceOf(one.Owner, one.Slot)
	return one
}

// brokenBy returns the word for a state in which the vCenter cannot use a machine until a user repairs it; empty for any other state. A
// disconnected host may come back without an action.
func brokenBy(state types.VirtualMachineConnectionState) string {
	switch state {
	case types.VirtualMachineConnectionStateInaccessible, types.VirtualMachineConnectionStateInvalid, types.VirtualMachineConnectionStateOrphaned:
		return string(state)
	case types.VirtualMachineConnectionStateConnected, types.VirtualMachineConnectionStateDisconnected:
	}
	return ""
}

func powerOf(state types.VirtualMachinePowerState) vcenter.Power {
	switch state {
	case types.VirtualMachinePowerStatePoweredOn:
		return vcenter.PowerOn
	case types.VirtualMachinePowerStateSuspended:
		return vcenter.PowerSuspended
	case types.VirtualMachinePowerStatePoweredOff:
	}
	return vcenter.PowerOff
}

func readMarks(one *vcenter.Machine, options []types.BaseOptionValue) {
	for _, option := range options {
		value, _ := option.GetOptionValue().Value.(string)
		switch option.GetOptionValue().Key {
		case markOwner:
			one.Owner = value
		case markSlot:
			one.Slot = value
		case markTemplate:
			one.Template = value
		case markSource:
			one.Source = value
		}
	}
}
