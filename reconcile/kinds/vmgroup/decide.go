package vmgroup

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
	"github.com/mysql-operator/mysql-operator/schema/vmgroup/v1alpha1"
)

const (
	// grace is how long a guest may take to shut down before the operator powers its machine off.
	grace = 2 * time.Minute
	// clonesAtOnce is how many machines of one group are cloned at the same time.
	clonesAtOnce = 4
	// stepsAtOnce is how many orders one pass sends.
	stepsAtOnce = 16
)

// look is what a pass observed.
type look struct {
	now time.Time
	// host is the vCenter that was asked.
	host      string
	inventory vcenter.Inventory
	// stopping has the time since when a machine, by its ID, has been shutting down.
	stopping map[string]time.Time
	// ending is how long this operator has known that the group is being deleted.
	ending time.Duration
}

// step is one order.
type step struct {
	verb        vcenter.Verb
	machine, id string
	// replaces reports whether another machine, of another template, replaces this one.
	replaces bool
}

// plan is what a pass does.
type plan struct {
	steps []step
	// waits lists what the group waits for; the status reports the first.
	waits []string
	// problem is what prevents the group from matching its spec; nil for none.
	problem *problem
	// halting has the IDs of the machines that run and must stop.
	halting []string
	// running is the number of machines that are powered on.
	running int32
	// release reports whether a group that is being deleted may go. left describes what stays in the vCenter; empty for nothing.
	release bool
	left    string
}

// settled reports whether everything is as the spec says.
func (p plan) settled() bool { return len(p.steps) == 0 && len(p.waits) == 0 && p.problem == nil }

// astray reports whether the account leads to another place than the group's machines.
func (p plan) astray() bool { return p.problem != nil && p.problem.reason == reasonVCenterChanged }

// deciding builds a plan.
type deciding struct {
	plan
	group  v1alpha1.VmGroup
	folder string
	seen   look
	sorted sorted
	// outdated has the machines that run and differ from the spec: the operator changes them one at a time.
	outdated []vcenter.Machine
	// disturbed is a machine that is as the spec says, while the vCenter runs a task on it.
	disturbed string
	// replaced is the ID of the machine that one of another template replaces.
	replaced string
}

func begin(group v1alpha1.VmGroup, seen look) *deciding {
	folder := folderName(group.Namespace, group.Name)
	d := &deciding{group: group, folder: folder, seen: seen, sorted: sort(folder, string(group.UID), seen.inventory)}
	d.running = d.sorted.running
	return d
}

// decide decides what a group needs next. Machines are numbered from 0. The operator creates missing machines and starts machines that are
// off. It deletes those with the highest numbers first.
func decide(group v1alpha1.VmGroup, seen look) plan {
	d := begin(group, seen)
	if found := misled(group, seen.inventory); found != nil {
		d.problem = found
		return d.plan
	}
	if seen.inventory.Folder == "" {
		d.order(vcenter.CreateFolder, vcenter.Machine{})
		return d.plan
	}
	if d.sorted.foreign != "" {
		d.problem = &problem{reasonFolderOccupied, fmt.Sprintf("folder %s has machine %s of another VmGroup, perhaps one of another Kubernetes cluster: the operator does nothing there; choose another metadata.name or spec.folder", seen.inventory.Path, d.sorted.foreign)}
		return d.plan
	}
	for number := range int(group.Spec.Replicas) {
		d.slot(machineName(d.folder, number))
	}
	d.shrink()
	d.renew()
	d.steps = d.steps[:min(len(d.steps), stepsAtOnce)]
	return d.plan
}

// orders returns the steps of a plan that this pass sends. The status must have the group's folder before the operator creates machines in
// it. After that, the operator notices a Secret that leads to another place.
func orders(group v1alpha1.VmGroup, seen look, next plan) []step {
	if group.DeletionTimestamp == nil && group.Status.Folder == "" && seen.inventory.Folder != "" {
		return nil
	}
	return next.steps
}

