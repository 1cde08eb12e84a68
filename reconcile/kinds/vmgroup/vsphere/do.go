//go:build !without_vcenter

package vsphere

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/vmware/govmomi/fault"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
)

func (s openSession) do(ctx context.Context, order vcenter.Order) error {
	at, err := s.site(ctx, order.Group.Place)
	if err != nil {
		return err
	}
	switch order.Verb {
	case vcenter.CreateFolder:
		return s.begin(order, func() (*object.Task, error) { return nil, s.createFolder(ctx, at, order) })
	case vcenter.DeleteFolder:
		return s.begin(order, func() (*object.Task, error) { return s.deleteFolder(ctx, at, order) })
	case vcenter.Clone:
		return s.begin(order, func() (*object.Task, error) { return s.clone(ctx, at, order) })
	case vcenter.Start, vcenter.Shutdown, vcenter.Stop, vcenter.Resize, vcenter.Grow, vcenter.Destroy:
		now, err := s.checkOwnership(ctx, at, order)
		if err == nil && order.Replaces {
			err = s.replaceable(ctx, at, order, now)
		}
		if err != nil {
			return err
		}
	}
	machine := object.NewVirtualMachine(s.client, types.ManagedObjectReference{Type: kindMachine, Value: order.ID})
	if order.Verb == vcenter.Shutdown {
		err := machine.ShutdownGuest(ctx)
		if !fault.Is(err, &types.ToolsUnavailable{}) && !fault.Is(err, &types.NotSupported{}) {
			return err
		}
		order.Verb = vcenter.Stop // this guest can never be asked
	}
	return s.begin(order, func() (*object.Task, error) { return change(ctx, machine, order) })
}

// createFolder creates the group's folder. If another client was faster, the next look shows the folder, unless the account may not see it.
func (s openSession) createFolder(ctx context.Context, at *site, order vcenter.Order) error {
	_, err := s.parent(at).CreateFolder(ctx, order.Group.Folder)
	if fault.Is(err, &types.DuplicateName{}) {
		there, err := s.folder(ctx, at, order.Group.Folder)
		if err == nil && there == nil {
			return &vcenter.Error{Reason: vcenter.Forbidden, Message: fmt.Sprintf("folder %s exists, and %s cannot see it: propagate its permissions on %s to children", path.Join(at.parent.path, order.Group.Folder), s.account.User, at.parent.path)}
		}
		return err
	}
	if isGone(err) {
		s.forgetSites()
	}
	return err
}

// change starts a task on an existing machine.
func change(ctx context.Context, machine *object.VirtualMachine, order vcenter.Order) (*object.Task, error) {
	if order.Verb == vcenter.Start {
		return machine.PowerOn(ctx)
	}
	if order.Verb == vcenter.Stop {
		return machine.PowerOff(ctx)
	}
	if order.Verb == vcenter.Resize || order.Verb == vcenter.Grow {
		return machine.Reconfigure(ctx, types.VirtualMachineConfigSpec{NumCPUs: order.CPU, MemoryMB: order.MemoryMiB})
	}
	return machine.Destroy(ctx)
}

// begin starts a task for a machine or the group's folder, and records it; start returns nil for a task that is already over. If the
// vCenter refuses, begin records a failure of that machine, which pauses before a retry.
func (s openSession) begin(order vcenter.Order, start func() (*object.Task, error)) error {
	about, one := taskTarget{order.Group.UID, order.Machine}, runningTask{attempt: attemptOf(order)}
	if err := s.busy(about, one.attempt); err != nil {
		return err
	}
	started, err := start()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		if isRefusal(err) {
			s.note(about, one.attempt, err)
		}
		return err
	}
	if started == nil {
		s.forgetFailures(about, order.Verb)
		return nil
	}
	one.reference = started.Reference()
	s.tasks[about] = one
	return nil
}

// isRefusal reports whether an error is a refusal of one order, which must then pause.
func isRefusal(err error) bool {
	if known, is := errors.AsType[*vcenter.Error](err); is {
		return known.Reason == vcenter.MachineMoved || known.Reason == vcenter.Forbidden
	}
	return isSOAP(err) && !fault.Is(err, &types.NotAuthenticated{}) && !isGone(err)
}

