package vmgroup

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	"github.com/mysql-operator/mysql-operator/schema/vmgroup/v1alpha1"
)

// unmarkedTimeout is how long a group that is being deleted waits for a machine with one of its names and no mark, which may be a clone of
// the group in progress.
const unmarkedTimeout = 10 * time.Minute

// decideEnd decides what a group that is being deleted needs before release: its machines are deleted, and its folder if nothing else is in
// it.
func decideEnd(group v1alpha1.VmGroup, seen observed) decision {
	d := begin(group, seen)
	d.end()
	d.steps = d.steps[:min(len(d.steps), stepsAtOnce)]
	return d.decision
}

func (d *decisionBuilder) end() {
	group, seen := d.group, d.seen
	if found := wrongPlace(group, seen.inventory); found != nil {
		d.problem = found
		return
	}
	for _, name := range seen.inventory.Cloning {
		d.wait("%s is being created, and will be deleted after that", name)
	}
	if seen.inventory.Folder == "" {
		if d.release = d.settled(); d.release {
			d.left = leftUnseen(group, seen)
		}
		return
	}
	d.remove(slices.Collect(maps.Values(d.sorted.own)))
	d.waitForUnmarked()
	d.hasUnreadable()
	if !d.settled() {
		return
	}
	if away := seen.inventory.Elsewhere; away != "" {
		d.problem = &report.Problem{Reason: string(vcenter.MachineMoved), Message: fmt.Sprintf("a machine of the group is at %s: move it back into folder %s, where the operator deletes it, or delete it", away, seen.inventory.Path)}
		return
	}
	if stays := slices.Concat(d.sorted.others, d.sorted.copies); len(stays) > 0 {
		d.release, d.left = true, fmt.Sprintf("folder %s stays in vCenter %s: it contains objects that this VmGroup did not create: %s", seen.inventory.Path, seen.host, some(stays))
		return
	}
	d.addStepUnlessRefused(vcenter.DeleteFolder, vcenter.Machine{})
}

// waitForUnmarked waits for machines that may be clones of the group in progress.
func (d *decisionBuilder) waitForUnmarked() {
	for name, one := range d.sorted.unmarkedMachines {
		if numberOf(d.folder, name) >= 0 && (one.Creating || one.Busy || d.seen.ending < unmarkedTimeout) {
			d.wait("%s may be a machine that is being created for this VmGroup", name)
		}
	}
	slices.Sort(d.waitReasons)
}

// leftUnseen returns what may be left of a group whose folder does not exist: nothing, if none of its machines ran when they were last
// seen.
func leftUnseen(group v1alpha1.VmGroup, seen observed) string {
	ran := group.Status.CurrentReplicas
	if why := meta.FindStatusCondition(group.Status.Conditions, v1alpha1.ConditionReady); group.Status.Folder == "" && why != nil && why.Reason == string(vcenter.Forbidden) {
		return fmt.Sprintf("folder %s may be left in vCenter %s, where the account cannot see it: %s", seen.inventory.Path, seen.host, why.Message)
	}
	if group.Status.Folder == "" || ran == nil || *ran == 0 {
		return ""
	}
	return fmt.Sprintf("the operator cannot see folder %s in vCenter %s, where %s of this VmGroup ran: if it was renamed or moved, delete it there", seen.inventory.Path, seen.host, count(*ran, "machine", "machines"))
}