// misled returns a problem if the account leads to another place than the group's machines.
func misled(group v1alpha1.VmGroup, seen vcenter.Inventory) *problem {
	was := group.Status
	if was.VCenterID != "" && was.VCenterID != seen.VCenter {
		return &problem{reasonVCenterChanged, fmt.Sprintf("the machines are in another vCenter, %s: put it back into VC_HOST; delete this VmGroup before you use another vCenter", was.VCenter)}
	}
	if was.Folder != "" && was.Folder != seen.Path && !followed(group, seen) {
		return &problem{reasonVCenterChanged, fmt.Sprintf("the machines are in %s, and the spec and the Secret name %s: put VC_DATACENTER and VC_FOLDER back in the Secret vc-creds, or move the folder there with all its machines", was.Folder, seen.Path)}
	}
	if seen.Folder == "" && seen.Elsewhere != "" {
		return &problem{reasonVCenterChanged, fmt.Sprintf("there is no folder %s, and a machine of the group is at %s: rename or move its folder back, or delete the machine", seen.Path, seen.Elsewhere)}
	}
	return nil
}

// followed reports whether a user moved the folder to the place where the operator looks now. All machines that ran must be there, and must
// be the originals: the group must not continue with an old copy in another place.
func followed(group v1alpha1.VmGroup, seen vcenter.Inventory) bool {
	there := int32(0)
	for _, one := range seen.Machines {
		if one.Owner == string(group.UID) && one.Original {
			there++
		}
	}
	return there > 0 && (group.Status.CurrentReplicas == nil || there >= *group.Status.CurrentReplicas)
}

// order adds a step for a machine, unless the same step failed a moment ago.
func (d *deciding) order(verb vcenter.Verb, of vcenter.Machine) {
	if !d.refused(verb, of.Slot) {
		d.give(verb, of)
	}
}

func (d *deciding) give(verb vcenter.Verb, of vcenter.Machine) {
	d.steps = append(d.steps, step{verb: verb, machine: of.Slot, id: of.ID, replaces: of.ID != "" && of.ID == d.replaced})
}

func (d *deciding) wait(format string, arguments ...any) {
	d.waits = append(d.waits, fmt.Sprintf(format, arguments...))
}

// slot decides what the machine with this number needs.
func (d *deciding) slot(name string) {
	one, exists := d.sorted.own[name]
	switch {
	case slices.Contains(d.seen.inventory.Cloning, name):
		d.wait("%s is being created", name)
	case !exists:
		d.missing(name)
	case one.Busy && !one.Ordered && d.asWanted(one):
		d.disturbed = name
	case d.occupied(one):
	case one.Template != d.group.Spec.Template:
		d.outdated = append(d.outdated, one)
	case !d.fits(one):
		d.resize(one)
	case one.Power != vcenter.PowerOn:
		d.order(vcenter.Start, one)
	}
}

// failure returns the last failure of the same step. A failed change to another size does not count.
func (d *deciding) failure(verb vcenter.Verb, name string) (vcenter.Failure, bool) {
	at := slices.IndexFunc(d.seen.inventory.Failures, func(one vcenter.Failure) bool {
		sized := one.Verb != vcenter.Resize && one.Verb != vcenter.Grow || one.CPU == d.group.Spec.CPU && one.MemoryMiB == memoryMiB(d.group)
		return one.Machine == name && one.Verb == verb && sized
	})
	if at < 0 {
		return vcenter.Failure{}, false
	}
	return d.seen.inventory.Failures[at], true
}

// refused reports whether the vCenter recently failed at this step for a machine. It then adds a wait or a problem; the operator retries
// after a pause. Failures of steps that are no longer wanted do not count.
func (d *deciding) refused(verb vcenter.Verb, name string) bool {
	one, is := d.failure(verb, name)
	if !is {
		return false
	}
	switch {
	case one.Reason == vcenter.Moved:
		d.wait("%s", one.Message)
	case one.Reason == vcenter.Away && (d.problem == nil || d.problem.passes()):
		d.problem = &problem{string(one.Reason), one.Message}
	case d.problem == nil:
		d.problem = &problem{string(one.Reason), one.Message + "; the operator retries, with growing pauses"}
	}
	return one.Resting
}

