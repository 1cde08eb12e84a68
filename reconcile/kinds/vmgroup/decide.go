package vmgroup

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	"github.com/mysql-operator/mysql-operator/schema/vmgroup/v1alpha1"
)

const (
	// shutdownTimeout is how long a guest may take to shut down before the operator powers its machine off.
	shutdownTimeout = 2 * time.Minute
	// clonesAtOnce is how many machines of one group are cloned at the same time.
	clonesAtOnce = 4
	// stepsAtOnce is how many orders one pass sends.
	stepsAtOnce = 16
)

// observed is what a pass observed.
type observed struct {
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

// decision is what a pass does.
type decision struct {
	steps []step
	// waitReasons lists what the group waits for; the status reports the first.
	waitReasons []string
	// problem is what prevents the group from matching its spec; nil for none.
	problem *report.Problem
	// mustStop has the IDs of the machines that run and must stop.
	mustStop []string
	// running is the number of machines that are powered on.
	running int32
	// release reports whether a group that is being deleted may go. left describes what stays in the vCenter; empty for nothing.
	release bool
	left    string
}

// settled reports whether everything is as the spec says.
func (p decision) settled() bool {
	return len(p.steps) == 0 && len(p.waitReasons) == 0 && p.problem == nil
}

// inWrongPlace reports whether the account leads to another place than the group's machines.
func (p decision) inWrongPlace() bool {
	return p.problem != nil && p.problem.Reason == reasonVCenterChanged
}

// decisionBuilder builds a plan.
type decisionBuilder struct {
	decision
	group  v1alpha1.VmGroup
	folder string
	seen   observed
	sorted ownership
	// outdated has the machines that run and differ from the spec: the operator changes them one at a time.
	outdated []vcenter.Machine
	// disturbed is a machine that is as the spec says, while the vCenter runs a task on it.
	disturbed string
	// replaced is the ID of the machine that one of another template replaces.
	replaced string
}

func begin(group v1alpha1.VmGroup, seen observed) *decisionBuilder {
	folder := folderName(group.Namespace, group.Name)
	d := &decisionBuilder{group: group, folder: folder, seen: seen, sorted: sortByOwner(folder, string(group.UID), seen.inventory)}
	d.running = d.sorted.running
	return d
}

// decide decides what a group needs next. Machines are numbered from 0. The operator creates missing machines and starts machines that are
// off. It deletes those with the highest numbers first.
func decide(group v1alpha1.VmGroup, seen observed) decision {
	d := begin(group, seen)
	if found := wrongPlace(group, seen.inventory); found != nil {
		d.problem = found
		return d.decision
	}
	if seen.inventory.Folder == "" {
		d.addStepUnlessRefused(vcenter.CreateFolder, vcenter.Machine{})
		return d.decision
	}
	if d.sorted.foreign != "" {
		d.problem = &report.Problem{Reason: reasonFolderOccupied, Message: fmt.Sprintf("folder %s has machine %s of another VmGroup, perhaps one of another Kubernetes cluster: the operator does nothing there; choose another metadata.name or spec.folder", seen.inventory.Path, d.sorted.foreign)}
		return d.decision
	}
	for number := range int(group.Spec.Replicas) {
		d.decideMachine(machineName(d.folder, number))
	}
	d.shrink()
	d.changeOutdated()
	d.steps = d.steps[:min(len(d.steps), stepsAtOnce)]
	return d.decision
}

// stepsToSend returns the steps of a plan that this pass sends. The status must have the group's folder before the operator creates
// machines in it. After that, the operator notices a Secret that leads to another place.
func stepsToSend(group v1alpha1.VmGroup, seen observed, next decision) []step {
	if group.DeletionTimestamp == nil && group.Status.Folder == "" && seen.inventory.Folder != "" {
		return nil
	}
	return next.steps
}

// addStepUnlessRefused adds a step for a machine, unless the same step failed a moment ago.
func (d *decisionBuilder) addStepUnlessRefused(verb vcenter.Verb, of vcenter.Machine) {
	if !d.refused(verb, of.Slot) {
		d.addStep(verb, of)
	}
}

func (d *decisionBuilder) addStep(verb vcenter.Verb, of vcenter.Machine) {
	d.steps = append(d.steps, step{verb: verb, machine: of.Slot, id: of.ID, replaces: of.ID != "" && of.ID == d.replaced})
}

func (d *decisionBuilder) wait(format string, arguments ...any) {
	d.waitReasons = append(d.waitReasons, fmt.Sprintf(format, arguments...))
}

// decideMachine decides what the machine with this number needs.
func (d *decisionBuilder) decideMachine(name string) {
	one, exists := d.sorted.own[name]
	switch {
	case slices.Contains(d.seen.inventory.Cloning, name):
		d.wait("%s is being created", name)
	case !exists:
		d.missing(name)
	case one.Busy && !one.Ordered && d.asWanted(one):
		d.disturbed = name
	case d.isUnavailable(one):
	case one.Template != d.group.Spec.Template:
		d.outdated = append(d.outdated, one)
	case !d.fits(one):
		d.resize(one)
	case one.Power != vcenter.PowerOn:
		d.addStepUnlessRefused(vcenter.Start, one)
	}
}

// failure returns the last failure of the same step. A failed change to another size does not count.
func (d *decisionBuilder) failure(verb vcenter.Verb, name string) (vcenter.Failure, bool) {
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
func (d *decisionBuilder) refused(verb vcenter.Verb, name string) bool {
	one, is := d.failure(verb, name)
	if !is {
		return false
	}
	switch {
	case one.Reason == vcenter.Moved:
		d.wait("%s", one.Message)
	case one.Reason == vcenter.MachineMoved && (d.problem == nil || isTemporary(*d.problem)):
		d.problem = &report.Problem{Reason: string(one.Reason), Message: one.Message}
	case d.problem == nil:
		d.problem = &report.Problem{Reason: string(one.Reason), Message: one.Message + "; the operator retries, with growing pauses"}
	}
	return one.InBackoff
}

// missing adds a clone. The first machine of a group is cloned alone: if two groups have the same folder, only one of them can create it.
func (d *decisionBuilder) missing(name string) {
	if one, is := d.sorted.unmarkedMachines[name]; is {
		if one.Creating || one.Busy {
			d.wait("%s is being created", name)
			return
		}
		d.problem = &report.Problem{Reason: reasonMachineOccupied, Message: fmt.Sprintf("machine %s in folder %s was not created by a VmGroup: rename, move or delete it", name, d.seen.inventory.Path)}
		return
	}
	if d.refused(vcenter.Clone, name) || d.hasUnreadable() {
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
	d.addStep(vcenter.Clone, vcenter.Machine{Slot: name})
}

// hasUnreadable reports whether a missing machine may exist: renamed by a user, with a mark that the vCenter cannot read now.
func (d *decisionBuilder) hasUnreadable() bool {
	for _, one := range d.sorted.unknown {
		d.isUnavailable(one)
	}
	return len(d.sorted.unknown) > 0
}

// isUnavailable reports whether the operator can do nothing to a machine now.
func (d *decisionBuilder) isUnavailable(one vcenter.Machine) bool {
	switch {
	case one.Creating:
		d.wait("%s is being created", one.Slot)
	case one.Busy:
		d.wait("the vCenter runs a task on %s", one.Slot)
	case one.Broken != "":
		d.broken(one)
	case !one.Connected:
		d.wait("the host of %s does not answer the vCenter%s", one.Slot, d.releaseHintIfDeleting("the host"))
	default:
		return false
	}
	return true
}

// broken adds the problem that a user must repair a machine. The operator does not create the machine again while the vCenter knows it,
// because its disks may come back.
func (d *decisionBuilder) broken(one vcenter.Machine) {
	if d.problem == nil || isTemporary(*d.problem) {
		d.problem = &report.Problem{Reason: reasonMachineBroken, Message: fmt.Sprintf("the vCenter cannot use %s, which is %s: repair it, or remove it from the vCenter's inventory", one.Name, one.Broken)}
	}
}

// releaseHintIfDeleting returns how to release a group that is being deleted if something is gone for good; empty for other groups.
func (d *decisionBuilder) releaseHintIfDeleting(what string) string {
	if d.group.DeletionTimestamp == nil {
		return ""
	}
	return releaseHint(d.group, what)
}

// asWanted reports whether a machine is as the spec says, whatever task the vCenter runs on it: for example, a move to another host or a
// snapshot.
func (d *decisionBuilder) asWanted(one vcenter.Machine) bool {
	return one.Connected && one.Power == vcenter.PowerOn && one.Template == d.group.Spec.Template && d.fits(one)
}

func (d *decisionBuilder) fits(one vcenter.Machine) bool {
	return one.CPU == d.group.Spec.CPU && one.MemoryMiB == memoryMiB(d.group)
}

// resize gives a machine the CPUs and memory of the spec: immediately if the machine is off or can grow while it runs, else in its turn.
// While the vCenter refuses that, the machine runs as it is, and the operator does not shut it down for it.
func (d *decisionBuilder) resize(one vcenter.Machine) {
	failure, failed := d.failure(vcenter.Resize, one.Slot)
	switch {
	case one.Power == vcenter.PowerSuspended:
		d.addStepUnlessRefused(vcenter.Start, one)
	case one.Power == vcenter.PowerOff && d.refused(vcenter.Resize, one.Slot):
		if failure.Reason != vcenter.Moved { // else it waits for the other task
			d.addStepUnlessRefused(vcenter.Start, one)
		}
	case one.Power == vcenter.PowerOff:
		d.addStep(vcenter.Resize, one)
	case d.grows(one):
		d.addStepUnlessRefused(vcenter.Grow, one)
	case failed && failure.InBackoff:
		d.refused(vcenter.Resize, one.Slot)
	default:
		d.outdated = append(d.outdated, one)
	}
}

// grows reports whether a machine can get the size of the spec while it runs: its guest supports that, and the vCenter has not failed
// twice. One failure is not enough: its reason may pass, and the other way shuts the machine down.
func (d *decisionBuilder) grows(one vcenter.Machine) bool {
	cpu, memory := d.group.Spec.CPU, memoryMiB(d.group)
	if failure, failed := d.failure(vcenter.Grow, one.Slot); failed && failure.Reason == vcenter.Failed && failure.Times > 1 {
		return false
	}
	return (one.CPU == cpu || one.GrowsCPU && one.CPU < cpu) && (one.MemoryMiB == memory || one.GrowsMemory && one.MemoryMiB < memory)
}

// shrink deletes the machines beyond spec.replicas, those with the highest numbers first.
func (d *decisionBuilder) shrink() {
	beyond := []vcenter.Machine{}
	for name, one := range d.sorted.own {
		if number := numberOf(d.folder, name); number < 0 || number >= int(d.group.Spec.Replicas) {
			beyond = append(beyond, one)
		}
	}
	d.remove(beyond)
}

// remove shuts machines down and deletes them, those with the highest numbers first.
func (d *decisionBuilder) remove(machines []vcenter.Machine) {
	slices.SortFunc(machines, func(a, b vcenter.Machine) int {
		return cmp.Or(cmp.Compare(numberOf(d.folder, b.Slot), numberOf(d.folder, a.Slot)), cmp.Compare(a.Slot, b.Slot))
	})
	for _, one := range machines {
		if d.isUnavailable(one) || d.stop(one) {
			continue
		}
		d.addStepUnlessRefused(vcenter.Destroy, one)
	}
}

// stop reports whether a machine runs, and shuts it down: by its guest if it can, else, or if that takes too long, by power-off.
func (d *decisionBuilder) stop(one vcenter.Machine) bool {
	if one.Power != vcenter.PowerOn {
		return false
	}
	d.mustStop = append(d.mustStop, one.ID)
	since, asked := d.seen.stopping[one.ID]
	switch {
	case !asked && one.Tools:
		d.addStepUnlessRefused(vcenter.Shutdown, one)
	case asked && d.seen.now.Sub(since) < shutdownTimeout:
		d.wait("%s is shutting down", one.Slot)
	default:
		d.addStepUnlessRefused(vcenter.Stop, one)
	}
	return true
}

// changeOutdated changes one of the machines that differ from the spec. That is one that is already down for it, else the one with the
// highest number, and that one only while all others run.
func (d *decisionBuilder) changeOutdated() {
	if len(d.outdated) == 0 {
		return
	}
	slices.SortFunc(d.outdated, func(a, b vcenter.Machine) int {
		return cmp.Or(cmp.Compare(d.changeStarted(b), d.changeStarted(a)), cmp.Compare(numberOf(d.folder, b.Slot), numberOf(d.folder, a.Slot)))
	})
	next := d.outdated[0]
	if d.changeStarted(next) == 0 && (!d.settled() || d.disturbed != "") {
		d.wait("the operator changes %s when the others run", next.Slot)
		return
	}
	if more := len(d.outdated) - 1; more > 0 {
		d.wait("the operator changes %d more machines after %s", more, next.Slot)
	}
	if next.Template != d.group.Spec.Template {
		d.replaced = next.ID
	}
	if d.stop(next) {
		return
	}
	d.addStepUnlessRefused(vcenter.Destroy, next) // it has another template; a machine of another size is resized when it is off
}

// changeStarted returns 1 if a machine is shutting down or not running, else 0.
func (d *decisionBuilder) changeStarted(one vcenter.Machine) int {
	if _, asked := d.seen.stopping[one.ID]; asked || one.Power != vcenter.PowerOn {
		return 1
	}
	return 0
}

func memoryMiB(group v1alpha1.VmGroup) int64 { return int64(group.Spec.Memory) * 1024 }
