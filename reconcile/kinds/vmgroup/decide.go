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
	// grace is how long a guest has to shut down before its machine is powered off.
	grace = 2 * time.Minute
	// clonesAtOnce is how many machines of one group are made at once.
	clonesAtOnce = 4
	// stepsAtOnce is how many orders one pass gives.
	stepsAtOnce = 16
)

// look is what a pass saw.
type look struct {
	now time.Time
	// host is the vCenter that was looked at.
	host      string
	inventory vcenter.Inventory
	// stopping says since when a machine, by its ID, has been asked to shut down.
	stopping map[string]time.Time
	// ending is for how long the group has been known to be deleted.
	ending time.Duration
}

// step is one thing to have done.
type step struct {
	verb        vcenter.Verb
	machine, id string
	// replaces says that the machine goes for one of another template.
	replaces bool
}

// plan is what a pass does.
type plan struct {
	steps []step
	// waits says what is waited for; the first is told.
	waits []string
	// problem is what keeps the group from what its spec says; nil for nothing.
	problem *problem
	// halting are the IDs of the machines that run and are to be down.
	halting []string
	// running is how many machines are powered on.
	running int32
	// release says that a group that is being deleted may go, and left what stays behind; empty for nothing.
	release bool
	left    string
}

// settled says that everything is as it is to be.
func (p plan) settled() bool { return len(p.steps) == 0 && len(p.waits) == 0 && p.problem == nil }

// astray says that what was seen is not where the group's machines are.
func (p plan) astray() bool { return p.problem != nil && p.problem.reason == reasonVCenterChanged }

// deciding is a decision in the making.
type deciding struct {
	plan
	group  v1alpha1.VmGroup
	folder string
	seen   look
	sorted sorted
	// outdated are machines that run and are not as the spec says: they are changed one at a time.
	outdated []vcenter.Machine
	// disturbed is a machine that is as it is to be, and that the vCenter does something to.
	disturbed string
	// replaced is the ID of the machine that is replaced by one of another template.
	replaced string
}

func begin(group v1alpha1.VmGroup, seen look) *deciding {
	folder := folderName(group.Namespace, group.Name)
	d := &deciding{group: group, folder: folder, seen: seen, sorted: sort(folder, string(group.UID), seen.inventory)}
	d.running = d.sorted.running
	return d
}

// decide decides what a group needs next. Machines are numbered from 0: missing ones are made, powered-off ones are started, those with the
// highest numbers go first.
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
		d.problem = &problem{reasonFolderOccupied, fmt.Sprintf("folder %s has machine %s of another VmGroup, perhaps one of another cluster: nothing is done there; choose another metadata.name or spec.folder", seen.inventory.Path, d.sorted.foreign)}
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

// orders are the steps of a plan that are done in this pass. Where the group's folder is, is in the status before machines are made in it:
// from then on a Secret that leads to somewhere else is noticed.
func orders(group v1alpha1.VmGroup, seen look, next plan) []step {
	if group.DeletionTimestamp == nil && group.Status.Folder == "" && seen.inventory.Folder != "" {
		return nil
	}
	return next.steps
}

// misled says that the account leads to somewhere else than where the group's machines are.
func misled(group v1alpha1.VmGroup, seen vcenter.Inventory) *problem {
	was := group.Status
	if was.VCenterID != "" && was.VCenterID != seen.VCenter {
		return &problem{reasonVCenterChanged, fmt.Sprintf("the machines are in another vCenter, %s: put it back into VC_HOST, or delete this VmGroup there first", was.VCenter)}
	}
	if was.Folder != "" && was.Folder != seen.Path && !followed(group, seen) {
		return &problem{reasonVCenterChanged, fmt.Sprintf("the machines are in %s, and the group is to be in %s: put VC_DATACENTER and VC_FOLDER back in the Secret vc-creds, or move the folder there with all its machines", was.Folder, seen.Path)}
	}
	if seen.Folder == "" && seen.Elsewhere != "" {
		return &problem{reasonVCenterChanged, fmt.Sprintf("there is no folder %s, and a machine of the group is at %s: rename or move its folder back, or delete the machine", seen.Path, seen.Elsewhere)}
	}
	return nil
}

// followed says that a group's machines are where they are looked for now: somebody has moved the folder. Those that ran have to be there
// all, and be the very ones: an old copy in another place is not what the group is to go on with.
func followed(group v1alpha1.VmGroup, seen vcenter.Inventory) bool {
	there := int32(0)
	for _, one := range seen.Machines {
		if one.Owner == string(group.UID) && one.Original {
			there++
		}
	}
	return there > 0 && (group.Status.CurrentReplicas == nil || there >= *group.Status.CurrentReplicas)
}

// order has something done to a machine, unless it failed a moment ago.
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

// slot decides what the machine of a number needs.
func (d *deciding) slot(name string) {
	one, exists := d.sorted.own[name]
	switch {
	case slices.Contains(d.seen.inventory.Cloning, name):
		d.wait("%s is being made", name)
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

// failure is the last one of this very thing; that of a change to another size is none.
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

// refused says that the vCenter could not do this very thing to a machine the last time, and what is done about it: it is tried again after
// a while. A failure of something that is not wanted any more is of no interest.
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
		d.problem = &problem{string(one.Reason), one.Message + "; it is tried again, less and less often"}
	}
	return one.Resting
}