// missing adds a clone. The first machine of a group is cloned alone: if two groups have the same folder, only one of them can create it.
func (d *deciding) missing(name string) {
	if one, is := d.sorted.taken[name]; is {
		if one.Making || one.Busy {
			d.wait("%s is being created", name)
			return
		}
		d.problem = &problem{reasonMachineOccupied, fmt.Sprintf("machine %s in folder %s was not created by a VmGroup: rename, move or delete it", name, d.seen.inventory.Path)}
		return
	}
	if d.refused(vcenter.Clone, name) || d.mayBeThere() {
		return
	}
	begun := len(d.seen.inventory.Cloning)
	for _, one := range d.steps {
		if one.verb == vcenter.Clone {
			begun++
		}
	}
	limit := clonesAtOnce
	if len(d.sorted.own) == 0 {
		limit = 1
	}
	if begun >= limit {
		d.wait("%s must still be created", name)
		return
	}
	d.give(vcenter.Clone, vcenter.Machine{Slot: name})
}

// mayBeThere reports whether a missing machine may exist: renamed by a user, with a mark that the vCenter cannot read now.
func (d *deciding) mayBeThere() bool {
	for _, one := range d.sorted.unknown {
		d.occupied(one)
	}
	return len(d.sorted.unknown) > 0
}

// occupied reports whether the operator can do nothing to a machine now.
func (d *deciding) occupied(one vcenter.Machine) bool {
	switch {
	case one.Making:
		d.wait("%s is being created", one.Slot)
	case one.Busy:
		d.wait("the vCenter runs a task on %s", one.Slot)
	case one.Broken != "":
		d.broken(one)
	case !one.Connected:
		d.wait("the host of %s does not answer the vCenter%s", one.Slot, d.orGo("the host"))
	default:
		return false
	}
	return true
}

// broken adds the problem that a user must repair a machine. The operator does not create the machine again while the vCenter knows it,
// because its disks may come back.
func (d *deciding) broken(one vcenter.Machine) {
	if d.problem == nil || d.problem.passes() {
		d.problem = &problem{reasonMachineBroken, fmt.Sprintf("the vCenter cannot use %s, which is %s: repair it, or remove it from the vCenter's inventory", one.Name, one.Broken)}
	}
}

// orGo returns how to release a group that is being deleted if something is gone for good; empty for other groups.
func (d *deciding) orGo(what string) string {
	if d.group.DeletionTimestamp == nil {
		return ""
	}
	return orGo(d.group, what)
}

// asWanted reports whether a machine is as the spec says, whatever task the vCenter runs on it: for example, a move to another host or a
// snapshot.
func (d *deciding) asWanted(one vcenter.Machine) bool {
	return one.Connected && one.Power == vcenter.PowerOn && one.Template == d.group.Spec.Template && d.fits(one)
}

func (d *deciding) fits(one vcenter.Machine) bool {
	return one.CPU == d.group.Spec.CPU && one.MemoryMiB == memoryMiB(d.group)
}

// resize gives a machine the CPUs and memory of the spec: immediately if the machine is off or can grow while it runs, else in its turn.
// While the vCenter refuses that, the machine runs as it is, and the operator does not shut it down for it.
func (d *deciding) resize(one vcenter.Machine) {
	failure, failed := d.failure(vcenter.Resize, one.Slot)
	switch {
	case one.Power == vcenter.PowerSuspended:
		d.order(vcenter.Start, one)
	case one.Power == vcenter.PowerOff && d.refused(vcenter.Resize, one.Slot):
		if failure.Reason != vcenter.Moved { // else it waits for the other task
			d.order(vcenter.Start, one)
		}
	case one.Power == vcenter.PowerOff:
		d.give(vcenter.Resize, one)
	case d.grows(one):
		d.order(vcenter.Grow, one)
	case failed && failure.Resting:
		d.refused(vcenter.Resize, one.Slot)
	default:
		d.outdated = append(d.outdated, one)
	}
}