// clone starts to create a machine. Its name is fixed, and a folder has no two machines of one name: if two operators start the clone, the
// vCenter creates one machine. clone does not create a machine again that a user has moved out of the folder.
func (s openSession) clone(ctx context.Context, at *site, order vcenter.Order) (*object.Task, error) {
	folder, err := s.folder(ctx, at, order.Group.Folder)
	if err != nil {
		return nil, err
	}
	if folder == nil {
		return nil, &vcenter.Error{Reason: vcenter.Moved, Message: "the group's folder is gone"}
	}
	if err := s.checkNotCreated(ctx, path.Join(at.parent.path, order.Group.Folder), order); err != nil {
		return nil, err
	}
	from, err := s.source(ctx, at, order)
	if err != nil {
		return nil, err
	}
	return from.template.Clone(ctx, object.NewFolder(s.client, *folder), order.Machine, types.VirtualMachineCloneSpec{
		Location: types.VirtualMachineRelocateSpec{Pool: &from.pool, Datastore: from.datastore},
		Config: &types.VirtualMachineConfigSpec{
			NumCPUs: order.CPU, MemoryMB: order.MemoryMiB, InstanceUuid: instanceOf(order.Group.UID, order.Machine),
			ExtraConfig: []types.BaseOptionValue{
				&types.OptionValue{Key: markOwner, Value: order.Group.UID},
				&types.OptionValue{Key: markSlot, Value: order.Machine},
				&types.OptionValue{Key: markTemplate, Value: order.Group.Template},
				&types.OptionValue{Key: markSource, Value: from.identity},
			},
		},
	})
}

// checkNotCreated checks that a machine does not exist yet.
func (s openSession) checkNotCreated(ctx context.Context, folder string, order vcenter.Order) error {
	there, err := s.search(ctx, order.Group.UID, order.Machine)
	switch {
	case err != nil || there == "":
		return err
	case path.Dir(there) == folder:
		return &vcenter.Error{Reason: vcenter.Moved, Message: order.Machine + " is in the group's folder already, as " + path.Base(there)}
	}
	return &vcenter.Error{Reason: vcenter.MachineMoved, Message: fmt.Sprintf("%s is at %s, so the operator does not create it again: move it back into folder %s, or delete it", order.Machine, there, folder)}
}

// checkOwnership checks that a machine is still the group's, and in its folder, before an order changes it.
func (s openSession) checkOwnership(ctx context.Context, at *site, order vcenter.Order) (vcenter.Machine, error) {
	moved := &vcenter.Error{Reason: vcenter.Moved, Message: order.Machine + " has changed since the operator observed it"}
	folder, err := s.folder(ctx, at, order.Group.Folder)
	if err != nil {
		return vcenter.Machine{}, err
	}
	var seen mo.VirtualMachine
	reference := types.ManagedObjectReference{Type: kindMachine, Value: order.ID}
	if err := property.DefaultCollector(s.client).RetrieveOne(ctx, reference, []string{"parent", nameProperty, "config.instanceUuid", "config.extraConfig", "config.hardware.numCPU"}, &seen); err != nil {
		return vcenter.Machine{}, err
	}
	now := machineOf(&seen, false)
	if folder == nil || seen.Parent == nil || *seen.Parent != *folder || now.Owner != order.Group.UID || now.Slot != order.Machine || now.Name != now.Slot && !now.Original {
		return now, moved
	}
	return now, nil
}

// replaceable checks that another machine can be cloned from the group's template, before an order stops or deletes the one to replace.
func (s openSession) replaceable(ctx context.Context, at *site, order vcenter.Order, now vcenter.Machine) error {
	from, err := s.source(ctx, at, order)
	if err == nil && now.Source == from.identity {
		return &vcenter.Error{Reason: vcenter.Moved, Message: order.Machine + " was cloned from this very template"}
	}
	return err
}

// deleteFolder deletes the group's folder. Deleting a folder deletes everything in it, so it must be empty. A clone that a killed operator
// started may still be on its way into it: while the template is being cloned, deleteFolder waits.
func (s openSession) deleteFolder(ctx context.Context, at *site, order vcenter.Order) (*object.Task, error) {
	folder, err := s.folder(ctx, at, order.Group.Folder)
	if err != nil || folder == nil {
		return nil, err
	}
	if from, err := s.template(ctx, at, order.Group.Template); err == nil {
		var seen mo.VirtualMachine
		collector := property.DefaultCollector(s.client)
		if err := collector.RetrieveOne(ctx, from.Reference(), []string{"recentTask"}, &seen); err != nil {
			return nil, err
		}
		var tasks []mo.Task
		if len(seen.RecentTask) > 0 {
			if err := collector.Retrieve(ctx, seen.RecentTask, []string{"info.state"}, &tasks); err != nil {
				return nil, err
			}
		}
		for _, one := range tasks {
			if isRunning(one.Info.State) {
				return nil, &vcenter.Error{Reason: vcenter.Moved, Message: "the template may still be being cloned"}
			}
		}
	}
	machines, others, err := contents(ctx, s.client, *folder)
	if err != nil {
		return nil, err
	}
	if len(machines)+len(others) > 0 {
		return nil, &vcenter.Error{Reason: vcenter.Moved, Message: "the group's folder is not empty"}
	}
	return object.NewFolder(s.client, *folder).Destroy(ctx)
}