// missing has a machine made. The first machine of a group is made alone: two groups that mean the same folder cannot both make it.
func (d *deciding) missing(name string) {
	if one, is := d.sorted.taken[name]; is {
		if one.Making || one.Busy {
			d.wait("%s is being made", name)
			return
		}
		d.problem = &problem{reasonMachineOccupied, fmt.Sprintf("there is a machine %s in folder %s which no VmGroup made: rename, move or delete it", name, d.seen.inventory.Path)}
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
		d.wait("%s is to be made", name)
		return
	}
	d.give(vcenter.Clone, vcenter.Machine{Slot: name})
}

// mayBeThere says that a machine which is missing may be one that somebody has renamed, and that the vCenter cannot read now.
func (d *deciding) mayBeThere() bool {
	for _, one := range d.sorted.unknown {
		d.occupied(one)
	}
	return len(d.sorted.unknown) > 0
}

// occupied says that nothing can be done to a machine now.
func (d *deciding) occupied(one vcenter.Machine) bool {
	switch {
	case one.Making:
		d.wait("%s is being made", one.Slot)
	case one.Busy:
		d.wait("the vCenter is at work on %s", one.Slot)
	case one.Broken != "":
		d.broken(one)
	case !one.Connected:
		d.wait("the host of %s does not answer the vCenter%s", one.Slot, d.orGo("the host"))
	default:
		return false
	}
	return true
}

// broken tells of a machine that somebody has to repair. It is not made again while the vCenter knows it: what is on its disks may come
// back.
func (d *deciding) broken(one vcenter.Machine) {
	if d.problem == nil || d.problem.passes() {
		d.problem = &problem{reasonMachineBroken, fmt.Sprintf("the vCenter can do nothing with %s, which is %s: repair it, or remove it from the vCenter's inventory", one.Name, one.Broken)}
	}
}

// orGo says how a group that is being deleted goes where something is gone for good; empty for one that is not.
func (d *deciding) orGo(what string) string {
	if d.group.DeletionTimestamp == nil {
		return ""
	}
	return orGo(d.group, what)
}

// asWanted says that a machine is as it is to be, whatever somebody has done to it: it is moved to another host, or gets a snapshot.
func (d *deciding) asWanted(one vcenter.Machine) bool {
	return one.Connected && one.Power == vcenter.PowerOn && one.Template == d.group.Spec.Template && d.fits(one)
}

func (d *deciding) fits(one vcenter.Machine) bool {
	return one.CPU == d.group.Spec.CPU && one.MemoryMiB == memoryMiB(d.group)
}

// resize gives a machine the CPUs and memory of the spec: at once if it is off, or may grow so while it runs; else its turn comes. While
// that cannot be it runs as it is, and is not taken down for it.
func (d *deciding) resize(one vcenter.Machine) {
	failure, failed := d.failure(vcenter.Resize, one.Slot)
	switch {
	case one.Power == vcenter.PowerSuspended:
		d.order(vcenter.Start, one)
	case one.Power == vcenter.PowerOff && d.refused(vcenter.Resize, one.Slot):
		if failure.Reason != vcenter.Moved { // else it waits for what is being done to it
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

// grows says that a machine may get what the spec says while it runs: its guest can do with more, and the vCenter has not tried in vain.
// Once is not enough: it may have been for a reason that passes, and the other way takes the machine down.
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

// halted says that a machine runs, and has it shut down: by its guest if it can, else, or if that takes too long, by force.
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

// renew changes one of the machines that are not as the spec says: one that is down for it already, else the one with the highest number,
// and that only while all others run.
func (d *deciding) renew() {
	if len(d.outdated) == 0 {
		return
	}
	slices.SortFunc(d.outdated, func(a, b vcenter.Machine) int {
		return cmp.Or(cmp.Compare(d.begun(b), d.begun(a)), cmp.Compare(numberOf(d.folder, b.Slot), numberOf(d.folder, a.Slot)))
	})
	next := d.outdated[0]
	if d.begun(next) == 0 && (!d.settled() || d.disturbed != "") {
		d.wait("%s is changed when the others run", next.Slot)
		return
	}
	if more := len(d.outdated) - 1; more > 0 {
		d.wait("%d more machines are changed after %s", more, next.Slot)
	}
	if next.Template != d.group.Spec.Template {
		d.replaced = next.ID
	}
	if d.halted(next) {
		return
	}
	d.order(vcenter.Destroy, next) // made of another template; what only has another size is resized when it is off
}

// begun says that a machine is on its way down, or down.
func (d *deciding) begun(one vcenter.Machine) int {
	if _, asked := d.seen.stopping[one.ID]; asked || one.Power != vcenter.PowerOn {
		return 1
	}
	return 0
}

func memoryMiB(group v1alpha1.VmGroup) int64 { return int64(group.Spec.Memory) * 1024 }
