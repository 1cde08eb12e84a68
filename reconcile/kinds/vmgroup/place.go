package vmgroup

import (
	"fmt"

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	"github.com/mysql-operator/mysql-operator/schema/vmgroup/v1alpha1"
)

// wrongPlace returns a problem if the account leads to another place than the group's machines.
func wrongPlace(group v1alpha1.VmGroup, seen vcenter.Inventory) *report.Problem {
	was := group.Status
	if was.VCenterID != "" && was.VCenterID != seen.VCenter {
		return &report.Problem{Reason: reasonVCenterChanged, Message: fmt.Sprintf("the machines are in another vCenter, %s: put it back into VC_HOST; delete this VmGroup before you use another vCenter", was.VCenter)}
	}
	if was.Folder != "" && was.Folder != seen.Path && !folderMoved(group, seen) {
		return &report.Problem{Reason: reasonVCenterChanged, Message: fmt.Sprintf("the machines are in %s, and the spec and the Secret name %s: put VC_DATACENTER and VC_FOLDER back in the Secret vc-creds, or move the folder there with all its machines", was.Folder, seen.Path)}
	}
	if seen.Folder == "" && seen.Elsewhere != "" {
		return &report.Problem{Reason: reasonVCenterChanged, Message: fmt.Sprintf("there is no folder %s, and a machine of the group is at %s: rename or move its folder back, or delete the machine", seen.Path, seen.Elsewhere)}
	}
	return nil
}

// folderMoved reports whether a user moved the folder to the place where the operator looks now. All machines that ran must be there, and
// must be the originals: the group must not continue with an old copy in another place.
func folderMoved(group v1alpha1.VmGroup, seen vcenter.Inventory) bool {
	there := int32(0)
	for _, one := range seen.Machines {
		if one.Owner == string(group.UID) && one.Original {
			there++
		}
	}
	return there > 0 && (group.Status.CurrentReplicas == nil || there >= *group.Status.CurrentReplicas)
}