// grows reports whether a machine can get the size of the spec while it runs: its guest supports that, and the vCenter has not failed
// twice. One failure is not enough: its reason may pass, and the other way shuts the machine down.
func (d *deciding) grows(one vcenter.Machine) bool {
	cpu, memory := d.group.Spec.CPU, memoryMiB(d.group)
	if failure, failed := d.failure(vcenter.Grow, one.Slot); failed && failure.Reason == vcenter.Failed && failure.Times > 1 {
		return false
	}
	return (one.CPU == cpu || one.GrowsCPU && one.CPU < cpu) && (one.MemoryMiB == memory || one.GrowsMemory && one.MemoryMiB < memory)
}

// shrink deletes the machines beyond spec.replicas, those with the highest numbers first.
func (d *deciding) shrink() {
	beyond := []vcenter.Machine{}
	for name, one := range d.sorted.own {
		if number := numberOf(d.folder, name); number < 0 || number >= int(d.group.Spec.Replicas) {
			beyond = append(beyond, one)
		}
	}
	d.remove(beyond)
}

// remove shuts machines down and deletes them, those with the highest numbers first.
func (d *deciding) remove(machines []vcenter.Machine) {
	slices.SortFunc(machines, func(a, b vcenter.Machine) int {
		return cmp.Or(cmp.Compare(numberOf(d.folder, b.Slot), numberOf(d.folder, a.Slot)), cmp.Compare(a.Slot, b.Slot))
	})
	for _, one := range machines {
		if d.occupied(one) || d.halted(one) {
			continue
		}
		d.order(vcenter.Destroy, one)
	}
}

// halted reports whether a machine runs, and shuts it down: by its guest if it can, else, or if that takes too long, by power-off.
func (d *deciding) halted(one vcenter.Machine) bool {
	if one.Power != vcenter.PowerOn {
		return false
	}
	d.halting = append(d.halting, one.ID)
	since, asked := d.seen.stopping[one.ID]
	switch {
	case !asked && one.Tools:
		d.order(vcenter.Shutdown, one)
	case asked && d.seen.now.Sub(since) < grace:
		d.wait("%s is shutting down", one.Slot)
	default:
		d.order(vcenter.Stop, one)
	}
	return true
}

// renew changes one of the machines that differ from the spec. That is one that is already down for it, else the one with the highest
// number, and that one only while all others run.
func (d *deciding) renew() {
	if len(d.outdated) == 0 {
		return
	}
	slices.SortFunc(d.outdated, func(a, b vcenter.Machine) int {
		return cmp.Or(cmp.Compare(d.begun(b), d.begun(a)), cmp.Compare(numberOf(d.folder, b.Slot), numberOf(d.folder, a.Slot)))
	})
	next := d.outdated[0]
	if d.begun(next) == 0 && (!d.settled() || d.disturbed != "") {
		d.wait("the operator changes %s when the others run", next.Slot)
		return
	}
	if more := len(d.outdated) - 1; more > 0 {
		d.wait("the operator changes %d more machines after %s", more, next.Slot)
	}
	if next.Template != d.group.Spec.Template {
		d.replaced = next.ID
	}
	if d.halted(next) {
		return
	}
	d.order(vcenter.Destroy, next) // it has another template; a machine of another size is resized when it is off
}

// begun returns 1 if a machine is shutting down or not running, else 0.
func (d *deciding) begun(one vcenter.Machine) int {
	if _, asked := d.seen.stopping[one.ID]; asked || one.Power != vcenter.PowerOn {
		return 1
	}
	return 0
}

func memoryMiB(group v1alpha1.VmGroup) int64 { return int64(group.Spec.Memory) * 1024 }
